/**
 * A database for one benchmark. It is on the PostgreSQL server of the tests (`TEST_DATABASE_URL`, else the one on this machine), or on a
 * Citus cluster.
 */
import { randomBytes } from 'node:crypto'
import { openDatabase, type Database } from '../../service/src/db/database.ts'
import { createBareDatabase } from '../../service/test/support/database/citus.ts'
import type { CitusCluster } from '../../service/test/support/database/citus-cluster.ts'

export type OwnDatabase = { readonly url: string; readonly sql: Database; readonly drop: () => Promise<void> }

/** An Error of one sentence where no PostgreSQL answers. `statementTimeoutMs` is the limit of its own connections only. */
export async function createOwnDatabase({
  statementTimeoutMs = 120_000,
  serverUrl = process.env['TEST_DATABASE_URL'] ?? 'postgres://postgres@127.0.0.1:5432/postgres',
} = {}): Promise<OwnDatabase> {
  const server = new URL(serverUrl)
  const name = `touchstone_bench_${randomBytes(4).toString('hex')}`
  await onServer(server, `create database ${name}`)
  const url = new URL(server)
  url.pathname = `/${name}`
  const sql = await openDatabase({ url: url.href, poolSize: 3, statementTimeoutMs })
  const drop = async () => {
    await sql.close()
    await onServer(server, `drop database ${name} with (force)`)
  }
  return { url: url.href, sql, drop }
}

/** A database without tables on every node, which goes with the cluster. */
export async function createClusterDatabase(
  { url: coordinator, workerPorts }: CitusCluster,
  { statementTimeoutMs = 120_000 } = {},
): Promise<OwnDatabase> {
  const name = `touchstone_bench_${randomBytes(4).toString('hex')}`
  const url = await createBareDatabase(new URL(coordinator), workerPorts, name)
  const sql = await openDatabase({ url, poolSize: 3, statementTimeoutMs })
  return { url, sql, drop: () => sql.close() }
}

async function onServer(server: URL, statement: string): Promise<void> {
  const opening = openDatabase({ url: server.href, poolSize: 1, statementTimeoutMs: 30_000 })
  await using admin = await opening.catch((cause: unknown) => {
    throw new Error(`This benchmark needs PostgreSQL at ${server.host}; TEST_DATABASE_URL names another.`, { cause })
  })
  await admin.exec(statement)
}
