/** Export and erasure on both databases. Nothing of others is deleted, no tap verifies again, the audit trail and the feed hold. */
import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { keccak256, stringToHex } from 'viem'
import { testDatabases } from '../../support/database/databases.ts'
import { insertOperation } from '../../support/index/rows.ts'
import { useOpened } from '../../support/opened.ts'
import { sleep } from '../../../src/lib/async/sleep.ts'
import { createLog } from '../../../src/lib/log.ts'
import { createTapLog } from '../../../src/tap/log/recorder.ts'
import { hexToBytes } from '../../../src/db/columns.ts'
import { auditHead, readAudit, verifyAudit } from '../../../src/db/audit.ts'
import type { Database } from '../../../src/db/database.ts'
import { putTransferMessage } from '../../../src/graphql/mutations/stores.ts'
import { transferStore } from '../../../src/index/queries/transfers.ts'
import { outboxStore } from '../../../src/index/outbox.ts'
import { createReplayLedger } from '../../../src/tap/replay-ledger.ts'
import { erasePersonalData, exportPersonalData, type DataSubject } from '../../../src/privacy/personal-data.ts'

const address = (digit: string): Hex => `0x${digit.repeat(40)}`
const [alice, bob, carol] = [address('a'), address('b'), address('c')]
const uid = Uint8Array.from([4, 1, 2, 3, 4, 5, 6])
const otherUid = Uint8Array.from([4, 9, 9, 9, 9, 9, 9])
const passedUid = Uint8Array.from([4, 8, 8, 8, 8, 8, 8])
const [former, dora] = [address('4'), address('9')]
const hashOf = (of: Uint8Array): Hex => `0x${Buffer.from(of).toString('hex').padEnd(64, '0')}`
const tagHashes = (of: Uint8Array) => [hashOf(of)]
const [early, late] = ['2026-01-10T12:00:00Z', '2026-02-10T12:00:00Z']
const [sameText, otherText]: readonly [Hex, Hex] = [`0x${'7'.repeat(64)}`, `0x${'8'.repeat(64)}`]
const taps = [
  { of: uid, counter: 1, at: early },
  { of: uid, counter: 2, at: late },
  { of: otherUid, counter: 1, at: early },
]

