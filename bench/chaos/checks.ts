/** Checks after a fault. Nothing accepted is lost or counted twice, nothing paid is without its proof, the index is the chain. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Hex } from '@touchstone/verdict'
import { decodeFunctionResult, encodeFunctionData, erc20Abi } from 'viem'
import { fileURLToPath } from 'node:url'
import { usdcAddress } from '../../service/src/chain/devchain/test-money.ts'
import { assetRegistryAbi } from '../../service/src/domain/registry-abi.ts'
import { payTo, price } from '../../service/test/support/payments/buyer.ts'
import { run } from '../lib/program.ts'
import type { Fleet } from './fleet.ts'
import type { Listener } from './load/listeners.ts'
import { collect } from './load/payments.ts'
import { register } from './load/registrations.ts'
import type { Load } from './load/load.ts'
import type { Record } from './record.ts'

/** Counts from before the load. */
export type Before = { readonly earned: bigint; readonly supply: bigint; readonly outbox: bigint }

export async function lookBefore({ chain, database }: Fleet): Promise<Before> {
  const [row] = await database.query<{ seq: bigint }>('select coalesce(max(seq), 0) as seq from outbox')
  return { earned: await earned(chain), supply: await supply(chain), outbox: row?.seq ?? 0n }
}

/** Every broken promise goes to `record`. The load has ended; blocks go on coming. */
export async function checkAfter(
  fleet: Fleet,
  load: Load,
  listeners: readonly Listener[],
  before: Before,
  record: Record,
): Promise<void> {
  await checkTaps(fleet, load, record)
  await checkEvents(fleet, listeners, before, record)
  await checkPayments(fleet, load, before, record)
  await checkRegistrations(fleet, load, before, record)
  await checkIndex(fleet, record)
}

async function checkTaps({ database, instances }: Fleet, { taps }: Load, record: Record): Promise<void> {
  const rows = await database.query<{ uid: Uint8Array; counter: number }>('select uid, counter from tap')
  const kept = new Set(rows.map(({ uid, counter }) => `${Buffer.from(uid).toString('hex').toUpperCase()} ${counter}`))
  for (const { uid, counter } of taps.accepted) {
    if (!kept.has(`${uid} ${counter}`)) record.broke('an accepted tap is not in the ledger', `${uid} ${counter}`)
  }
  const counters = new Set(taps.accepted.map(({ uid, counter }) => `${uid} ${counter}`))
  if (counters.size !== taps.accepted.length) record.broke('two taps were accepted with the same counter')
  for (const [uid, path] of taps.stale) {
    for (const instance of instances) {
      const text = await fetch(instance.urls().verification + path).then((response) => response.text(), String)
      if (!text.includes('"reason":"replayed"'))
        record.broke(
          'a tap below the last counter of its tag is not answered as replayed',
          `${uid} ${text.slice(0, 80)}`,
        )
    }
  }
  if (taps.unanswered() > 0) record.broke(`${taps.unanswered()} taps had no answer within a minute`)
}

/** Each tap is announced once. A subscription that was never cut off receives every event once; none receives one twice. */
async function checkEvents(
  { database }: Fleet,
  listeners: readonly Listener[],
  { outbox }: Before,
  record: Record,
): Promise<void> {
  const rows = await database.query<{ event: string }>(
    `select token_id || ' ' || (payload->>'at') as event from outbox where topic = 'tap' and seq > $1`,
    [outbox],
  )
  const [counted] = await database.query<{ announced: number; events: number }>(
    `select (select count(*)::int from tap where announced_at is not null) as announced, (select count(*)::int from outbox where topic = 'tap') as events`,
  )
  if (counted?.announced !== counted?.events)
    record.broke(`${counted?.announced} taps were announced by ${counted?.events} events`)
  for (const { name, received, setUps } of listeners) {
    if (setUps() === 1) await until(() => received.length >= rows.length, 5_000)
    const unique = new Set(received)
    if (unique.size !== received.length)
      record.broke(`the subscription of ${name} received ${received.length - unique.size} events twice`)
    const missed = rows.filter(({ event }) => !unique.has(event)).length
    if (setUps() === 1 && missed > 0)
      record.broke(`the subscription of ${name}, never cut off, missed ${missed} of ${rows.length} events`)
  }
}

