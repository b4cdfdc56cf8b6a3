/**
 * Faults of a Citus cluster: a worker or the coordinator dies, or a worker is added while the service writes. While a node is away,
 * requests are refused with 503, and never with 500; while shards move, none is refused. The chain of a busy machine may refuse any (502).
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Fleet } from '../fleet.ts'
import type { Record } from '../record.ts'
import type { OwnCitus } from '../services/citus.ts'
import { backAfter, noticeMs } from './database.ts'
import type { Fault } from './fault.ts'

export const citusWorkerKill: Fault = {
  about: 'SIGKILL of a worker of a Citus cluster, with half of the products and tags; it comes back',
  onCluster: true,
  async strike(fleet, ms, record) {
    const worker = workerOf(fleet)
    const check = refusalsFrom(record)
    await worker.kill()
    await delay(ms)
    await worker.start()
    const back = await backAfter(fleet, record)
    check()
    return `all was answered ${back} after its start`
  },
}

export const citusRebalance: Fault = {
  about: 'a worker is added to a Citus cluster and takes its share of the shards; then it gives them back and goes',
  onCluster: true,
  async strike(fleet, ms, record) {
    const { coordinator, addWorker, removeWorker, on } = clusterOf(fleet)
    const check = refusalsFrom(record, [500, 503])
    const worker = await addWorker()
    const began = performance.now()
    await on(coordinator, `select citus_rebalance_start(shard_transfer_mode => 'force_logical')`)
    await on(coordinator, 'select citus_rebalance_wait()')
    const took = performance.now() - began
    await delay(Math.max(0, ms - took))
    const moved = await shardsOf(fleet, worker.primaryUrl())
    if (moved === 0) record.broke('the new worker has no shards')
    await on(coordinator, `select citus_drain_node('127.0.0.1', ${new URL(worker.primaryUrl()).port}, 'force_logical')`)
    await removeWorker(worker)
    check()
    const longest = Math.max(...record.attempts.filter(({ at }) => at >= began).map((attempt) => attempt.took))
    return `${moved} shards moved in ${(took / 1_000).toFixed(1)} s and back; the longest answer took ${(longest / 1_000).toFixed(1)} s`
  },
}

export const citusCoordinatorKill: Fault = {
  about: 'SIGKILL of the coordinator of a Citus cluster, its children still at work; it comes back',
  onCluster: true,
  async strike(fleet, ms, record) {
    const check = refusalsFrom(record)
    await fleet.postgres.kill()
    await delay(ms)
    await fleet.postgres.start()
    const back = await backAfter(fleet, record)
    check()
    return `all was answered ${back} after its start`
  },
}

export const citusFailover: Fault = {
  about: 'SIGKILL of the coordinator of a Citus cluster, which stays away; its synchronous standby is promoted',
  onCluster: true,
  async prepare({ postgres }, made) {
    await postgres.addStandby()
    made.defer(() => postgres.dropStandby())
  },
  async strike(fleet, ms, record) {
    const { coordinator, announce } = clusterOf(fleet)
    const check = refusalsFrom(record)
    await delay(ms)
    await coordinator.kill()
    await delay(noticeMs)
    await coordinator.promote()
    await announce()
    const back = await backAfter(fleet, record)
    check()
    return `all was answered ${back} after the promotion`
  },
}

export function clusterOf({ cluster }: Pick<Fleet, 'cluster'>): OwnCitus {
  if (cluster === null) throw new Error('The fleet of this fault is on one PostgreSQL.')
  return cluster
}

function workerOf(fleet: Fleet): OwnCitus['workers'][number] {
  const [worker] = clusterOf(fleet).workers
  if (worker === undefined) throw new Error('The cluster has no worker.')
  return worker
}

async function shardsOf({ database }: Fleet, worker: string): Promise<number> {
  const [row] = await database.query<{ n: number }>(
    'select count(*)::int as n from citus_shards where nodeport = $1 and citus_table_type = $2',
    [new URL(worker).port, 'distributed'],
  )
  return row?.n ?? 0
}

/** Returns a function that looks for requests since now without an answer, or with one of these statuses. */
function refusalsFrom(record: Record, statuses: readonly number[] = [500]): () => void {
  const since = performance.now()
  return () => {
    for (const { at, outcome, status, kind } of record.attempts)
      if (at > since && (outcome === 'gone' || (outcome === 'refused' && statuses.includes(status))))
        record.broke('a request was refused otherwise than it may be', `${kind} ${status}`)
  }
}