for (const { name, open, skip } of testDatabases())
  describe(`personal data on ${name}`, { skip }, () => {
    const database = useOpened(open)
    before(() => fill(database))

    const found = async (subject: DataSubject) => {
      const lines: Record<string, unknown>[] = []
      await exportPersonalData(database, { subject, tagHashes }, async (line) => {
        lines.push(JSON.parse(line) as Record<string, unknown>)
      })
      return lines
    }
    const countsOf = async (subject: DataSubject) => {
      const groups = Map.groupBy(await found(subject), ({ kind }) => String(kind))
      return Object.fromEntries([...groups].map(([kind, lines]) => [kind, lines.length]))
    }
    const erase = (subject: DataSubject, dryRun = false) =>
      erasePersonalData(database, { subject, tagHashes, actor: { who: 'local:test' }, reference: 'case-1', dryRun })

    /** The messages that are shown, by transfer. */
    const messages = async () => {
      const transfers = (['1-1', '1-2', '1-3'] as const).map((id) => ({
        id,
        initiatedTx: `0x${'2'.repeat(64)}` as const,
        messageHash: id === '1-2' ? otherText : sameText,
      }))
      return Object.fromEntries(await transferStore(database).messages(transfers))
    }

    it('derives no commitment for an owner who never held an item', async () => {
      const search = { subject: { owner: address('5') }, tagHashes: () => assert.fail('a commitment was derived') }
      await exportPersonalData(database, search, async () => {})
    })

    it('exports one moment, whatever is written meanwhile', async () => {
      const subject = { owner: alice }
      const { report } = await countsOf(subject)
      const kinds: unknown[] = []
      await exportPersonalData(database, { subject, tagHashes }, async (line) => {
        kinds.push((JSON.parse(line) as { kind: unknown }).kind)
        if (kinds.length > 1) return
        await database.query(
          `insert into difference_report (token_id, tap_counter, reported_at, role, note) values (1, 3, '${early}', 'mine', 'Late')`,
        )
      })
      assert.equal(kinds.filter((kind) => kind === 'report').length, report)
      await database.query(`delete from difference_report where note = 'Late'`)
    })

    it('does not keep others waiting while the reader of an export pauses', async () => {
      const { promise: paused, resolve: pause } = Promise.withResolvers<void>()
      const { promise: goesOn, resolve: goOn } = Promise.withResolvers<void>()
      const exporting = exportPersonalData(database, { subject: { owner: alice }, tagHashes }, async () => {
        pause()
        await goesOn
      })
      await paused
      const asked = database.query('select').then(() => 'answered')
      const first = await Promise.race([asked, sleep(20_000, { ref: false }).then(() => 'waits')])
      goOn()
      await exporting
      assert.equal(first, 'answered')
      const left = exportPersonalData(database, { subject: { owner: alice }, tagHashes }, async () => {
        throw new Error('the reader has left')
      })
      await assert.rejects(left, /the reader has left/)
    })

    it('exports what an owner had while the item was theirs, and nothing that came later', async () => {
      assert.deepEqual(await countsOf({ owner: alice }), {
        item: 1,
        transfer: 1,
        message: 1,
        event: 3,
        payment: 1,
        channel: 2,
        tag: 1,
        tap: 1,
        firstTap: 1,
        presentation: 1,
        anomaly: 2,
        announcement: 1,
        report: 1,
      })
      const lines = await found({ owner: alice })
      assert.equal(lines.find(({ kind }) => kind === 'message')?.['body'], 'Enjoy it')
      assert.equal(lines.find(({ kind }) => kind === 'tap')?.['counter'], 1)
      assert.equal(lines.find(({ kind }) => kind === 'firstTap')?.['at'], '2026-01-10T12:00:00.000000Z')
      const { amount, authorization, identifiers } = lines.find(({ kind }) => kind === 'payment') ?? {}
      assert.deepEqual([amount, authorization, identifiers], ['10000', { signature: '0x77' }, ['order-of-alice-17']])
      assert.equal(lines.find(({ kind }) => kind === 'channel')?.['balance'], '50000')
      assert.equal(lines.find(({ kind }) => kind === 'report')?.['note'], 'Other buckle')
      assert.ok(!JSON.stringify(lines).includes('Unrelated'))
      assert.deepEqual(
        await countsOf({ owner: address('5') }),
        { transfer: 1 },
        'the hash alone is no message of theirs',
      )
      assert.deepEqual(await found({ owner: address('d') }), [])
    })

    it(
      'has ten minutes for each statement, in a service whose requests have seconds',
      { skip: name === 'PGlite' && 'PGlite has no limit' },
      async () => {
        const limits = new Set<string>()
        const watched: Pick<Database, 'transaction' | 'dialect'> = {
          dialect: database.dialect,
          transaction: (run, options) =>
            database.transaction(async (sql) => {
              const query = async <Row>(...call: Parameters<Database['query']>) => {
                const rows = await sql.query<Row>(...call)
                const [limit] = await sql.query<{ limit: string }>(
                  `select current_setting('statement_timeout') as limit`,
                )
                limits.add(limit?.limit ?? '')
                return rows
              }
              return run({ query })
            }, options),
        }
        const subject = { owner: alice }
        await exportPersonalData(watched, { subject, tagHashes }, async () => {})
        await erasePersonalData(watched, {
          subject,
          tagHashes,
          actor: { who: 'local:test' },
          reference: 'r',
          dryRun: true,
        })
        assert.deepEqual([...limits], ['10min'])
      },
    )

    it('changes nothing in a dry run', async () => {
      const [head, whole] = [await auditHead(database), await found({ owner: alice })]
      const counts = await erase({ owner: alice }, true)
      assert.deepEqual(counts, { message: 1, tap: 1, presentation: 1, anomaly: 2, announcement: 1 })
      assert.deepEqual(await auditHead(database), head)
      assert.deepEqual(await found({ owner: alice }), whole)
    })

    it('erases the messages and taps of an owner, and keeps the trail, the feed and the data of others', async () => {
      const kept = await auditHead(database)
      const outbox = outboxStore(database)
      const [first] = (await outbox.range({ after: 0n, upTo: 100n, limit: 10 }))?.events ?? []
      assert.equal(first?.kind, 'VERIFIED')
      const place = { seq: first?.seq ?? 0n, micros: await microsOf(database, first?.seq ?? 0n) }
      const counts = { message: 1, tap: 1, presentation: 1, anomaly: 2, announcement: 1 }
      assert.deepEqual(await erase({ owner: alice }), counts)
      const stays = { item: 1, transfer: 1, event: 3, payment: 1, channel: 2, tag: 1, firstTap: 1, report: 1 }
      assert.deepEqual(await countsOf({ owner: alice }), stays)
      const later = await countsOf({ owner: bob })
      assert.deepEqual([later['tap'], later['presentation'], later['announcement']], [1, 1, 1])
      assert.equal(later['firstTap'], undefined)
      assert.deepEqual(await messages(), { '1-2': 'Unrelated', '1-3': 'Enjoy it' })

      const verified = await verifyAudit(database, [kept])
      assert.ok(verified.ok)
      const [entry] = await readAudit(database, kept.seq, 2)
      assert.deepEqual(JSON.parse(entry?.body ?? ''), {
        who: 'local:test',
        act: 'privacy.erase',
        subject: 'case-1',
        outcome: 'DONE',
        after: counts,
      })
      assert.ok((await outbox.check(place)).known, 'a subscriber goes on from the event that was erased')
      const page = await outbox.range({ after: place.seq - 1n, upTo: 100n, limit: 10 })
      assert.deepEqual(
        page?.events.map(({ kind, tokenId }) => [kind, tokenId]),
        [['VERIFIED', 1n]],
      )
    })

    it('erases a text that several transfers have with the last of them, and shows it no more where it was erased', async () => {
      const bodies = async () =>
        (await database.query<{ body: string }>('select body from transfer_message')).map(({ body }) => body)
      assert.equal((await erase({ owner: address('e') }))['message'], 1)
      assert.deepEqual(await bodies(), ['Unrelated'])
      await database.query('insert into transfer_message (hash, body) values ($1, $2)', [
        hexToBytes(sameText),
        'Enjoy it', // of a later transfer
      ])
      assert.deepEqual(await messages(), { '1-2': 'Unrelated' })
      assert.equal((await erase({ owner: alice }))['message'], 0)
      assert.deepEqual(await countsOf({ owner: address('f') }), { transfer: 1 })
    })

    it('exports and erases the messages of offers that never came to be', async () => {
      const [owner, recipient, other] = [address('7'), address('8'), address('3')] as const
      const put = (id: string, from: Hex, to: Hex, body: string) =>
        putTransferMessage(database, { hash: keccak256(stringToHex(body)), body, offer: { id, from, to } })
      const textsOf = async (of: Hex) =>
        (await found({ owner: of }))
          .filter(({ kind }) => kind === 'message')
          .map(({ transfer, body }) => [transfer, body])
      const bodies = async () =>
        (await database.query<{ body: string }>('select body from transfer_message order by body')).map(
          ({ body }) => body,
        )
      const before = await bodies()
      await put('7-1', owner, recipient, 'First try')
      await put('7-1', owner, recipient, 'First try')
      await put('7-1', owner, other, 'Second try')
      await put('8-1', other, recipient, 'First try')
      assert.deepEqual(await textsOf(owner), [
        ['7-1', 'First try'],
        ['7-1', 'Second try'],
      ])
      assert.deepEqual(await textsOf(recipient), [
        ['7-1', 'First try'],
        ['8-1', 'First try'],
      ])
      assert.equal((await erase({ owner }, true))['message'], 2)
      assert.equal((await erase({ owner }))['message'], 2)
      assert.deepEqual([await textsOf(owner), await textsOf(recipient)], [[], [['8-1', 'First try']]])
      assert.deepEqual(await bodies(), [...before, 'First try'].toSorted())
      await put('7-1', owner, recipient, 'First try') // the same offer is sent again
      assert.deepEqual(await textsOf(owner), [], 'no transfer shows the text, so that it is not stored')
      await erase({ owner: recipient })
      assert.deepEqual(await bodies(), before)
      assert.deepEqual(await database.query('select from offered_message'), [])
    })

    it('exports and erases an anomaly that began with the former owner and has a country of the new one', async () => {
      const tagHash = hashOf(passedUid)
      const tapIn = async (...countries: string[]) => {
        await using log = createTapLog({ database, log: createLog(() => {}, 'silent') })
        const presentation = { tagHash, jumpFrom: null, outcome: 'FRESH' } as const
        for (const country of countries) log.record({ ...presentation, counter: (counter += 1), country })
      }
      let counter = 0
      await passTo(database, { block: 3, tagHash, from: carol, to: former })
      await tapIn('IT', 'FR')
      await passTo(database, { block: 4, tagHash, from: former, to: dora })
      assert.equal((await countsOf({ owner: former }))['anomaly'], 1)
      assert.equal((await countsOf({ owner: dora }))['anomaly'], undefined, 'it has nothing of hers')
      await tapIn('DE')
      const [anomaly] = (await found({ owner: dora })).filter(({ kind }) => kind === 'anomaly')
      assert.deepEqual(anomaly?.['countries'], ['DE', 'FR', 'IT'])
      assert.equal((await erase({ owner: dora }))['anomaly'], 1)
      assert.equal((await countsOf({ owner: former }))['anomaly'], undefined)
    })

    it('exports the item of a tag once, which the registry of tags and the chain both name', async () => {
      const { item, firstTap } = await countsOf({ uid })
      assert.deepEqual({ item, firstTap }, { item: 1, firstTap: 1 })
    })

    it('finds the taps of an owner by the registry of tags alone, as where the pepper has changed since', async () => {
      const kinds = new Set<unknown>()
      await exportPersonalData(database, { subject: { owner: bob }, tagHashes: () => [] }, async (line) => {
        kinds.add((JSON.parse(line) as { kind: unknown }).kind)
      })
      assert.ok(kinds.has('tap'))
    })

    it('exports and erases the message of an offer whose transaction another one replaced', async () => {
      const [owner, recipient, replaced] = [address('1'), address('2'), hexToBytes(`0x${'4'.repeat(64)}`)] as const
      const body = 'By the second transaction'
      const hash = hexToBytes(keccak256(stringToHex(body)))
      await database.query('insert into replaced_transaction (tx_hash, operation_pk) select $1, pk from operation', [
        replaced,
      ])
      await database.query('insert into transfer_message (hash, body) values ($1, $2)', [hash, body])
      await database.query(
        `insert into transfer (id, asset_pk, from_addr, to_addr, status, initiated_at, initiated_tx, message_hash)
          select '1-6', pk, $1, $2, 'CONFIRMED', '2026-02-01', $3, $4 from asset where token_id = 1`,
        [hexToBytes(owner), hexToBytes(recipient), replaced, hash],
      )
      assert.deepEqual(await countsOf({ owner: recipient }), { transfer: 1, message: 1 })
      assert.equal((await erase({ owner }))['message'], 1)
      assert.deepEqual(await countsOf({ owner: recipient }), { transfer: 1 })
    })

    it('keeps a tap that the last counter of its tag does not refuse', async () => {
      await database.query('update tag set last_counter = 0 where uid = $1', [otherUid])
      assert.equal((await erase({ uid: otherUid }, true))['tap'], 0)
      await database.query('update tag set last_counter = 1 where uid = $1', [otherUid])
    })

    it('lets no erased tap pass again', async () => {
      const ledger = createReplayLedger({ sql: database, windowSeconds: 3_600 })
      const tap = { uid, epoch: 0, picc: Uint8Array.from({ length: 16 }, () => 1), batchId: 'b' }
      assert.equal((await ledger.consume({ ...tap, counter: 1 })).outcome, 'REPLAY')
      assert.equal((await erase({ uid }))['tap'], 1)
      assert.equal((await ledger.consume({ ...tap, counter: 2 })).outcome, 'REPLAY')
      assert.equal((await ledger.consume({ ...tap, counter: 3 })).outcome, 'FRESH')
    })

    it('finds a tag without an item, and leaves other tags alone', async () => {
      assert.deepEqual(await countsOf({ uid: otherUid }), { tag: 1, tap: 1, presentation: 1 })
      await erase({ uid: otherUid })
      assert.deepEqual(await countsOf({ uid: otherUid }), { tag: 1 })
      assert.ok((await verifyAudit(database)).ok)
    })
  })

