/** One provider is dead, or both fail now and then: every kind of request goes on meanwhile, also those that write to the chain. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Fleet } from '../fleet.ts'
import type { Kind, Record } from '../record.ts'
import type { Fault } from './faults.ts'

const kinds: readonly Kind[] = ['read', 'tap', 'list', 'register', 'pay']
/** A registration begins every three seconds. */
const mostMs = 30_000
const failing = 0.3

export const firstProviderDead: Fault = {
  about: 'the first of two providers breaks every connection; reads, registrations and sales go on',
  strike({ chain }, ms, record) {
    chain.providers[0].set('die')
    return goesOn(chain, ms, record)
  },
}

export const providersFlaky: Fault = {
  about: 'three of ten answers of both providers fail; reads, registrations and sales go on',
  strike({ chain }, ms, record) {
    const when = () => Math.random() < failing
    chain.providers[0].set({ name: 'die', when })
    chain.providers[1].set({ name: 'rate-limit', when })
    return goesOn(chain, ms, record)
  },
}

/** Waits `ms`, and longer until each kind of request has succeeded during the fault. Then the providers are well again. */
async function goesOn({ providers }: Fleet['chain'], ms: number, record: Record): Promise<void> {
  const began = performance.now()
  const missing = () =>
    kinds.filter(
      (kind) => !record.attempts.some(({ kind: of, at, outcome }) => of === kind && at > began && outcome === 'ok'),
    )
  await delay(ms)
  while (missing().length > 0 && performance.now() - began < ms + mostMs) await delay(100)
  for (const kind of missing()) record.broke(`no ${kind} succeeded while the providers failed`)
  for (const provider of providers) provider.set('none')
}
