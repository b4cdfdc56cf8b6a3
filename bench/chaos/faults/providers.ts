/**
 * One provider is dead, or providers fail or limit their rate now and then. Every kind of request goes on meanwhile, also those that write
 * to the chain, and the index follows the head.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { poll } from '../../../service/src/lib/async/sleep.ts'
import type { Fleet } from '../fleet.ts'
import type { Kind, Record } from '../record.ts'
import type { Fault } from './fault.ts'

const kinds: readonly Kind[] = ['read', 'tap', 'list', 'register', 'pay']
/** A registration begins every three seconds. */
const mostMs = 30_000
const failing = 0.3
const limited = 0.1
/** Blocks that come at once, in one step of the index: as many requests for logs. */
const atOnce = 60
/** A block stands in the index within this time. A busy machine needs some of it; an index that stalls needs more. */
const followsMs = 15_000

export const firstProviderDead: Fault = {
  about: 'the first of two providers breaks every connection; reads, registrations and sales go on',
  async strike({ chain }, ms, record) {
    chain.providers[0].set('die')
    await goesOn(ms, record)
    mend(chain)
  },
}

export const providersFlaky: Fault = {
  about: 'three of ten answers of both providers fail; reads, registrations and sales go on',
  async strike({ chain }, ms, record) {
    const when = () => Math.random() < failing
    chain.providers[0].set({ name: 'die', when })
    chain.providers[1].set({ name: 'rate-limit', when })
    await goesOn(ms, record)
    mend(chain)
  },
}

export const providersRateLimited: Fault = {
  about:
    'each instance has one provider, and one of ten answers is HTTP 429; the index follows the head, also over 60 blocks at once',
  wishes: ({ instances, chain: { providers } }) =>
    Object.fromEntries(
      instances.map(({ name }, index) => [name, { env: { CHAIN_RPC_URLS: providers[index % 2 ? 1 : 0].url } }]),
    ),
  async strike(fleet, ms, record) {
    const { chain } = fleet
    for (const provider of chain.providers) provider.set({ name: 'status429', share: limited })
    await chain.pause()
    await chain.advance(atOnce)
    const caughtUpMs = await followHead(fleet, record)
    chain.begin()
    let slowestMs = 0
    const follow = async () => {
      for (const end = performance.now() + ms; performance.now() < end; await delay(100))
        slowestMs = Math.max(slowestMs, await followHead(fleet, record))
    }
    await Promise.all([follow(), goesOn(ms, record)])
    const refused = chain.providers.reduce((sum, provider) => sum + provider.struck(), 0)
    mend(chain)
    if (refused === 0) record.broke('no answer of a provider was HTTP 429')
    return `${refused} answers were HTTP 429; ${atOnce} blocks stood in the index after ${seconds(caughtUpMs)}, each later one within ${seconds(slowestMs)}`
  },
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`

/** Waits `ms`, and longer until each kind of request has succeeded during the fault. */
async function goesOn(ms: number, record: Record): Promise<void> {
  const began = performance.now()
  const missing = () =>
    kinds.filter(
      (kind) => !record.attempts.some(({ kind: of, at, outcome }) => of === kind && at > began && outcome === 'ok'),
    )
  await delay(ms)
  await poll(() => missing().length === 0, { everyMs: 100, timeoutMs: mostMs })
  for (const kind of missing()) record.broke(`no ${kind} succeeded while the providers failed`)
}

/** Waits until the index reaches the head of now, and returns how long it took. */
async function followHead({ chain, database }: Fleet, record: Record): Promise<number> {
  const [head, began] = [BigInt((await chain.rpc('eth_blockNumber')) as string), performance.now()]
  const isReached = async () => {
    const [row] = await database.query<{ number: bigint }>('select number from index_cursor')
    return (row?.number ?? 0n) >= head
  }
  if (!(await poll(isReached, { everyMs: 20, timeoutMs: followsMs })))
    record.broke('the index does not follow the head', `block ${head} is not in it after ${seconds(followsMs)}`)
  return performance.now() - began
}

function mend({ providers }: Fleet['chain']): void {
  for (const provider of providers) provider.set('none')
}
