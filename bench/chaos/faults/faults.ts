/** The faults, each by its name: what it breaks, how that ends, and what it wants of the fleet besides. */
import { setTimeout as delay } from 'node:timers/promises'
import { citusCoordinatorKill, citusFailover, citusRebalance, citusWorkerKill } from './citus.ts'
import { clockStep } from './clock.ts'
import { pgbouncerRestart, postgresFailover } from './database.ts'
import { diskFull } from './disk.ts'
import { killLeader, logsEmpty } from './leader.ts'
import type { Fault } from './fault.ts'
import { liar } from './liar.ts'
import { firstProviderDead, providersFlaky, providersRateLimited } from './providers.ts'
import { sighupStorm, startDuringLock } from './start.ts'

export const faults: { readonly [name: string]: Fault } = {
  'kill-instance': {
    about: 'SIGKILL of one instance; it is started again after a second',
    async strike({ instances }, ms) {
      await instances[0]?.kill()
      await delay(ms)
    },
  },
  'kill-indexer-leader': killLeader,
  'postgres-restart': {
    about: 'PostgreSQL stops at once, as in an immediate shutdown, and comes back',
    async strike({ postgres }, ms) {
      await postgres.stopNow()
      await delay(ms)
      await postgres.start()
    },
  },
  'postgres-kill': {
    about: 'SIGKILL of the postmaster, its children still at work; it comes back',
    async strike({ postgres }, ms) {
      await postgres.kill()
      await delay(ms)
      await postgres.start()
    },
  },
  'postgres-failover': postgresFailover,
  'pgbouncer-restart': pgbouncerRestart,
  'redis-gone': {
    about: 'SIGKILL of Redis, which comes back empty',
    async strike({ redis }, ms) {
      await redis.kill()
      await delay(ms)
      await redis.start()
    },
  },
  'rpc-gone': {
    about: 'both providers take every request and break the connection instead of answering',
    async strike({ chain }, ms) {
      for (const provider of chain.providers) provider.set('die')
      await delay(ms)
      for (const provider of chain.providers) provider.set('none')
    },
  },
  'rpc-first-dead': firstProviderDead,
  'rpc-flaky': providersFlaky,
  'rpc-rate-limited': providersRateLimited,
  'rpc-lying': {
    about:
      'the first of two providers forges owners, in reads and in proofs; one instance asks for proofs, the other for a quorum',
    wishes: () => ({ a: { env: { CHAIN_TRUST: 'proof' } }, b: { env: { CHAIN_TRUST: 'quorum', CHAIN_QUORUM: '2' } } }),
    async strike({ chain }, ms, record) {
      let lies = 0
      chain.providers[0].set({ rewrite: liar(chain.contract, () => (lies += 1)) })
      await delay(ms)
      chain.providers[0].set('none')
      if (lies === 0) record.broke('the lying provider was not asked')
      return `${lies} lies were sent`
    },
  },
  'rpc-slow': {
    about: 'the first provider takes 2.5 s for every answer, the second 0.2 s',
    async strike({ chain }, ms) {
      chain.providers[0].set({ delayMs: 2_500 })
      chain.providers[1].set({ delayMs: 200 })
      await delay(ms)
      for (const provider of chain.providers) provider.set('none')
    },
  },
  'logs-empty': logsEmpty,
  'sighup-storm': sighupStorm,
  'start-during-lock': startDuringLock,
  'clock-step': clockStep,
  'disk-full': diskFull,
  'anvil-reorg': {
    about: 'the chain drops its last three blocks with their transactions, and later its last eight',
    async strike({ chain }, ms) {
      await chain.reorg(3)
      await delay(ms / 2)
      await chain.reorg(8)
      await delay(ms / 2)
    },
  },
  'citus-worker-kill': citusWorkerKill,
  'citus-rebalance': citusRebalance,
  'citus-coordinator-kill': citusCoordinatorKill,
  'citus-failover': citusFailover,
}
