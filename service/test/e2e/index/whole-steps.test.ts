/**
 * Steps of the index on a cluster whose second worker commits later than the first (docs/capacity.md). No reader sees half a step, and what
 * a step wrote is never lost.
 */
import assert from 'node:assert/strict'
import { afterEach, before, describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import type { Database, Sql } from '../../../src/db/database.ts'
import { type AssetEvent, eventKinds } from '../../../src/domain/registry-event.ts'
import type { IndexCursor } from '../../../src/domain/chain-index.ts'
import { indexStores } from '../../../src/graphql/stores.ts'
import type { ProductRow } from '../../../src/index/queries/products.ts'
import { tokenPages } from '../../../src/index/snapshot.ts'
import { indexStore } from '../../../src/index/store.ts'
import { isDatabaseUnavailable } from '../../../src/lib/errors.ts'
import { createTapAnnouncement } from '../../../src/tap/replay-ledger.ts'
import { citusUrl } from '../../support/database/citus.ts'
import { openOwnDatabase } from '../../support/database/databases.ts'
import { answerAs } from '../../support/database/proxy.ts'
import { freePort } from '../../support/free-port.ts'
import { alice, hashOf, noMembers } from '../../support/index/rows.ts'
import { useOpened } from '../../support/opened.ts'
import { until } from '../../support/wait.ts'

const skip = citusUrl === undefined && 'npm run test:citus runs them on a cluster'
const contract: Hex = `0x${'11'.repeat(20)}`
/** Products enough for every shard. */
const tokens = Array.from({ length: 24 }, (_, index) => String(index + 1))
const newest = { condition: { kind: 'and', of: [] }, by: 'created', descending: true, after: null, limit: 100 } as const

describe('whole steps of the index', { skip }, () => {
  const database = useOpened(openOwnDatabase)
  let store: ReturnType<typeof indexStore>
  let epoch: bigint
  let block = 0n
  /** Holds the second worker's commits back; undefined: nothing does. */
  let gate: ReturnType<typeof gateOf> | undefined

  useOpened(() =>
    lateWorker(database, (sent) => {
      if (gate === undefined || !sent.includes('COMMIT PREPARED')) return undefined
      gate.reached.resolve()
      return gate.promise
    }),
  )
  before(async () => {
    store = indexStore(database)
    epoch = (await store.lead(contract))?.epoch ?? 0n
    await step(mintsOf(tokens))
  })
  afterEach(() => {
    gate?.resolve()
    gate = undefined
  })

  async function step(events: readonly Change[]): Promise<boolean> {
    block += 1n
    const from = await store.cursor()
    assert.ok(from !== null)
    const to: IndexCursor = { number: block, hash: hashOf(Number(block)) as Hex, time: 1_800_000_000n + block }
    const logs = events.map((event, logIndex) => ({ ...event, logIndex, blockNumber: block, blockHash: to.hash }))
    return store.apply({ epoch, from, rewindTo: null, events: logs, blocks: [to], to })
  }

  /** Begins a step, and waits until the second worker is the last to commit it. */
  async function late(begin: () => Promise<boolean>) {
    const held = (gate = gateOf())
    const applied = begin()
    await held.reached.promise
    return { applied, release: held.resolve }
  }
  const lateStep = (state: number) => late(() => step(changesTo(state)))

  /** Answers of every reader: state and block of each product. */
  const readers: Readonly<Record<string, (over: Database) => Promise<unknown[]>>> = {
    'a page of products': async (over) => shown(await indexStores(over).products.page(newest)),
    'products by their tokens': async (over) => shown(await indexStores(over).products.byTokens(tokens.map(BigInt))),
    'pages of events': async (over) => {
      const questions = tokens.map((tokenId) => ({
        tokenId: BigInt(tokenId),
        after: null,
        backward: false,
        limit: 100,
      }))
      const pages = await indexStores(over).history.pages(questions)
      return pages.map(({ rows }) => [rows.at(-1)?.toState, rows.at(-1)?.blockNumber])
    },
    'the comparison with the chain': async (over) => {
      const page = await tokenPages(over).after(0n, 100)
      return (page?.tokens ?? []).map(({ state }) => [state, page?.at.number])
    },
  }
  const shown = (rows: readonly ProductRow[]) => rows.map(({ state, indexed }) => [state, indexed?.number])
  const whole = (state: number) => tokens.map(() => [state, block])

  for (const [name, read] of Object.entries(readers))
    it(`are seen by ${name}, never half`, async () => {
      await step(changesTo(1))
      const { applied, release } = await lateStep(2)
      const { over, looked } = countLooks(database)
      const answer = read(over)
      await Promise.race([answer, looked(2)])
      release()
      assert.deepEqual(await answer, whole(2))
      assert.ok(await applied)
    })

  it('are seen by a page that was read while one began to be committed', async () => {
    await step(changesTo(1))
    let applied: Promise<unknown> | undefined
    const query: Database['query'] = async (text, values) => {
      if (!text.includes('from asset') || applied !== undefined) return database.query(text, values)
      const late = await lateStep(2)
      applied = late.applied
      const half = await database.query<never>(text, values)
      late.release()
      return half
    }
    assert.deepEqual(shown(await indexStores({ ...database, query }).products.page(newest)), whole(2))
    await applied
  })

  it('keep the block of an earlier one readable', async () => {
    await step(changesTo(1))
    const earlier = block
    const { applied, release } = await lateStep(2)
    const { over, looked } = countLooks(database)
    const { past } = indexStores(over)
    const page = past.find(earlier).then(({ block: found }) => found && past.page(found, newest))
    await Promise.race([page, looked(2)])
    release()
    assert.deepEqual(
      shown((await page) ?? []),
      tokens.map(() => [1, earlier]),
    )
    await applied
  })

  it('do not name their block before they are whole', async () => {
    const { applied, release } = await lateStep(3)
    const { over, looked } = countLooks(database)
    const meta = indexStores(over).meta()
    const first = await Promise.race([meta.then(() => 'named'), looked(2).then(() => 'waits')])
    release()
    assert.equal(first, 'waits')
    assert.equal((await meta).block?.number, block)
    await applied
  })

  it('give a product that was tapped meanwhile its first tap', async () => {
    const tokenId = String(tokens.length + 1)
    const uid = Buffer.from('04c4a050000001', 'hex')
    await database.query('insert into tap (uid, epoch, counter, picc) values ($1, 0, 1, $2)', [uid, Buffer.alloc(16)])
    const { applied, release } = await late(() =>
      step([...mintsOf([tokenId, ...tokens.map((id) => `1000${id}`)]), ...bindingsOf([tokenId])]),
    )
    const announced = createTapAnnouncement(database)({
      uid: '04c4a050000001',
      epoch: 0,
      tapCounter: 1,
      tokenId: BigInt(tokenId),
      tagHash: tagOf(tokenId),
    })
    await Promise.race([announced, until(async () => (await database.query(sleepersStatement)).length > 0)])
    release()
    assert.equal(await announced, true)
    await applied
    const [row] = await database.query(
      'select tapped_at is not null as tapped from asset where token_id = $1::text::numeric',
      [tokenId],
    )
    assert.deepEqual(row, { tapped: true })
  })

  it('give products whose tag was tapped meanwhile their first tap with it', async () => {
    const uidOf = (tokenId: string) => `04c4a051${tokenId.padStart(6, '0')}`
    for (const tokenId of tokens)
      await database.query('insert into tap (uid, epoch, counter, picc) values ($1, 0, 1, $2)', [
        Buffer.from(uidOf(tokenId), 'hex'),
        Buffer.alloc(16),
      ])
    const { applied, release } = await late(() => step(bindingsOf(tokens)))
    const announce = createTapAnnouncement(database)
    const taps = tokens.map((tokenId) =>
      announce({ uid: uidOf(tokenId), epoch: 0, tapCounter: 1, tokenId: BigInt(tokenId), tagHash: tagOf(tokenId) }),
    )
    await Promise.race([Promise.all(taps), until(async () => (await database.query(sleepersStatement)).length > 0)])
    release()
    await Promise.all([...taps, applied])
    const rows = await database.query(
      'select 1 from asset where token_id = any($1::numeric[]) and tapped_at is not null',
      [`{${tokens.join()}}`],
    )
    assert.equal(rows.length, tokens.length)
  })

  it('are committed in two phases, also with one product: else its shard would be first', async () => {
    for (const change of changesTo(1).slice(0, 3)) {
      await step([change])
      const prepared = await database.query(
        'select 1 from pg_dist_transaction t join index_cursor c on t.xmin::text::bigint = c.step % (1::bigint << 32)',
      )
      assert.equal(prepared.length, 1)
    }
  })

  it('are shown by a reader where their writer ended too early', async () => {
    await step(changesTo(4))
    await database.query('update index_shown set step = 0')
    assert.equal((await indexStores(database).meta()).block?.number, block)
    assert.deepEqual(await database.query('select 1 from index_cursor c join index_shown s using (step)'), [
      { '?column?': 1 },
    ])
  })

  it('are finished where the worker lost its connection before it committed', async () => {
    gate = gateOf()
    const lost = assert.doesNotReject(step(changesTo(1)))
    await gate.reached.promise
    gate.reject(new Error('cut'))
    gate = undefined
    await lost
    assert.deepEqual(shown(await indexStores(database).products.page(newest)).slice(-tokens.length), whole(1))
  })

  it('are not answered as long as the worker has not committed', async () => {
    const { applied, release } = await lateStep(2)
    await assert.rejects(indexStores(database).meta(), isDatabaseUnavailable)
    release()
    await applied
    assert.equal((await indexStores(database).meta()).block?.number, block)
  })
})

const sleepersStatement = `select 1 from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`

function gateOf() {
  return { ...Promise.withResolvers<void>(), reached: Promise.withResolvers<void>() }
}

/** Puts `before` between the coordinator and its second worker. */
async function lateWorker(database: Database, before: (sent: Buffer) => Promise<void> | undefined) {
  const [worker] = await database.query<{ id: number; port: number }>(
    'select nodeid as id, nodeport as port from pg_dist_node where groupid > 0 order by groupid desc limit 1',
  )
  const port = await freePort()
  const proxy = await answerAs(`postgres://127.0.0.1:${worker?.port}`, port, before)
  await database.query(`select citus_update_node($1, '127.0.0.1', $2)`, [worker?.id, port])
  return proxy
}

/** `looked` resolves when the readers of `over` have looked so often whether a step is whole. */
function countLooks(database: Database) {
  let looks = 0
  const waiting = new Map<number, () => void>()
  const counting = ({ query }: Sql): Sql => ({
    query: async (text, values) => {
      const rows = await query<never>(text, values)
      if (text.includes('index_shown')) waiting.get((looks += 1))?.()
      return rows
    },
  })
  const transaction: Database['transaction'] = (run) => database.transaction((sql) => run(counting(sql)))
  return {
    over: { ...database, ...counting(database), transaction },
    looked: (times: number) => new Promise<void>((resolve) => void waiting.set(times, resolve)),
  }
}

const blank = {
  ...noMembers,
  transactionHash: hashOf(7) as Hex,
  timestamp: 1_800_000_000n,
}
type Change = Omit<AssetEvent, 'blockNumber' | 'logIndex' | 'blockHash'>

function mintsOf(tokenIds: readonly string[]): Change[] {
  return tokenIds.map((tokenId) => ({
    ...blank,
    kind: eventKinds.AssetMinted,
    tokenId,
    to: alice as Hex,
    data: hashOf(1) as Hex,
  }))
}

const tagOf = (tokenId: string) => hashOf(0xbb0000 + Number(tokenId)) as Hex

/** Binds a tag of its own to each product. */
function bindingsOf(tokenIds: readonly string[]): Change[] {
  return tokenIds.map((tokenId) => ({ ...blank, kind: eventKinds.TagBound, tokenId, data: tagOf(tokenId) }))
}

/** Changes the state of every product. */
function changesTo(state: number): Change[] {
  return tokens.map((tokenId) => ({ ...blank, kind: eventKinds.StateChanged, tokenId, fromState: 0, toState: state }))
}
