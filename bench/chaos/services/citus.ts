/**
 * A Citus cluster for one test run. It has a coordinator that has a standby when one is wanted, and workers that can be killed and added.
 */
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Database, openDatabase } from '../../../service/src/db/database.ts'
import { citusLacks, installCitus } from '../../../service/test/support/database/citus-cluster.ts'
import { type OwnPostgres, startOwnPostgres } from './postgres.ts'

export type OwnCitus = {
  readonly coordinator: OwnPostgres
  readonly workers: readonly OwnPostgres[]
  /** Starts another worker and makes it known; it has no shards yet. */
  readonly addWorker: () => Promise<OwnPostgres>
  /** Takes a worker without shards away, and ends it. */
  readonly removeWorker: (worker: OwnPostgres) => Promise<void>
  /** Writes the address of the present coordinator into the metadata of all nodes. */
  readonly announce: () => Promise<void>
  /** Runs a statement at a node. */
  readonly on: (node: OwnPostgres, statement: string) => Promise<void>
  readonly close: () => Promise<void>
}

const settings = {
  shared_preload_libraries: 'citus',
  wal_level: 'logical',
  max_prepared_transactions: '200',
  'citus.node_conninfo': 'sslmode=disable',
  'citus.recover_2pc_interval': '5s',
}

/** Throws an Error of one sentence where there is no build of Citus. */
export async function startOwnCitus(): Promise<OwnCitus> {
  const lacks = citusLacks()
  if (lacks !== null) throw new Error(`This needs Citus: ${lacks}.`)
  const folder = await mkdtemp(join(tmpdir(), 'touchstone-citus-'))
  await chmod(folder, 0o755) // PostgreSQL runs as another user
  const bin = installCitus(folder)
  const nodes = new Set<OwnPostgres>()
  const on = (node: OwnPostgres, statement: string) => within(node, (database) => database.exec(statement))
  async function startNode(): Promise<OwnPostgres> {
    const node = await startOwnPostgres({ bin, settings })
    nodes.add(node)
    await on(node, 'create extension citus')
    return node
  }
  const hostOf = (node: OwnPostgres) => `'127.0.0.1', ${new URL(node.primaryUrl()).port}`
  const coordinator = await startNode()
  const announce = () => on(coordinator, `select citus_set_coordinator_host(${hostOf(coordinator)})`)
  await announce()
  const addWorker = async () => {
    const worker = await startNode()
    await on(coordinator, `select citus_add_node(${hostOf(worker)})`)
    return worker
  }
  return {
    coordinator,
    workers: [await addWorker(), await addWorker()],
    addWorker,
    async removeWorker(worker) {
      await on(coordinator, `select citus_remove_node(${hostOf(worker)})`)
      nodes.delete(worker)
      await worker.close()
    },
    announce,
    on,
    async close() {
      for (const node of nodes) await node.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function within(node: OwnPostgres, work: (database: Database) => Promise<void>): Promise<void> {
  await using database = await openDatabase({ url: node.primaryUrl(), poolSize: 1, statementTimeoutMs: 120_000 })
  await work(database)
}
