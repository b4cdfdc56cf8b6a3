/** Buying while something is broken, for tests of faults: who is charged for what, then and after recovery. */
import assert from 'node:assert/strict'
import type { PrivateKeyAccount } from 'viem/accounts'
import type { GatewayOptions } from '../../../src/hosts/gateway/gateway.ts'
import type { GatewayWorld } from './gateway.ts'
import { buy, buySettled, price, sign } from './buyer.ts'

/** What is broken: options of the gateway, or something that is done before the sale and undone after it. */
export type Broken = {
  readonly options?: Partial<GatewayOptions>
  readonly breaks?: () => unknown
  readonly mends?: () => unknown
}
export type Expected = readonly (readonly [status: number, error: string | undefined])[]

/**
 * Buys while something is broken, then, once it is whole again, retries the same header until it has an end: the first answer is one of
 * `expected`, the last one is the proof, and there is one charge.
 */
export async function survives(
  { world, payer, token }: { world: GatewayWorld; payer: PrivateKeyAccount; token: bigint },
  { options = {}, breaks, mends }: Broken,
  expected: Expected,
): Promise<void> {
  const held = await world.balance()
  const charged = async () => (await world.balance()) - held
  const payment = await sign(payer, { validBefore: BigInt(Math.floor(Date.now() / 1000)) + 120n })
  const gateway = await world.open(options)
  await breaks?.()
  const first = await buy(gateway.url, token, payment)
  const isExpected = expected.some(([status, error]) => status === first.status && error === first.body.error)
  assert.ok(isExpected, `${first.status} ${first.body.error}`)
  if (first.status !== 200) assert.ok((await charged()) <= price)
  await world.heal()
  await mends?.()
  await gateway.close()
  const healthy = await world.open()
  const last = await buySettled(healthy.url, token, payment)
  assert.equal(last.status, 200, `${last.status} ${last.body.error}`)
  if (first.status === 200) assert.equal(last.text, first.text)
  assert.equal(await charged(), price)
  await healthy.close()
}
