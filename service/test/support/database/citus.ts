/**
 * Databases on a Citus cluster for tests (`npm run test:citus`). Each is a copy of a template on every node, which takes a second: the
 * tables of today, distributed over the workers, with no rows.
 */
import { openDatabase } from '../../../src/db/database.ts'
import { distribute } from '../../../src/db/cluster/distribute.ts'
import { migrate } from '../../../src/db/migrate.ts'

/** The coordinator, where the tests run on a cluster; undefined elsewhere. */
export const citusUrl = process.env['TEST_CITUS_URL']

const template = 'touchstone_template'

/** Makes the template. `workers` are the ports of the workers on loopback. */
export async function makeTemplate(coordinator: string, workers: readonly number[]): Promise<void> {
  const url = new URL(coordinator)
  const nodes = [Number(url.port), ...workers]
  for (const port of nodes) {
    await onNode(url, port, 'postgres', [`create database ${template}`])
    await onNode(url, port, template, ['create extension citus'])
  }
  await onNode(url, nodes[0], template, [
    `select citus_set_coordinator_host('127.0.0.1', ${nodes[0]})`,
    ...workers.map((port) => `select citus_add_node('127.0.0.1', ${port})`),
  ])
  const database = await openDatabase({ url: urlOf(url, Number(url.port), template), statementTimeoutMs: 60_000 })
  await migrate(database)
  await distribute(database, { shards: 4 })
  await database.close()
  // A template that is in use cannot be copied, and Citus itself keeps a session open in each database.
  for (const port of nodes)
    await onNode(url, port, 'postgres', [
      `alter database ${template} allow_connections false`,
      `select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = '${template}'`,
    ])
}

/** Copies the template; `drop` removes the copy from all nodes. */
export async function createCitusDatabase(coordinator: string, name: string) {
  const url = new URL(coordinator)
  const ports = [Number(url.port), ...(process.env['TEST_CITUS_WORKERS'] ?? '').split(',').filter(Boolean).map(Number)]
  const each = (statement: string) => Promise.all(ports.map((port) => onNode(url, port, 'postgres', [statement])))
  await each(`create database ${name} template ${template} strategy file_copy`)
  return { url: urlOf(url, Number(url.port), name), drop: () => each(`drop database ${name} with (force)`) }
}

async function onNode(
  url: URL,
  port: number | undefined,
  database: string,
  statements: readonly string[],
): Promise<void> {
  const node = await openDatabase({ url: urlOf(url, port ?? 0, database), poolSize: 1, statementTimeoutMs: 120_000 })
  try {
    for (const statement of statements) await node.exec(statement)
  } finally {
    await node.close()
  }
}

function urlOf(url: URL, port: number, database: string): string {
  return Object.assign(new URL(url), { port: String(port), pathname: `/${database}` }).href
}
