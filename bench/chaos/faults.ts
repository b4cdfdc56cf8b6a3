/** The faults, each by its name: what it breaks, how that ends, and what it wants of the fleet besides. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Fleet, InstanceWishes } from './fleet.ts'

export type Fault = {
  readonly about: string
  /** Settings of the instances for this fault; they are restarted with them before it begins. */
  readonly wishes?: (fleet: Fleet) => { readonly [instance: string]: InstanceWishes }
  /** Breaks it, waits `ms` where it lasts, and mends what does not mend itself. It may give a remark for the table. */
  readonly strike: (fleet: Fleet, ms: number) => Promise<string | void>
}

const firstOf = ({ instances }: Fleet) => {
  const [first] = instances
  if (first === undefined) throw new Error('There is no instance.')
  return first
}

export const faults: { readonly [name: string]: Fault } = {
  'kill-instance': {
    about: 'SIGKILL of one instance; it is started again after a second',
    async strike(fleet, ms) {
      await firstOf(fleet).kill()
      await delay(ms)
    },
  },
  'postgres-restart': {
    about: 'PostgreSQL stops at once, as in an immediate shutdown, and comes back',
    async strike({ postgres }, ms) {
      await postgres.stopNow()
      await delay(ms)
      await postgres.start()
    },
  },
  'redis-gone': {
    about: 'SIGKILL of Redis, which comes back empty',
    async strike({ redis }, ms) {
      await redis.kill()
      await delay(ms)
      await redis.start()
    },
  },
  'rpc-gone': {
    about: 'both providers take requests and never answer: the connection breaks',
    async strike({ chain }, ms) {
      for (const provider of chain.providers) provider.set('die')
      await delay(ms)
      for (const provider of chain.providers) provider.set('none')
    },
  },
}
