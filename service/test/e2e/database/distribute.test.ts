/** `touchstone migrate --distribute` on a filled database that is killed on its way, and goes on. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { distributions, readCluster } from '../../../src/db/cluster/distribute.ts'
import { type Database, openDatabase } from '../../../src/db/database.ts'
import { locks } from '../../../src/db/locks.ts'
import { UnfitDatabaseError } from '../../../src/db/postgres/fitness.ts'
import { createReplayLedger } from '../../../src/tap/replay-ledger.ts'
import { citusUrl, openBareCitusDatabase } from '../../support/database/citus.ts'
import { testFolder } from '../../support/folder.ts'
import { useOpened } from '../../support/opened.ts'
import { touchstone, untilSaid } from '../../support/processes/cli.ts'
import { until } from '../../support/wait.ts'

const products = 20_000
const tables = distributions.map(({ table }) => table)
const urlOf = (source: string) => JSON.stringify(new URL(`../../../src/${source}`, import.meta.url).href)

describe(
  'touchstone migrate --distribute',
  { skip: citusUrl === undefined ? 'npm run test:citus runs it' : false },
  () => {
    const database = useOpened(openBareCitusDatabase)
    const folder = testFolder()
    before(async () => {
      // By a process of its own: the plans of migrations are not those of the program.
      assert.equal((await touchstone(['migrate'], env()).ended).exit, 0)
      for (const statement of fillStatements) await database.query(statement, [products])
    })

    const env = () => ({ DATA_DIR: folder, DATABASE_URL: database.url })
    const distributing = () => touchstone(['migrate', '--distribute'], env())

    it('goes on after each kill, and ends with every row', async () => {
      const rows = await contentsOf(database)
      for (const table of ['asset', 'history', 'tag']) {
        const running = distributing()
        await untilSaid(running, `\n${table} `)
        running.child.kill('SIGKILL') // the copy of the next table has begun
        const { out } = await running.ended
        assert.match(out, new RegExp(`^${table} `, 'm'))
        const missing = (await readCluster(database))?.missing ?? []
        assert.ok(!missing.includes(table) && missing.length > 0, missing.join())
        assert.deepEqual(await contentsOf(database), rows)
        const early = await touchstone(['key', 'list'], env()).ended
        assert.notEqual(early.exit, 0)
        assert.match(early.err, /distributed in part/)
      }
      const next = (await readCluster(database))?.missing[0] ?? assert.fail()
      const stopped = distributing()
      await database.transaction(async (sql) => {
        await sql.query(`lock table ${next}`)
        await until(async () => (await database.query(waitingStatement)).length > 0)
        stopped.child.kill('SIGINT')
        const { exit, err } = await stopped.ended
        assert.deepEqual(
          [exit, err],
          [1, `touchstone: The command was interrupted before ${next}. Repeat it to go on.\n`],
        )
      })
      assert.deepEqual(await contentsOf(database), rows)
      const held = await database.hold(locks.distribution)
      assert.match((await touchstone(['key', 'list'], env()).ended).err, /distributed at the moment/)
      const waiting = distributing()
      const [said] = (await once(waiting.child.stderr ?? waiting.child, 'data')) as [Buffer]
      assert.match(said.toString(), /^Another process distributes/)
      await held?.release()
      const { exit, out, err } = await waiting.ended
      assert.equal(exit, 0, err)
      assert.match(out, /^\d tables are distributed now\.$/m)
      assert.deepEqual((await readCluster(database))?.missing, [])
      assert.deepEqual(await contentsOf(database), rows)
      assert.equal((await touchstone(['key', 'list'], env()).ended).exit, 0)
      assert.match((await distributing().ended).out, /^All tables were distributed already\.$/m)
    })

    it('is followed by later migrations, on the distributed tables', async () => {
      await using former = await openBareCitusDatabase()
      const formerEnv = { DATA_DIR: folder, DATABASE_URL: former.url }
      assert.equal((await touchstone(['migrate', '--to', '0042'], formerEnv).ended).exit, 0)
      // By a process of its own, as above.
      const script = `import { openDatabase } from ${urlOf('db/database.ts')}
        import { distribute } from ${urlOf('db/cluster/distribute.ts')}
        const database = await openDatabase({ url: ${JSON.stringify(former.url)} })
        await distribute(database)
        await database.close()`
      await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script])
      const { exit, out, err } = await touchstone(['migrate'], formerEnv).ended
      assert.equal(exit, 0, err)
      assert.match(out, /^0043-/m)
    })

    it('leaves tables that take taps, each on its shard', async () => {
      await using cluster = await openDatabase({ url: database.url })
      assert.equal(cluster.dialect, 'citus')
      const ledger = createReplayLedger({ sql: cluster })
      const tap = (uid: number, counter: number) =>
        ledger.consume({
          uid: Buffer.from(uid.toString(16).padStart(14, '0'), 'hex'),
          epoch: 0,
          counter,
          picc: Buffer.alloc(16, counter),
          batchId: 'filled',
        })
      const outcomes = await Promise.all(Array.from({ length: 50 }, (_, uid) => tap(uid + 1, 8)))
      assert.deepEqual(new Set(outcomes.map(({ outcome }) => outcome)), new Set(['FRESH']))
      assert.equal((await tap(1, 7)).outcome, 'REPLAY')
    })

    it('does not open where a worker has a setting that changes answers, until it has the right one', async () => {
      // Workers take the settings of databases and roles over from the coordinator.
      const change = `alter database ${new URL(database.url).pathname.slice(1)} set default_transaction_isolation`
      await database.exec(`${change} = serializable`)
      const fault = await openDatabase({ url: database.url }).catch((error: unknown) => error)
      assert.ok(fault instanceof UnfitDatabaseError)
      assert.match(fault.what, /^PostgreSQL at 127\.0\.0\.1:\d+ has default_transaction_isolation = 'serializable'/)
      await database.exec(/alter .*'/.exec(fault.remedy)?.[0] ?? '')
      await (await openDatabase({ url: database.url })).close()
    })
  },
)

/** Selects what waits for a lock of a table. */
const waitingStatement = `select 1 from pg_locks where not granted and locktype = 'relation'
  and database = (select oid from pg_database where datname = current_database())`

