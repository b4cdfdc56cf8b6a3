/** Erasures go to the rows of one person by index. These are the plans of PostgreSQL over the taps of 100,000 tags. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Database } from '../../src/db/database.ts'
import { erasePersonalData } from '../../src/privacy/personal-data.ts'
import { testDatabases } from '../support/database/databases.ts'

const [, postgres] = testDatabases()
const uid = Uint8Array.from([4, 0, 0, 0, 0, 0xc3, 0x50])

describe('plans of an erasure', { skip: postgres?.skip ?? true }, () => {
  let database: Database
  before(async () => {
    database = (await postgres?.open()) as Database
    for (const statement of fill) await database.query(statement)
    await database.exec('analyze')
  })
  after(() => database.close())

  it('read no table of taps from end to end', async () => {
    const plans: string[] = []
    const explained: Pick<Database, 'transaction'> = {
      transaction: (run, options) =>
        database.transaction(async (sql) => {
          const query = async <Row>(text: string, values?: readonly unknown[]) => {
            if (text.includes('delete from tap')) {
              const rows = await sql.query<{ 'QUERY PLAN': string }>(`explain ${text}`, values)
              plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'))
            }
            return sql.query<Row>(text, values)
          }
          return run({ query })
        }, options),
    }
    const search = { subject: { uid }, tagHashes: () => [hash] }
    const counts = await erasePersonalData(explained, {
      ...search,
      actor: { who: 'local:test' },
      reference: 'r',
      dryRun: true,
    })
    assert.deepEqual([counts['tap'], counts['presentation'], counts['anomaly']], [2, 2, 1])
    assert.equal(plans.length, 3)
    for (const plan of plans) assert.doesNotMatch(plan, /Seq Scan on (?:tap|tap_log|tap_anomaly) /)
  })
})

const hash = `0x${'a'.repeat(64)}` as const

/** Tag 50,000 of 100,000 is the one of the person. */
const fill = [
  `insert into tag (uid, epoch, batch_id, last_counter)
    select decode('04' || lpad(to_hex(i), 12, '0'), 'hex'), 0, 'b', 2 from generate_series(1, 100000) i`,
  `insert into tap (uid, epoch, counter, picc)
    select t.uid, 0, c, decode(md5(t.uid::text || c), 'hex') from tag t, generate_series(1, 2) c`,
  `insert into tap_log (tag_hash, counter, outcome, country, hour, times, first_at, last_at)
    select h, c, 'FRESH', 'IT', now(), 1, now(), now() from hashes, generate_series(1, 2) c`,
  `insert into tap_anomaly (tag_hash, kind, day, found_at) select h, 'TWO_PLACES', now(), now() from hashes`,
].map((statement) =>
  statement.replace(
    'from hashes',
    `from (select case i when 50000 then decode(repeat('aa', 32), 'hex') else sha256(i::text::bytea) end as h
      from generate_series(1, 100000) i) hashes`,
  ),
)
