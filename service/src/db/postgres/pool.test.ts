import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { noPostgres, openOwnDatabase } from '../../../test/support/database/databases.ts'
import { pgbouncerSkip, startPgBouncer } from '../../../test/support/database/pgbouncer.ts'
import { type Database, openDatabase } from '../database.ts'
import { isDatabaseUnavailable } from '../../lib/errors.ts'
import { isLockTimeout, isTimeout } from '../errors.ts'
import { UnfitDatabaseError } from './fitness.ts'
import { OtherDatabaseError } from './identity.ts'

describe('the pool of PostgreSQL', { skip: noPostgres }, () => {
  const opened = new AsyncDisposableStack()
  let own: Awaited<ReturnType<typeof openOwnDatabase>>
  let database: Database
  before(async () => {
    own = opened.use(await openOwnDatabase())
    database = opened.use(await openDatabase({ url: own.url, poolSize: 1, statementTimeoutMs: 1_000 }))
  })
  after(() => opened.disposeAsync())

  it('waits for a long statement of a transaction that allows it, and for no other', async () => {
    const sleep = 'select pg_sleep(2.5)' // longer than the limit of the connection, and than the time that the driver waits
    await database.transaction((sql) => sql.query(sleep), { statementTimeoutMs: 60_000 })
    await assert.rejects(database.query(sleep), isTimeout)
    await assert.rejects(
      database.transaction((sql) => sql.query(sleep)),
      (error) => isTimeout(error) && isDatabaseUnavailable(error),
    )
  })

  it('says of a lock that is not given in time that it is unavailable', async () => {
    const other = opened.use(await openDatabase({ url: own.url, poolSize: 1 }))
    await own.exec('create table held (id int)')
    await own.transaction(async (sql) => {
      await sql.query('lock table held')
      const waiting = other.transaction(async ({ query }) => {
        await query(`set local lock_timeout = '10ms'`)
        await query('select from held for update')
      })
      await assert.rejects(waiting, (error) => isLockTimeout(error) && isDatabaseUnavailable(error))
    })
  })

  it('does not open where the URL of its sessions names another database', async () => {
    const other = opened.use(await openOwnDatabase())
    await assert.rejects(openDatabase({ url: own.url, directUrl: other.url }), OtherDatabaseError)
    const same = await openDatabase({ url: own.url, directUrl: `${own.url}?application_name=direct` })
    await same.close()
  })
  const opposite = {
    bytea_output: 'escape',
    DateStyle: 'SQL, DMY',
    default_transaction_isolation: 'serializable',
    standard_conforming_strings: 'off',
    array_nulls: 'off',
    gin_fuzzy_search_limit: '10',
  }
  const alter = (it: typeof own, what: string) => it.exec(`alter database ${new URL(it.url).pathname.slice(1)} ${what}`)

  it('returns the same whatever settings the database has', async () => {
    const odd = opened.use(await openOwnDatabase())
    for (const [name, value] of Object.entries(opposite)) await alter(odd, `set ${name} = ${quoted(value)}`)
    const options = encodeURIComponent('-c search_path=elsewhere')
    const again = opened.use(await openDatabase({ url: `${odd.url}?options=${options}`, poolSize: 1 }))
    const [row] = await again.query(
      String.raw`select decode('00ff5c', 'hex') as bytes, timestamptz '2026-11-28 00:00Z' at time zone 'UTC' = '2026-11-28' as same,
        (timestamptz '2026-11-28 00:00Z')::text as time, 'a\0' as text, array_position($1::text[], null) as place,
        current_setting('transaction_isolation') as isolation, current_setting('search_path') as path`,
      [['a', null]],
    )
    assert.match(String((row as { time: string }).time), /^2026-11-2[789] /)
    assert.deepEqual(
      { ...(row as object), time: '' },
      {
        bytes: Uint8Array.of(0, 255, 92),
        same: true,
        time: '',
        text: String.raw`a\0`,
        place: 2,
        isolation: 'read committed',
        path: 'elsewhere',
      },
    )
  })

  it(
    'does not open behind a pooler that hides such a setting, and says which statement mends it',
    { skip: pgbouncerSkip },
    async () => {
      const odd = opened.use(await openOwnDatabase())
      for (const [name, value] of Object.entries(opposite)) await alter(odd, `set ${name} = ${quoted(value)}`)
      const ignoring = `ignore_startup_parameters = statement_timeout,${Object.keys(opposite).join()}`
      const deaf = opened.adopt(await startPgBouncer(odd.url, { settings: [ignoring] }), (it) => it.close())
      await assert.rejects(openDatabase({ url: deaf.url }), UnfitDatabaseError)
      const pooler = opened.adopt(await startPgBouncer(odd.url), (it) => it.close())
      const named = new Set<string>()
      for (;;) {
        const it = await openDatabase({ url: pooler.url }).catch((error: unknown) => error)
        if (!(it instanceof UnfitDatabaseError)) {
          await (it as Database).close()
          break
        }
        const [, statement = '', name = ''] = /Run (alter .* set (.*) = .*), and let a pooler/.exec(it.remedy) ?? []
        assert.ok(!named.has(name), it.message)
        named.add(name)
        await odd.exec(statement)
        await pooler.kill()
        await pooler.start()
      }
      assert.deepEqual([...named].sort(), Object.keys(opposite).sort())
    },
  )

  it('does not open a database that takes no writes', async () => {
    const odd = opened.use(await openOwnDatabase())
    await alter(odd, 'set default_transaction_read_only = on')
    await assert.rejects(
      openDatabase({ url: odd.url }),
      (error) => error instanceof UnfitDatabaseError && /takes no writes/.test(error.message),
    )
  })

  it('does not open a database in another encoding than UTF8', async () => {
    for (const encoding of ['LATIN1', 'SQL_ASCII']) {
      const name = `${new URL(own.url).pathname.slice(1)}_${encoding.toLowerCase()}`
      await own.exec(`create database ${name} template template0 encoding '${encoding}' lc_collate 'C' lc_ctype 'C'`)
      try {
        const url = Object.assign(new URL(own.url), { pathname: `/${name}` }).href
        await assert.rejects(openDatabase({ url }), new RegExp(`has the encoding ${encoding}, and needs UTF8`))
      } finally {
        await own.exec(`drop database ${name} with (force)`)
      }
    }
  })
})

const quoted = (text: string) => `'${text}'`
