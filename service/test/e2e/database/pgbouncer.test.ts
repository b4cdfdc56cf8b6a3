/** PgBouncer in transaction mode before PostgreSQL: everything works, sessions go to DATABASE_DIRECT_URL, and nothing starts without it. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { startFullWorld, textOf } from '../../support/database/backup-world.ts'
import { openOwnDatabase, noPostgres } from '../../support/database/databases.ts'
import { pgbouncerSkip, startPgBouncer } from '../../support/database/pgbouncer.ts'
import { testFolder } from '../../support/folder.ts'
import { bareCommandsOf } from '../../support/processes/cli.ts'
import { queryOf } from '../../support/passport/passport.ts'
import { useOpened } from '../../support/opened.ts'
import { until } from '../../support/wait.ts'
import { ConfigError, readConfig } from '../../../src/app/config/config.ts'
import { openStoreComponents } from '../../../src/app/store.ts'
import { openDatabase } from '../../../src/db/database.ts'
import { isTimeout } from '../../../src/db/errors.ts'
import { locks } from '../../../src/db/locks.ts'
import { createLog } from '../../../src/lib/log.ts'

const skip = pgbouncerSkip || noPostgres
/** Fewer than a process has connections: statements of several share each, whatever one of them left behind. */
const poolSize = 3
/** Settings of this client, as PgBouncer passes them on, and of this transaction. */
const ofThisLook = ['application_name', 'client_encoding', 'transaction_isolation', 'transaction_read_only']

describe('behind PgBouncer in transaction mode', { skip }, () => {
  const database = useOpened(openOwnDatabase)
  const pooler = useOpened(() => startPgBouncer(database.url, { poolSize }))
  const full = useOpened(() => startFullWorld(behind()))

  const behind = () => ({
    DATABASE_URL: pooler.url,
    DATABASE_DIRECT_URL: database.url,
    RATE_LIMIT_STORE: 'postgres',
    RATE_LIMIT_TAP: '1000',
  })

  it('products are registered, offered, sold and listed, attestations are paid, and the index agrees', async () => {
    const { out, exit } = await full.run('index', 'verify')
    assert.equal(exit, 0, out)
    const [counted] = await database.query<{ payments: bigint; transfers: bigint; limited: bigint }>(
      `select (select count(*) from payment) as payments, (select count(*) from transfer) as transfers, (select count(*) from rate_window) as limited`,
    )
    assert.ok(
      counted && counted.payments > 0n && counted.transfers > 0n && counted.limited > 0n,
      String(counted?.limited),
    )
  })

  it('a tap counts once however many present it at the same moment, and a subscription announces it once', async () => {
    const events = await full.graphql.listen('subscription { productVerified { verifiedAt } }')
    const path = `/api/verify?${queryOf(full.unused)}`
    const answers = await Promise.all(Array.from({ length: 40 }, () => textOf(full.world.url, path)))
    assert.equal(answers.filter((text) => text.includes('"verified":true')).length, 1)
    assert.equal(answers.filter((text) => text.includes('"reason":"replayed"')).length, 39)
    await until(() => events.length > 0)
    assert.equal(events.length, 1)
  })

  it('a notice arrives: LISTEN goes to PostgreSQL itself', async () => {
    const other = await openDatabase({ url: pooler.url, directUrl: database.url })
    let notices = 0
    other.listen('news', () => (notices += 1))
    await until(() => notices > 0)
    const first = notices
    await full.world.components.database.query(`select pg_notify('news', '')`)
    await until(() => notices > first)
    await other.close()
  })

  it('one process leads: a lock is held by a session of its own', async () => {
    const other = await openDatabase({ url: pooler.url, directUrl: database.url })
    try {
      await until(async () => (await full.world.components.indexer.status()).role === 'leader')
      for (let tries = 0; tries < 20; tries += 1) assert.equal(await other.hold(locks.indexLeader), null)
    } finally {
      await other.close()
    }
  })

  it('a backup is read, and restored into another database through its pooler', async () => {
    assert.equal((await full.run('backup', 'pooled.backup')).exit, 0)
    const target = await openOwnDatabase()
    const second = await startPgBouncer(target.url, { poolSize: 1 })
    try {
      const place = await full.place('PGlite')
      const restore = bareCommandsOf({ ...place.settings, DATABASE_URL: second.url, DATABASE_DIRECT_URL: target.url })
      const { exit, err } = await restore('restore', `${full.world.settings.DATA_DIR}/pooled.backup`)
      assert.equal(exit, 0, err)
      const [row] = await target.query<{ products: bigint }>('select count(*) as products from asset')
      assert.ok((row?.products ?? 0n) > 0n)
    } finally {
      await second.close()
      await target.close()
    }
  })

  it('leaves no setting, lock or prepared statement in a connection that others use next', async () => {
    type Left = { pid: number; prepared: bigint; locks: bigint; changed: string[] | null }
    const left = `select pg_backend_pid() as pid, (select count(*) from pg_prepared_statements) as prepared,
      (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()) as locks,
      (select array_agg(name) from pg_settings where source = 'session' and name <> all ($1)) as changed`
    const pooled = await openDatabase({ url: pooler.url })
    try {
      await until(async () => {
        const looks = Array.from({ length: 10 }, () =>
          pooled.transaction(async (sql) => {
            await delay(20) // so that every connection of PgBouncer is in use
            return sql.query<Left>(left, [ofThisLook])
          }),
        )
        const states = (await Promise.all(looks)).flat()
        for (const { pid: _, ...state } of states) assert.deepEqual(state, { prepared: 0n, locks: 0n, changed: null })
        return new Set(states.map(({ pid }) => pid)).size === poolSize
      })
    } finally {
      await pooled.close()
    }
  })

  it('comes back by itself when PgBouncer was restarted', async () => {
    const path = `/01/09520001000010/21/none`
    assert.equal((await fetch(full.world.url + path)).status, 404)
    await pooler.kill()
    assert.equal((await fetch(full.world.url + path)).status, 503)
    await pooler.start()
    await until(async () => (await fetch(full.world.url + path)).status === 404)
  })
})