async function microsOf(database: Database, seq: bigint): Promise<bigint> {
  const text = 'select (extract(epoch from created_at) * 1000000)::bigint as micros from outbox where seq = $1'
  const [row] = await database.query<{ micros: bigint }>(text, [seq])
  return row?.micros ?? 0n
}

/** Item 2, which has this tag, is somebody's from now on. */
async function passTo(
  database: Database,
  { block, tagHash, from, to }: Readonly<{ block: number; tagHash: Hex; from: Hex; to: Hex }>,
): Promise<void> {
  await database.query(
    `insert into asset (token_id, owner, state, flags, tag_hash, created_at, updated_at, updated_block)
      values (2, $1, 4, 0, $2, now(), now(), $3) on conflict (token_id) do update set owner = excluded.owner`,
    [hexToBytes(to), hexToBytes(tagHash), block],
  )
  await database.query(
    `insert into history (block_number, log_index, token_id, kind, from_addr, to_addr, block_hash, tx_hash, ts)
      values ($1, 0, 2, 9, $2, $3, $4, $4, clock_timestamp())`,
    [block, hexToBytes(from), hexToBytes(to), Buffer.alloc(32, block)],
  )
}

/** Item 1 is Alice's from the first of January, and Bob's from the first of February. Its tag is tapped once with each of them. */
async function fill(database: Database): Promise<void> {
  await insertOperation(database, `0x${'2'.repeat(64)}`)
  const bytes = (value: Hex) => `'\\x${value.slice(2)}'::bytea`
  const hash = (digit: string) => bytes(`0x${digit.repeat(64)}`)
  const tagged = bytes(hashOf(uid))
  const statements = [
    `insert into asset (token_id, owner, state, flags, tag_hash, name, created_at, updated_at, updated_block)
      values (1, ${bytes(bob)}, 4, 0, ${tagged}, 'Satchel', '2026-01-01', '2026-02-01', 2)`,
    ...[
      [1, carol, alice, '2026-01-01T00:00:00Z'],
      [2, alice, bob, '2026-02-01T00:00:00Z'],
    ].map(
      ([block, from, to, at]) => `insert into history
        (block_number, log_index, token_id, kind, from_addr, to_addr, block_hash, tx_hash, ts)
        values (${block}, 0, 1, 9, ${bytes(from as Hex)}, ${bytes(to as Hex)}, ${hash('1')}, ${hash(String(block))}, '${at}')`,
    ),
    `insert into history (block_number, log_index, token_id, kind, actor, block_hash, tx_hash, ts)
      values (1, 1, 5, 4, ${bytes(alice)}, ${hash('1')}, ${hash('1')}, '2026-01-01T00:00:00Z')`,
    `insert into asset_tap (token_id, tapped_at, tag_hash) values (1, '${early}', ${tagged})`,
    ...[
      ['1-1', alice, bob, '7', 'Enjoy it'],
      ['1-2', bob, carol, '8', 'Unrelated'],
      ['1-3', address('e'), address('f'), '7', 'Enjoy it'],
      ['1-4', address('5'), address('6'), '7', 'Enjoy it', '3'], // this service did not send it
    ].flatMap(([id, from, to, digit = '', body, transaction = '2']) => [
      `insert into transfer (id, asset_pk, from_addr, to_addr, status, initiated_at, initiated_tx, message_hash)
        select '${id}', pk, ${bytes(from as Hex)}, ${bytes(to as Hex)}, 'CONFIRMED', '2026-02-01', ${hash(transaction)}, ${hash(digit)} from asset`,
      `insert into transfer_message (hash, body) values (${hash(digit)}, '${body}') on conflict do nothing`,
    ]),
    `insert into tag (uid, epoch, batch_id, last_counter, token_id)
      values (${bytes(toHex(uid))}, 0, 'b', 2, 1), (${bytes(toHex(otherUid))}, 0, 'b', 1, null)`,
    ...taps.map(
      ({ of, counter, at }) => `insert into tap (uid, epoch, counter, picc, first_seen)
        values (${bytes(toHex(of))}, 0, ${counter}, '\\x${'01'.repeat(16)}', '${at}')`,
    ),
    ...taps.map(
      ({
        of,
        counter,
        at,
      }) => `insert into tap_log (tag_hash, counter, outcome, country, hour, times, first_at, last_at)
        values (${bytes(hashOf(of))}, ${counter}, 'FRESH', 'IT', '${at}', 1, '${at}', '${at}')`,
    ),
    // The second was found before the item was Alice's. Its last time is not known, and may be the end of its day.
    `insert into tap_anomaly (tag_hash, kind, day, found_at) values (${tagged}, 'TWO_PLACES', '2026-01-10', '${early}'),
      (${tagged}, 'TWO_PLACES', '2025-12-31', '2025-12-31T20:00:00Z')`,
    ...[early, late].map(
      (at) => `insert into outbox (topic, token_id, kind, happened_at, payload, created_at)
        values ('tap', 1, 'VERIFIED', '${at}', '{"at":"${at}"}', '${at}')`,
    ),
    `insert into payment (chain_id, asset, payer, nonce, request_hash, payload, valid_before, amount)
      values (84532, ${bytes(address('e'))}, ${bytes(alice)}, ${hash('5')}, ${hash('6')}, '{"signature":"0x77"}', 1, 10000)`,
    `insert into payment_identifier (chain_id, asset, payer, id, nonce)
      values (84532, ${bytes(address('e'))}, ${bytes(alice)}, 'order-of-alice-17', ${hash('5')})`,
    ...[
      ['8', alice, carol],
      ['9', carol, alice],
    ].map(
      ([digit = '', payer, authorizer]) => `insert into channel (id, chain_id, asset, payer, payer_authorizer, receiver,
        receiver_authorizer, withdraw_delay, salt, balance, claimed, withdrawal, read_block, charged)
      values (${hash(digit)}, 84532, ${bytes(address('e'))}, ${bytes(payer as Hex)}, ${bytes(authorizer as Hex)},
        ${bytes(address('f'))}, ${bytes(address('f'))}, 900, ${hash('1')}, 50000, 0, 0, 1, 0)`,
    ),
    ...[
      [1, early, 'Other buckle'],
      [2, late, 'Unrelated'],
    ].map(
      ([counter, at, note]) => `insert into difference_report (token_id, tap_counter, reported_at, role, note)
        values (1, ${counter}, '${at}', 'mine', '${note}')`,
    ),
    `select append_audit('{"act":"key.create"}')`,
  ]
  for (const statement of statements) await database.query(statement)
}

function toHex(of: Uint8Array): Hex {
  return `0x${Buffer.from(of).toString('hex')}`
}
