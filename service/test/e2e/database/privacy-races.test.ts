/** An erasure while offers with the same words are stored: it deletes no text of others, and no text that it does not mark as erased. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { keccak256, stringToHex } from 'viem'
import { countLockWaits, noPostgres, openOwnDatabase } from '../../support/database/databases.ts'
import { eventually } from '../../support/wait.ts'
import { citusUrl } from '../../support/database/citus.ts'
import type { Database } from '../../../src/db/database.ts'
import { putTransferMessage } from '../../../src/graphql/mutations/stores.ts'
import { erasePersonalData } from '../../../src/privacy/personal-data.ts'

const [alice, bob, carol] = [`0x${'a'.repeat(40)}`, `0x${'b'.repeat(40)}`, `0x${'c'.repeat(40)}`] as const
const skip = noPostgres !== false ? noPostgres : citusUrl !== undefined && 'no erasure on Citus'

describe('an erasure while offers are stored', { skip }, () => {
  let database: Awaited<ReturnType<typeof openOwnDatabase>>
  before(async () => {
    database = await openOwnDatabase('migrated')
  })
  after(() => database.close())

  const store = (by: Pick<Database, 'transaction'>, body: string, offer: { id: string; from: typeof alice }) =>
    putTransferMessage(by, { hash: keccak256(stringToHex(body)), body, offer: { ...offer, to: carol } })
  const eraseOfAlice = (by: Pick<Database, 'transaction'> = database) =>
    erasePersonalData(by, {
      subject: { owner: alice },
      tagHashes: () => [],
      actor: { who: 'local:test' },
      reference: 'case-1',
      dryRun: false,
    })
  const texts = async (body: string) =>
    (await database.query('select from transfer_message where body = $1', [body])).length
  const offers = async (id: string) =>
    (await database.query('select from offered_message where transfer_id = $1', [id])).length

  it('keeps a text that another person offers at the same moment', async () => {
    await store(database, 'Enjoy it', { id: '1-1', from: alice })
    const stored = Promise.withResolvers<void>()
    const committed = Promise.withResolvers<void>()
    const slow: Pick<Database, 'transaction'> = {
      transaction: (run, options) =>
        database.transaction(async (sql) => {
          const result = await run(sql)
          stored.resolve()
          await committed.promise
          return result
        }, options),
    }
    const storing = store(slow, 'Enjoy it', { id: '2-1', from: bob })
    await stored.promise
    let isErased = false
    const erasing = eraseOfAlice().then(() => (isErased = true))
    await eventually(async () => isErased || (await countLockWaits(database)) > 0)
    committed.resolve()
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
})
