/**
 * Databases on a Citus cluster for tests (`npm run test:citus`). Each is a copy of a template on every node, which takes a second: the
 * tables of today, distributed over the workers, with no rows.
 */
import { randomBytes } from 'node:crypto'
import { type Database, openDatabase } from '../../../src/db/database.ts'
import { sqlState } from '../../../src/db/errors.ts'
import { retry } from '../../../src/lib/async/retry.ts'
import { distribute } from '../../../src/db/cluster/distribute.ts'
import { migrate } from '../../../src/db/migrate.ts'

/** The coordinator, where the tests run on a cluster; undefined elsewhere. */
export const citusUrl = process.env['TEST_CITUS_URL']

const template = 'touchstone_template'

/** Makes the template. `workers` are the ports of the workers on loopback. */
export async function makeTemplate(coordinator: string, workers: readonly number[]): Promise<void> {
  const url = new URL(coordinator)
  const database = await openDatabase({
    url: await createBareDatabase(url, workers, template),
    statementTimeoutMs: 60_000,
  })
  await migrate(database)
  await distribute(database, { shards: 4 })
  await database.close()
  // A template that is in use cannot be copied, and Citus itself keeps a session open in each database.
  for (const port of [Number(url.port), ...workers])
    await onNode(url, port, 'postgres', [
      `alter database ${template} allow_connections false`,
      `select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = '${template}'`,
    ])
}

/** Creates a database without tables on every node, and returns its URL at the coordinator. */
export async function createBareDatabase(coordinator: URL, workers: readonly number[], name: string): Promise<string> {
  const nodes = [Number(coordinator.port), ...workers]
  for (const port of nodes) {
    await onNode(coordinator, port, 'postgres', [`create database ${name}`])
    await onNode(coordinator, port, name, ['create extension citus'])
  }
  await onNode(coordinator, nodes[0], name, [
    `select citus_set_coordinator_host('127.0.0.1', ${nodes[0]})`,
    ...workers.map((port) => `select citus_add_node('127.0.0.1', ${port})`),
  ])
  return urlOf(coordinator, Number(coordinator.port), name)
}

const workerPorts = () => (process.env['TEST_CITUS_WORKERS'] ?? '').split(',').filter(Boolean).map(Number)
const drop = (coordinator: URL, name: string) =>
  Promise.all(
    [Number(coordinator.port), ...workerPorts()].map((port) =>
      // Citus itself opens a session of its own again in the meantime (55006).
      retry(() => onNode(coordinator, port, 'postgres', [`drop database ${name} with (force)`]), {
        pausesMs: [100, 500, 2_000],
        isRetryable: (error) => sqlState(error) === '55006',
      }),
    ),
  )

/** A database without tables on the cluster of the tests; closing it drops it. */
export async function openBareCitusDatabase(): Promise<Database & { readonly url: string }> {
  const coordinator = new URL(citusUrl ?? '')
  const name = `touchstone_test_${randomBytes(6).toString('hex')}`
  const url = await createBareDatabase(coordinator, workerPorts(), name)
  const database = await openDatabase({ url, statementTimeoutMs: 60_000 })
  const close = async () => {
    await database.close()
    await drop(coordinator, name)
  }
  return { ...database, url, close, [Symbol.asyncDispose]: close }
}

/** Copies the template; `drop` removes the copy from all nodes. */
export async function createCitusDatabase(coordinator: string, name: string) {
  const url = new URL(coordinator)
  const copy = `create database ${name} template ${template} strategy file_copy`
  await Promise.all([Number(url.port), ...workerPorts()].map((port) => onNode(url, port, 'postgres', [copy])))
  return { url: urlOf(url, Number(url.port), name), drop: () => drop(url, name) }
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
