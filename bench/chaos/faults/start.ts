/** Signals, starts and locks. A storm of SIGHUP while workers start, and a start while a writer holds the lock of the events. */
import { setTimeout as delay } from 'node:timers/promises'
import { locks } from '../../../service/src/db/locks.ts'
import type { Instance } from '../services/instance.ts'
import type { Fault } from './fault.ts'

const stormMs = 10
/** A start waits for the lock for half a minute at least. */
const longestLockMs = 20_000

export const sighupStorm: Fault = {
  about:
    'SIGHUP a hundred times a second to one process, and to workers that start meanwhile; none ends, no request is lost',
  wishes: () => ({ b: { args: ['--workers', '2'] } }),
  async strike({ instances: [single, workers] }, ms, record) {
    if (single === undefined || workers === undefined) return
    const sent = { [single.name]: 0, [workers.name]: 0 }
    const storm = (instance: Instance) => {
      const timer = setInterval(() => {
        instance.signal('SIGHUP')
        sent[instance.name] = (sent[instance.name] ?? 0) + 1
      }, stormMs)
      return { [Symbol.dispose]: () => clearInterval(timer) }
    }
    const [began, notServed] = [performance.now(), record.asked.not]
    using _single = storm(single)
    await workers.stop()
    const starting = workers.start().catch((error: unknown) => record.broke('workers did not start', String(error)))
    await workers.prints(/./).catch(() => {}) // its handlers are there before its first line
    using _workers = storm(workers)
    await starting
    const started = performance.now()
    await delay(ms)
    const since = { [single.name]: began, [workers.name]: started }
    const lost = record.attempts.filter(
      ({ at, took, instance, outcome }) => outcome === 'gone' && at - took > (since[instance] ?? 0),
    )
    for (const { kind, instance } of lost) record.broke(`${instance} did not answer`, kind)
    if (record.asked.not > notServed) record.broke(`${record.asked.not - notServed} requests were lost`)
    return `${sent[single.name]} and ${sent[workers.name]} signals`
  },
}

export const startDuringLock: Fault = {
  about: 'an instance starts while a writer holds the lock of the events for some seconds; it waits, and comes up',
  async strike({ instances: [starting], database }, ms, record) {
    if (starting === undefined) return
    await starting.stop()
    let isUp: Promise<void> | undefined
    await database.transaction(async (sql) => {
      await sql.query('select pg_advisory_xact_lock_shared($1, $2)', locks.outbox)
      isUp = starting.start().catch((error: unknown) => record.broke(`${starting.name} did not start`, String(error)))
      await starting
        .prints(/a writer holds the events/)
        .catch(() => record.broke('the start did not wait for the lock'))
      await delay(Math.min(ms, longestLockMs))
    })
    await isUp
  },
}
