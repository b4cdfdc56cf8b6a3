/** The facilitator in this process, beside a node that refuses a simulation. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { decodeAbiParameters, parseAbiParameters, toHex, type Hex } from 'viem'
import callBatch from '../../../../contracts/artifacts/CallBatch.json' with { type: 'json' }
import { RpcError } from '../../chain/rpc/answer.ts'
import { createLog } from '../../lib/log.ts'
import type { Payment } from '../x402/payment.ts'
import { createLocalFacilitator } from './local.ts'

const account = toHex(7, { size: 20 })
const paymentOf = (n: number): Payment => ({
  from: account,
  to: account,
  value: 10n,
  validAfter: 0n,
  validBefore: 900n,
  nonce: toHex(n, { size: 32 }),
  signature: toHex(n, { size: 65 }),
})

describe('a simulation of several payments that the node refuses', () => {
  it('keeps no payment from its own, whatever becomes of the one that is at fault', async () => {
    const refused = paymentOf(666)
    const simulated: number[] = []
    const options = {
      rpc: async (_method: string, [given]: readonly unknown[] = []) => {
        const { data } = given as { data: Hex }
        const [calls] = decodeAbiParameters(
          parseAbiParameters('(address, uint256, bytes)[], bool'),
          `0x${data.slice(callBatch.bytecode.length)}`,
        )
        simulated.push(calls.length)
        if (data.includes(refused.nonce.slice(2))) throw new RpcError('rejected', 'the request takes too much gas', {})
        return `0x${calls.map(() => (1n << 255n).toString(16) + '0'.repeat(64)).join('')}`
      },
      chain: { heads: {} },
      accounts: [],
      slots: { release: async () => {} },
      terms: { asset: account },
      walletFactories: [],
      log: createLog(() => {}),
    } as unknown as Parameters<typeof createLocalFacilitator>[0]
    await using facilitator = createLocalFacilitator(options)
    const verified = await Promise.allSettled([paymentOf(1), refused, paymentOf(2)].map(facilitator.verify))
    assert.deepEqual(
      verified.map((one) => (one.status === 'fulfilled' ? one.value : one.status)),
      [{ ok: true }, 'rejected', { ok: true }],
    )
    assert.equal(simulated[0], 6)
  })
})
