/**
 * An erasure while offers with the same words are stored. It deletes no text of others, and none that it has not marked. What it erased is
 * not stored again when a client repeats its request.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { keccak256, stringToHex } from 'viem'
import { countLockWaits, noPostgres, openOwnDatabase } from '../../support/database/databases.ts'
import { eventually } from '../../support/wait.ts'
import { citusUrl } from '../../support/database/citus.ts'
import { useOpened } from '../../support/opened.ts'
import type { Database } from '../../../src/db/database.ts'
import { putTransferMessage } from '../../../src/graphql/mutations/stores.ts'
import { createLog } from '../../../src/lib/log.ts'
import { erasePersonalData } from '../../../src/privacy/personal-data.ts'
import { createTapLog } from '../../../src/tap/log/recorder.ts'

const [alice, bob, carol] = [`0x${'a'.repeat(40)}`, `0x${'b'.repeat(40)}`, `0x${'c'.repeat(40)}`] as const
const skip = noPostgres !== false ? noPostgres : citusUrl !== undefined && 'no erasure on Citus'

describe('an erasure while offers are stored', { skip }, () => {
  const database = useOpened(() => openOwnDatabase('migrated'))

  const store = (by: Pick<Database, 'transaction'>, body: string, offer: { id: string; from: typeof alice }) =>
    putTransferMessage(by, { hash: keccak256(stringToHex(body)), body, offer: { ...offer, to: carol } })
  const rest = { actor: { who: 'local:test' }, reference: 'case-1', dryRun: false } as const
  const eraseOfAlice = (by: Pick<Database, 'transaction'> = database) =>
    erasePersonalData(by, { ...rest, subject: { owner: alice }, tagHashes: () => [] })
  const texts = async (body: string) =>
    (await database.query('select from transfer_message where body = $1', [body])).length
  const offers = async (id: string) =>
    (await database.query('select from offered_message where transfer_id = $1', [id])).length

  /** Makes a database whose transaction is `done` with its statements, and ends on `commit`. */
  function heldBack() {
    const [statements, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const slow: Pick<Database, 'transaction'> = {
      transaction: (run, options) =>
        database.transaction(async (sql) => {
          const result = await run(sql)
          statements.resolve()
          await end.promise
          return result
        }, options),
    }
    return { slow, done: statements.promise, commit: end.resolve }
  }

  it('keeps a text that another person offers at the same moment', async () => {
    await store(database, 'Enjoy it', { id: '1-1', from: alice })
    const { slow, done, commit } = heldBack()
    const storing = store(slow, 'Enjoy it', { id: '2-1', from: bob })
    await done
    let isErased = false
    const erasing = eraseOfAlice().then(() => (isErased = true))
    await eventually(async () => isErased || (await countLockWaits(database)) > 0)
    commit()
    await Promise.all([storing, erasing])
    assert.deepEqual([await offers('1-1'), await offers('2-1'), await texts('Enjoy it')], [0, 1, 1])
    await store(database, 'Enjoy it', { id: '3-1', from: alice })
    await eraseOfAlice()
    assert.equal(await texts('Enjoy it'), 1)
  })

  it('keeps a text of the same person that it has not marked', async () => {
    await store(database, 'Before', { id: '4-1', from: alice })
    const between: Pick<Database, 'transaction'> = {
      transaction: (run, options) =>
        database.transaction(
          (sql) =>
            run({
              query: async <Row>(...call: Parameters<Database['query']>) => {
                const rows = await sql.query<Row>(...call)
                if (call[0].includes('insert into erased_message'))
                  await store(database, 'Meanwhile', { id: '5-1', from: alice })
                return rows
              },
            }),
          options,
        ),
    }
    await eraseOfAlice(between)
    const marked = await database.query(`select from erased_message where transfer_id = '5-1'`)
    assert.deepEqual([marked.length, await offers('5-1'), await texts('Meanwhile')], [0, 1, 1])
    await eraseOfAlice()
    assert.deepEqual([await offers('5-1'), await texts('Meanwhile'), await texts('Before')], [0, 0, 0])
  })

  it('is not undone by an offer that is sent again, afterwards or at the same moment', async () => {
    const again = () => store(database, 'Erased', { id: '6-1', from: alice })
    await again()
    await eraseOfAlice()
    await again()
    assert.deepEqual([await offers('6-1'), await texts('Erased')], [0, 0])

    await store(database, 'Both', { id: '7-1', from: alice })
    const { slow, done, commit } = heldBack()
    const erasing = eraseOfAlice(slow)
    await done
    let isStored = false
    const storing = store(database, 'Both', { id: '7-1', from: alice }).then(() => (isStored = true))
    await eventually(async () => isStored || (await countLockWaits(database)) > 0)
    commit()
    await Promise.all([erasing, storing])
    assert.deepEqual([await offers('7-1'), await texts('Both')], [0, 0])

    await store(database, 'Erased', { id: '8-1', from: bob })
    assert.equal(await texts('Erased'), 1, 'the same words of another person')
  })
  it('leaves no anomaly with the countries of taps that it erases at the same moment', async () => {
    const tagHash = `0x${'7'.repeat(64)}` as const
    const tapIn = async (...countries: string[]) => {
      await using log = createTapLog({ database, log: createLog(() => {}, 'silent') })
      for (const country of countries) log.record({ tagHash, counter: 1, jumpFrom: null, country, outcome: 'FRESH' })
    }
    await tapIn('IT', 'FR')
    const { slow, done, commit } = heldBack()
    const subject = { uid: Uint8Array.from([4, 1, 2, 3, 4, 5, 6]) }
    const erasing = erasePersonalData(slow, { ...rest, subject, tagHashes: () => [tagHash] })
    await done
    let isTapped = false
    const tapping = tapIn('DE').then(() => (isTapped = true))
    await eventually(async () => isTapped || (await countLockWaits(database)) > 0)
    commit()
    await Promise.all([erasing, tapping])
    assert.deepEqual(await database.query('select country from tap_log'), [{ country: 'DE' }])
    assert.deepEqual(await database.query('select countries from tap_anomaly'), [])
  })
})
