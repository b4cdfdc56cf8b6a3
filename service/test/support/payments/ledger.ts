/** Payments as buyers present them, for tests of the ledger. */
import { randomBytes } from 'node:crypto'
import type { Hex } from '@touchstone/verdict'
import type { NewPayment } from '../../../src/payments/ledger/intake.ts'

export const bytes = (count: number): Hex => `0x${randomBytes(count).toString('hex')}`

export const newPayment = (): NewPayment => {
  const [payer, nonce] = [bytes(20), bytes(32)]
  const payment = {
    from: payer,
    nonce,
    to: bytes(20),
    value: 10n,
    validAfter: 0n,
    validBefore: 2n ** 256n - 1n,
    signature: bytes(65),
  }
  return { payer, nonce, tokenId: 7n, requestHash: bytes(32).slice(2), payment, proof: '{"a":1}', fromBlock: 7n }
}
