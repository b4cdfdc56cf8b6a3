/** The renewal of a proof that was paid and did not arrive, for a later payment of its buyer (spec §4.8). */
import { chainMs, ledgerMs, paymentFailure, within, type Attempted, type PaymentOutcome } from '../errors.ts'
import type { Order } from '../order.ts'
import type { PaymentComponents } from '../settlement.ts'
import { withPayment, type Attest } from './attest.ts'

type Sold = PaymentOutcome & { readonly kind: 'proof' }
type Parts = Pick<PaymentComponents, 'ledger' | 'chain'> & { readonly attest: Attest }

/**
 * Returns the stored proof where it states what is true now. Else it returns a new one under the same payment, and stores it first, so that
 * every repeat gets that. Returns 'retry' where another process was first. Throws the GatewayFault of a purchase.
 */
export async function renewed(sold: Sold, order: Order, { ledger, chain, attest }: Parts): Promise<Attempted> {
  await within(chainMs, 'payment_unavailable', chain.heads.headOnTime()) // a new proof has the time of this clock
  const proof = await attest(order, sold.body)
  if (proof === null) return paymentFailure('asset_not_found')
  if (proof === sold.body) return sold
  const { payment } = JSON.parse(sold.body) as { readonly payment: object }
  const body = withPayment(proof, payment)
  const isStored = await within(ledgerMs, 'ledger_unavailable', ledger.renew(sold.key, { from: sold.body, to: body }))
  return isStored ? { ...sold, body } : 'retry'
}