async function checkPayments(
  { chain, instances }: Fleet,
  { purchases, clients }: Load,
  before: Before,
  record: Record,
): Promise<void> {
  for (const purchase of purchases) {
    if (purchase.proof === null) await collect(clients, purchase, 30_000)
    if (purchase.proof === null) record.broke('a payment has no proof half a minute after all was well again')
  }
  const sold = purchases.filter(({ proof }) => proof !== null)
  const charged = () => earned(chain).then((now) => now - before.earned)
  await until(async () => (await charged()) === BigInt(sold.length) * price, 10_000)
  const got = await charged()
  if (got !== BigInt(sold.length) * price)
    record.broke(`${sold.length} proofs were delivered, and ${Number(got) / Number(price)} prices charged`)
  for (const purchase of sold.slice(-3)) {
    for (const instance of instances) {
      const { reply } = await clients.attempt(instance, purchase.wanted)
      if (reply?.text !== purchase.proof)
        record.broke('the same payment header gets another answer', `${reply?.status} from ${instance.name}`)
    }
  }
}

async function checkRegistrations(
  { chain }: Fleet,
  { registrations, clients }: Load,
  before: Before,
  record: Record,
): Promise<void> {
  for (const registration of registrations) {
    if (registration.productId === null) await register(clients, registration, 30_000)
    if (registration.productId === null) record.broke('a registration never succeeded', registration.tagId)
  }
  const minted = async () => (await supply(chain)) - before.supply
  await until(async () => (await minted()) === BigInt(registrations.length), 15_000)
  const found = await minted()
  if (found !== BigInt(registrations.length))
    record.broke(`${registrations.length} products were registered, and ${found} minted`)
  const ids = new Set(registrations.map(({ productId }) => productId))
  if (ids.size !== registrations.length) record.broke('two registrations were answered with the same product')
}

const cli = fileURLToPath(new URL('../../service/src/cli.ts', import.meta.url))

/** The index is back when it has caught up with the chain. */
const behindMs = 30_000

async function checkIndex({ cliEnv }: Fleet, record: Record): Promise<void> {
  for (const until = performance.now() + behindMs; ;) {
    const verify = run({ command: process.execPath, args: [cli, 'index', 'verify'], env: cliEnv })
    const said = await verify
      .line(/all agree with the chain\.|differ from the chain|index has \d+ assets|^touchstone: .*$/m, 60_000)
      .catch((error: unknown) => String(error))
    await verify.ended
    const text = typeof said === 'string' ? said : said[0]
    if (text.startsWith('all agree')) return
    if (!text.includes('is not there yet') || performance.now() > until)
      return record.broke(`touchstone index verify: ${verify.said().trim().slice(-300)}`)
    await delay(500)
  }
}

async function earned({ rpc }: Fleet['chain']): Promise<bigint> {
  const data = encodeFunctionData({ abi: erc20Abi, functionName: 'balanceOf', args: [payTo] })
  return BigInt((await rpc('eth_call', [{ to: usdcAddress, data }, 'latest'])) as Hex)
}

async function supply({ rpc, contract }: Fleet['chain']): Promise<bigint> {
  const data = encodeFunctionData({ abi: assetRegistryAbi, functionName: 'totalSupply' })
  const result = (await rpc('eth_call', [{ to: contract, data }, 'latest'])) as Hex
  return decodeFunctionResult({ abi: assetRegistryAbi, functionName: 'totalSupply', data: result })
}

async function until(holds: () => boolean | Promise<boolean>, withinMs: number): Promise<boolean> {
  for (const end = performance.now() + withinMs; performance.now() < end; await delay(50))
    if (await holds()) return true
  return holds()
}