describe('DATABASE_DIRECT_URL', { skip }, () => {
  const opened = new AsyncDisposableStack()
  let database: Awaited<ReturnType<typeof openOwnDatabase>>
  before(async () => {
    database = opened.use(await openOwnDatabase('migrated'))
  })
  after(() => opened.disposeAsync())
  const startStore = async (env: Record<string, string>) => {
    const lines: string[] = []
    const log = createLog((line) => lines.push(line))
    const DATA_DIR = testFolder()
    await using _store = await openStoreComponents(readConfig({ DATA_DIR, MIGRATE: 'off', ...env }), log)
    return lines
  }

  it('is needed where DATABASE_URL is a pooler, even one that ignores what it does not know', async () => {
    const settings = ['ignore_startup_parameters = statement_timeout']
    for (const pooler of [await startPgBouncer(database.url), await startPgBouncer(database.url, { settings })]) {
      opened.adopt(pooler, (it) => it.close())
      const message = /set DATABASE_DIRECT_URL to PostgreSQL itself/
      await assert.rejects(startStore({ DATABASE_URL: pooler.url }), { constructor: ConfigError, message })
      const both = { DATABASE_URL: pooler.url, DATABASE_DIRECT_URL: pooler.url }
      await assert.rejects(startStore(both), { constructor: ConfigError, message })
      await assert.rejects(
        openDatabase({ url: pooler.url }).then((it) => it.hold([84532, 7])),
        message,
      )
    }
  })

  it('needs DATABASE_URL, and is shown by no message', () => {
    const DATABASE_DIRECT_URL = 'postgres://touchstone:hidden@127.0.0.1/x'
    assert.throws(() => readConfig({ DATABASE_DIRECT_URL }), { constructor: ConfigError, message: /set that as well/ })
    assert.throws(() => readConfig({ DATABASE_DIRECT_URL: 'hidden' }), /must be .*found something else/)
  })

  it('leaves the time limit of a statement to the role or to PgBouncer, and the log says where there is none', async () => {
    const [endless, limited] = [
      opened.adopt(await startPgBouncer(database.url), (it) => it.close()),
      opened.adopt(
        await startPgBouncer(database.url, { database: `connect_query='set statement_timeout = 200'` }),
        (it) => it.close(),
      ),
    ]
    const warned = (lines: readonly string[]) => lines.filter((line) => line.includes('have no time limit')).length
    const direct = { DATABASE_DIRECT_URL: database.url }
    assert.equal(warned(await startStore({ DATABASE_URL: endless.url, ...direct })), 1)
    assert.equal(warned(await startStore({ DATABASE_URL: limited.url, ...direct })), 0)
    assert.equal(warned(await startStore({ DATABASE_URL: database.url })), 0)
    const pooled = await openDatabase({ url: limited.url })
    await assert.rejects(pooled.query('select pg_sleep(30)'), isTimeout)
    await pooled.close()
  })
})
