/** Databases for tests: PGlite in memory, and a PostgreSQL database of its own that is dropped at the end. */
import { randomBytes } from 'node:crypto'
import { execFileSync } from 'node:child_process'
import { citusUrl, createCitusDatabase } from './citus.ts'
import { openEmptyPglite, type Tables } from './pglite.ts'
import { openDatabase, type Database, type Sql } from '../../../src/db/database.ts'
import { migrate } from '../../../src/db/migrate.ts'

export type TestDatabase = {
  readonly name: string
  readonly open: () => Promise<Database>
  readonly skip: string | false
}

/** The reason to skip tests that need a server, or `false`. */
export const noPostgres: string | false = postgresAnswers() ? false : `no PostgreSQL at ${serverUrl().host}`

/** Empty databases with today's tables, or none. PostgreSQL is skipped with a reason where none answers, unless `REQUIRE_SERVICES=1`. */
export function testDatabases(tables: Tables = 'migrated'): TestDatabase[] {
  return [
    {
      name: 'PGlite',
      open: () => openEmptyPglite(tables),
      skip: citusUrl === undefined ? false : 'these tests run on Citus',
    },
    {
      name: citusUrl === undefined ? 'PostgreSQL' : 'Citus',
      open: () => openOwnDatabase(tables),
      skip: noPostgres,
    },
  ]
}

/** A database at `url`, which closing drops. */
type OwnDatabase = Database & { readonly url: string }

/** A new database on the server; closing it drops it. On Citus it always has today's tables. */
export async function openOwnDatabase(tables: Tables = 'none'): Promise<OwnDatabase> {
  const name = newName()
  if (citusUrl !== undefined) {
    const { url, drop } = await createCitusDatabase(citusUrl, name)
    return opened(url, drop)
  }
  const template = tables === 'migrated' ? process.env[templateVariable] : undefined
  const database = await opened(await createDatabase(name, template), () => dropDatabase(name))
  if (tables === 'migrated' && template === undefined) await migrate(database)
  return database
}

/** Names the database that is copied where a test wants today's tables. */
const templateVariable = 'TEST_DATABASE_TEMPLATE'

/** Makes the template for the processes of tests that start later; disposing of it drops it. All migrations take seconds, a copy does not. */
export async function makeDatabaseTemplate(): Promise<AsyncDisposable> {
  if (citusUrl !== undefined || noPostgres !== false) return { [Symbol.asyncDispose]: async () => {} }
  const name = newName()
  const database = await openDatabase({ url: await createDatabase(name), statementTimeoutMs: 60_000 })
  await migrate(database)
  await database.close() // a database with a session cannot be copied
  process.env[templateVariable] = name
  return { [Symbol.asyncDispose]: () => dropDatabase(name) }
}

/** Returns how many sessions of the database wait for a lock of another one. */
export async function countLockWaits(sql: Sql): Promise<number> {
  const here = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  const text = citusUrl === undefined ? here : 'select from citus_lock_waits' // the lock may be on another node
  return (await sql.query(text)).length
}

const newName = () => `touchstone_test_${randomBytes(6).toString('hex')}`

async function opened(url: string, drop: () => Promise<unknown>): Promise<OwnDatabase> {
  const database = await openDatabase({ url, statementTimeoutMs: 60_000 })
  const close = async () => {
    await database.close()
    await drop()
  }
  return { ...database, url, close, [Symbol.asyncDispose]: close }
}

async function createDatabase(name: string, template?: string): Promise<string> {
  await onServer(`create database ${name}${template === undefined ? '' : ` template ${template}`}`)
  return Object.assign(serverUrl(), { pathname: `/${name}` }).href
}

const dropDatabase = (name: string) => onServer(`drop database ${name} with (force)`)

async function onServer(statement: string): Promise<void> {
  const server = await openDatabase({ url: serverUrl().href, poolSize: 1, statementTimeoutMs: 120_000 })
  await server.exec(statement).finally(() => server.close())
}

function serverUrl(): URL {
  return new URL(process.env['TEST_DATABASE_URL'] ?? 'postgres://postgres@127.0.0.1:5432/postgres')
}

function postgresAnswers(): boolean {
  if (process.env['REQUIRE_SERVICES'] === '1' || citusUrl !== undefined) return true
  const { hostname, port } = serverUrl()
  try {
    // bash connects without the start of another Node.
    execFileSync('bash', ['-c', '< "/dev/tcp/$0/$1"', hostname, port || '5432'], { timeout: 3_000, stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
