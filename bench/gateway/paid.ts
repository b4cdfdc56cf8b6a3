/** Paid requests (spec §4.8) step by step: one after another, twenty at once of one payer, twenty at once of as many payers. */
import { generatePrivateKey, type PrivateKeyAccount } from 'viem/accounts'
import { usdcAddress } from '../../service/src/chain/devchain/test-money.ts'
import { transferTypes } from '../../service/src/payments/x402/payment.ts'
import { chainId } from '../../service/src/domain/chain.ts'
import { openTimedSale, type TimedSale } from './checkout.ts'
import { createTimes, steps, type Percentiles, type Step, type Times } from './times.ts'
import { price, seller, type GatewayWorld } from './world.ts'

/** At most `payments` of each crowd, none of them begun later than `seconds` after the first. */
export type Limits = { readonly payments: number; readonly seconds: number }

export const lanes = 20
type Crowd = { readonly name: string; readonly payers: number; readonly lanes: number }
const crowds: readonly Crowd[] = [
  { name: 'one at a time', payers: 1, lanes: 1 },
  { name: `1 payer × ${lanes}`, payers: 1, lanes },
  { name: `${lanes} payers`, payers: lanes, lanes },
]
const warmUp: Crowd = { name: 'warm-up', payers: lanes, lanes }

type Request = { readonly body: string; readonly header: string; readonly assetId: string; readonly payer: string }
type Result = {
  readonly name: string
  readonly sold: number
  /** Payments a second; for each of them CPU of this process in ms, requests to the chain's provider, statements to the database. */
  readonly rate: number
  readonly cpu: number
  readonly chainCalls: number
  readonly statements: number
  readonly times: ReadonlyMap<Step, Percentiles>
}

/** Prints a table for each kind of chain. It throws when a payment fails or the seller does not get exactly what was sold. */
export async function benchPaid(made: AsyncDisposableStack, world: GatewayWorld, limits: Limits): Promise<void> {
  const times = createTimes()
  const sale = await openTimedSale(made, world, times)
  await sellTo(warmUp, { world, sale, times }, { payments: 2 * lanes, seconds: limits.seconds })
  for (const blockSeconds of [0, 2]) {
    await world.setBlockSeconds(blockSeconds)
    const results: Result[] = []
    for (const crowd of crowds) results.push(await sellTo(crowd, { world, sale, times }, limits))
    print(blockSeconds === 0 ? 'each transaction mined at once' : `a block every ${blockSeconds} s`, results)
  }
}

async function sellTo(
  crowd: Crowd,
  { world, sale, times }: { world: GatewayWorld; sale: TimedSale; times: Times },
  { payments, seconds }: Limits,
): Promise<Result> {
  const requests = await Promise.all(
    Array.from({ length: payments }, (_, index) =>
      signed(world.payers[index % crowd.payers], String(1 + (index % world.tokens))),
    ),
  )
  const held = await world.earned()
  const callsBefore = sale.calls()
  const transactions = new Set<string>()
  times.take()
  const cpuBefore = process.cpuUsage()
  const began = performance.now()
  let next = 0
  const lane = async () => {
    while (performance.now() - began < seconds * 1000) {
      const request = requests[next++]
      if (request === undefined) return
      transactions.add(paidIn(await sale.sell(request), request))
    }
  }
  await Promise.all(Array.from({ length: crowd.lanes }, lane))
  const took = (performance.now() - began) / 1000
  const { user, system } = process.cpuUsage(cpuBefore)
  const sold = Math.min(next, payments)
  const got = (await world.earned()) - held
  if (transactions.size !== sold || got !== BigInt(sold) * price)
    throw new Error(`${sold} sold in ${transactions.size} transactions, and the seller got ${got} for them.`)
  const calls = sale.calls()
  return {
    name: crowd.name,
    sold,
    rate: sold / took,
    cpu: (user + system) / 1000 / sold,
    chainCalls: (calls.chain - callsBefore.chain) / sold,
    statements: (calls.database - callsBefore.database) / sold,
    times: times.take(),
  }
}

/** The transaction by which the proof was paid. */
function paidIn(answer: string, { assetId, payer }: Request): string {
  const proof = JSON.parse(answer) as {
    assetId: string
    attestation: { signature: string }
    payment: { success: boolean; payer: string; amount: string; transaction: string }
  }
  const { payment } = proof
  const isRight =
    proof.assetId === assetId &&
    /^0x[0-9a-f]{130}$/.test(proof.attestation.signature) &&
    payment.success &&
    payment.payer.toLowerCase() === payer.toLowerCase() &&
    payment.amount === price.toString()
  if (!isRight) throw new Error(`The proof is of another sale: ${answer.slice(0, 500)}`)
  return payment.transaction
}

const domain = { name: 'USDC', version: '2', chainId, verifyingContract: usdcAddress } as const

/** A purchase paid for ten minutes ahead. */
async function signed(payer: PrivateKeyAccount | undefined, assetId: string): Promise<Request> {
  if (payer === undefined) throw new Error('There are fewer payers than the crowd has.')
  const now = BigInt(Math.floor(Date.now() / 1000))
  const authorization = {
    from: payer.address,
    to: seller,
    value: price,
    validAfter: now - 600n,
    validBefore: now + 600n,
    nonce: generatePrivateKey(),
  }
  const signature = await payer.signTypedData({
    domain,
    types: transferTypes,
    primaryType: 'TransferWithAuthorization',
    message: authorization,
  })
  const accepted = {
    scheme: 'exact',
    network: `eip155:${chainId}`,
    amount: price.toString(),
    asset: usdcAddress,
    payTo: seller,
    maxTimeoutSeconds: 30,
    extra: { name: 'USDC', version: '2' },
  }
  const payment = { x402Version: 2, accepted, payload: { signature, authorization } }
  const json = JSON.stringify(payment, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value))
  return {
    body: JSON.stringify({ assetId, chain: 'base-sepolia' }),
    header: Buffer.from(json).toString('base64'),
    assetId,
    payer: payer.address,
  }
}

function print(chain: string, results: readonly Result[]): void {
  const row = (name: string, cellOf: (result: Result) => string) =>
    console.log(name.padEnd(24) + results.map((result) => cellOf(result).padStart(20)).join(''))
  console.log(`\npaid, ${chain}; steps as p50 / p99 in ms`)
  row('', ({ name }) => name)
  row('payments', ({ sold }) => String(sold))
  row('payments a second', ({ rate }) => rate.toFixed(1))
  row('CPU of each, ms', ({ cpu }) => cpu.toFixed(1))
  row('calls to the chain', ({ chainCalls }) => chainCalls.toFixed(1))
  row('statements', ({ statements }) => statements.toFixed(1))
  for (const step of steps)
    row(step, ({ times }) => {
      const { p50, p99 } = times.get(step) ?? { p50: Number.NaN, p99: Number.NaN }
      return `${p50.toFixed(1)} / ${p99.toFixed(1)}`
    })
}