/** Returns the number of rows of each table and a sum over their contents. */
async function contentsOf(database: Database): Promise<Record<string, unknown>> {
  const contents: Record<string, unknown> = {}
  for (const table of tables) {
    const [row] = await database.query(
      `select count(*)::int as rows, sum(('x' || substr(md5(t::text), 1, 8))::bit(32)::bigint)::text as sum from ${table} t`,
    )
    contents[table] = row
  }
  return contents
}

const numbers = 'generate_series(1, $1::int) i'
const hashOf = (what: string) => `sha256(('${what}' || i)::bytea)`
const uid = `decode(lpad(to_hex(i), 14, '0'), 'hex')`

const fillStatements = [
  `insert into asset (token_id, owner, state, flags, metadata_hash, name, brand, created_at, updated_at, updated_block)
    select i, substr(${hashOf('owner')}, 1, 20), 1, 0, ${hashOf('text')}, 'Watch ' || i, 'Acme', now(), now(), i from ${numbers}`,
  `insert into transfer (id, token_id, asset_pk, from_addr, to_addr, status, initiated_at, initiated_tx)
    select i || '-1', i, a.pk, a.owner, a.owner, 'PENDING', now(), ${hashOf('tx')} from ${numbers} join asset a on a.token_id = i`,
  `insert into history (block_number, log_index, token_id, kind, block_hash, tx_hash, ts)
    select i, 0, i, 1, ${hashOf('block')}, ${hashOf('tx')}, now() from ${numbers}`,
  `insert into item (token_id, gtin, serial) select i, '09520123456788', 'S' || i from ${numbers}`,
  `insert into asset_tap (token_id) select i from ${numbers}`,
  `insert into tag_batch (id, epoch) select 'filled', 0 where $1::int > 0`,
  `insert into tag (uid, epoch, batch_id, last_counter, token_id, registered_at) select ${uid}, 0, 'filled', 7, i, now() from ${numbers}`,
  `insert into tap (uid, epoch, counter, picc) select ${uid}, 0, 7, substr(${hashOf('picc')}, 1, 16) from ${numbers}`,
  `insert into metadata (hash, body) select ${hashOf('text')}, '{}' from ${numbers}`,
  `insert into transfer_message (hash, body) select ${hashOf('message')}, 'Hello' from ${numbers}`,
]
