/** The database is replaced by its standby, or the pooler before it dies: everything must be answered again within seconds. */
import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { startPgBouncer, type PgBouncer } from '../../../service/test/support/database/pgbouncer.ts'
import type { Fleet } from '../fleet.ts'
import { kinds, type Record } from '../record.ts'
import { type Fault, NotRun } from './fault.ts'

/** Every kind of request succeeds on every instance within this time. On a busy machine the chain may not answer (502). */
const backMs = 15_000
/** Refusals of the database in so long before that are a broken promise. */
const lastMs = 5_000
/** Time in which a cluster manager notices the death of the primary. */
export const noticeMs = 1_000

export const postgresFailover: Fault = {
  about: 'SIGKILL of the primary of PostgreSQL, which stays away; its synchronous standby is promoted',
  async prepare({ postgres }, made) {
    await postgres.addStandby()
    made.defer(() => postgres.dropStandby())
  },
  async strike(fleet, ms, record) {
    await delay(ms)
    await fleet.postgres.kill()
    await delay(noticeMs)
    await fleet.postgres.promote()
    return `all was answered ${await backAfter(fleet, record)} after the promotion`
  },
}

let pooler: PgBouncer | undefined

/** Returns the PgBouncer of the fault that runs; nothing under any other. */
export const currentPooler = () => pooler

export const pgbouncerRestart: Fault = {
  about: 'SIGKILL of PgBouncer, through which all statements go, and a new one on its port',
  async prepare({ postgres }, made) {
    if (!existsSync('/usr/sbin/pgbouncer')) throw new NotRun('PgBouncer is not installed')
    pooler = made.adopt(await startPgBouncer(postgres.primaryUrl(), { poolSize: 5 }), (it) => it.close())
  },
  wishes: ({ instances, postgres }) =>
    Object.fromEntries(
      instances.map(({ name }) => [
        name,
        { env: { DATABASE_URL: pooler?.url ?? '', DATABASE_DIRECT_URL: postgres.url } },
      ]),
    ),
  async strike(fleet, ms, record) {
    await pooler?.kill()
    await delay(ms)
    await pooler?.start()
    return `all was answered ${await backAfter(fleet, record)} after its start`
  },
}

export async function backAfter({ instances }: Fleet, record: Record): Promise<string> {
  const since = performance.now()
  const names = instances.map(({ name }) => name)
  const missing = () => record.silentSince(since, kinds, names)
  while (missing().length > 0 && performance.now() - since < backMs) await delay(50)
  const isLate = record.attempts.some(
    ({ at, status, outcome }) =>
      at > performance.now() - lastMs && (outcome === 'gone' || (outcome === 'refused' && status === 503)),
  )
  if (missing().length > 0 && isLate) record.broke(`not back after ${backMs / 1_000} s: ${missing().join(', ')}`)
  return `${((performance.now() - since) / 1_000).toFixed(1)} s`
}
