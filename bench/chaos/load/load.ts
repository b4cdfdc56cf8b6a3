/** The steady load on a fleet. It has keyless reads, taps, pages, registrations, sales, each at its own pace whatever the answers take. */
import { setTimeout as delay } from 'node:timers/promises'
import { createClients, type Clients } from './clients.ts'
import type { Fleet } from '../fleet.ts'
import { collect, purchaseOf, type Purchase } from './payments.ts'
import { createCheckVerdict, listOf, readOf, type CheckVerdict } from './reads.ts'
import { register, registrationOf, type Registration } from './registrations.ts'
import { runTaps, type Taps } from './taps.ts'
import type { Record } from '../record.ts'

export type Load = {
  readonly clients: Clients
  readonly taps: Taps
  readonly purchases: readonly Purchase[]
  readonly registrations: readonly Registration[]
  /** Begins nothing more; resolves when what was begun is over. */
  readonly end: () => Promise<void>
}

/** Milliseconds between two of a kind. */
const paces = { read: 50, list: 250, register: 3_000, pay: 1_500, tapOfATag: 1_000 }
/** More of a kind than this are not under way at once. */
const mostUnderWay = 400

export function beginLoad(
  fleet: Fleet,
  record: Record,
  { run, check = createCheckVerdict(fleet.chain) }: { readonly run: string; readonly check?: CheckVerdict },
): Load {
  const clients = createClients(fleet.instances, record)
  const over = new AbortController()
  const purchases: Purchase[] = []
  const registrations: Registration[] = []
  const anyToken = () => BigInt(1 + Math.floor(Math.random() * fleet.chain.tokens))

  async function sell(): Promise<void> {
    // A proof that was repeated or not delivered answers a payer who asks for the same again, without a charge (decisions/0015). So no two
    // sales of a fleet are of the same payer and token.
    const place = fleet.nextSale()
    const payer = fleet.payers[place % fleet.payers.length]
    if (payer === undefined) return
    const turn = Math.floor(place / fleet.payers.length)
    const purchase = await purchaseOf(payer, BigInt(1 + (turn % fleet.chain.tokens)))
    purchases.push(purchase)
    await collect(clients, purchase)
  }
  function registerOne(): Promise<void> {
    const registration = registrationOf(fleet.key, `${run}-${registrations.length + 1}`)
    registrations.push(registration)
    return register(clients, registration)
  }

  const taps = runTaps({ clients, chain: fleet.chain, tags: fleet.tags, pauseMs: paces.tapOfATag, over: over.signal })
  const ended = [
    taps.ended,
    every(paces.read, () => clients.ask(readOf(anyToken(), check)), over.signal),
    every(paces.list, () => clients.ask(listOf(fleet.key, 10)), over.signal),
    every(paces.pay, sell, over.signal),
    every(paces.register, registerOne, over.signal),
  ]
  return {
    clients,
    taps,
    purchases,
    registrations,
    async end() {
      over.abort()
      await Promise.all(ended)
    },
  }
}

async function every(paceMs: number, work: () => Promise<unknown>, over: AbortSignal): Promise<void> {
  const underWay = new Set<Promise<unknown>>()
  for (let next = performance.now(); !over.aborted; next += paceMs) {
    if (underWay.size < mostUnderWay) {
      const one: Promise<unknown> = work().finally(() => underWay.delete(one))
      underWay.add(one)
    }
    await delay(Math.max(0, next + paceMs - performance.now()), undefined, { signal: over }).catch(() => {})
  }
  await Promise.all(underWay)
}
