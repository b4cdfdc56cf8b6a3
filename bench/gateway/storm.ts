/**
 * Two gateways share a database and a key, under load. One of them at random is killed again and again (SIGKILL), and the base fee is a
 * hundred times higher for a time in the middle. Afterwards payments, proofs and transfers must be the same.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { toHex, type Hex } from 'viem'
import { buyAll } from './buyers.ts'
import { settled, sign, startOurs, type Build } from './paid.ts'
import { price, type GatewayWorld } from './world.ts'

export type StormOptions = { readonly kills: number; readonly clients: number; readonly blockSeconds: number }

/** A killed gateway is started again at once; the next kill comes after this time. */
const betweenKillsMs = 1_000
const spikeMs = 30_000

/** Prints a line. Throws when something was paid twice or lost, or when a payment has no end after ten minutes. */
export async function storm(
  made: AsyncDisposableStack,
  world: GatewayWorld,
  { kills, clients, blockSeconds }: StormOptions,
): Promise<void> {
  await world.setBlockSeconds(blockSeconds)
  const key = await world.newFacilitator()
  const gateways: Build[] = await Promise.all([startOurs(made, world, key), startOurs(made, world, key)])
  const held = await world.earned()
  const fromBlock = (await world.rpc('eth_blockNumber')) as Hex
  let isOver = false
  const seconds = () => (isOver ? 0 : Number.POSITIVE_INFINITY)
  const purchases = sign(world, 100 * kills * 10)
  const buying = buyAll(() => gateways.map(({ url }) => url), purchases, { clients, seconds, resend: true })
  buying.catch(() => {})
  const spike = delay((kills * betweenKillsMs) / 2).then(() => raiseBaseFee(world))
  for (let kill = 1; kill <= kills; kill += 1) {
    await delay(betweenKillsMs)
    const index = Math.floor(Math.random() * gateways.length)
    gateways[index]?.running.signal('SIGKILL')
    await gateways[index]?.running.ended
    gateways[index] = await startOurs(made, world, key)
    if (kill % 10 === 0) console.log(`${kill} of ${kills} kills`)
  }
  await spike
  isOver = true
  const bought = await buying
  await until(async () => (await unsettled(world)) === 0n)
  const paid = (await world.earned()) - held
  const { transactions } = await settled(world, bought, fromBlock)
  const [row] = await world.database.query<{ n: bigint }>(`select count(*) as n from payment where state = 'done'`)
  const isSame = paid === BigInt(bought.length) * price && row?.n === BigInt(bought.length)
  console.log(
    `${kills} kills: ${bought.length} proofs, ${row?.n} payments, ${paid / price} transfers in ${transactions} transactions, none without an end`,
  )
  if (!isSame) throw new Error('Proofs, payments and transfers differ.')
  await Promise.all(gateways.map(({ running }) => running.stop()))
}

async function raiseBaseFee(world: GatewayWorld): Promise<void> {
  const { baseFeePerGas } = (await world.rpc('eth_getBlockByNumber', ['latest', false])) as { baseFeePerGas: Hex }
  const fee = toHex(100n * (BigInt(baseFeePerGas) + 1_000_000n))
  for (const end = performance.now() + spikeMs; performance.now() < end; await delay(200))
    await world.rpc('anvil_setNextBlockBaseFeePerGas', [fee])
}

async function unsettled({ database }: GatewayWorld): Promise<bigint> {
  const [row] = await database.query<{ n: bigint }>(
    `select count(*) as n from payment where state not in ('done', 'dead')`,
  )
  return row?.n ?? 0n
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + 600_000; !(await holds()); await delay(500))
    if (performance.now() > end) throw new Error('Payments have no end ten minutes after the load.')
}
