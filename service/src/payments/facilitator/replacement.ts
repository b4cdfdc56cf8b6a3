/**
 * Decides which transaction takes the place of one that stays out (EIP-1559). Fees rise with those of the chain and up to the limit only. A
 * transaction that the account cannot pay for is followed by a cheaper one, so that no nonce stays open.
 */
import type { TransactionSerializableEIP1559 } from 'viem'
import { parseTransaction } from 'viem/utils'
import { isAboutRequest } from '../../chain/rpc/client.ts'
import {
  feeLimit,
  type Fees,
  type FeesBefore,
  gasLimit,
  raisedFees,
  replacementFees,
} from '../../chain/transactions/transaction.ts'
import { chainId } from '../../domain/chain.ts'
import type { Slot } from './slots.ts'

/** unfunded: the account cannot pay for it. underpriced: the node has another one of this nonce. Its fees are less than a tenth lower. */
export type Refusal = 'unfunded' | 'underpriced'
/** `refusal`: how a node answered the newest transaction. `isExpired`: it would only cost gas, and a transfer of nothing replaces it. */
export type Stuck = { readonly refusal: Refusal | undefined; readonly isExpired: boolean }

/** Returns undefined for any other refusal, and for no answer. */
export function sendRefusalOf(error: unknown): Refusal | undefined {
  if (!isAboutRequest(error)) return undefined
  if (/insufficient ?funds|gas required exceeds allowance/i.test(error.message)) return 'unfunded'
  return /replacement/i.test(error.message) ? 'underpriced' : undefined
}

/** Returns the transaction to sign, `now` being the fees of the chain. Undefined: the newest one stays. */
export function replacementOf(
  { raw, sender, nonce }: Pick<Slot, 'raw' | 'sender' | 'nonce'>,
  now: Fees,
  { refusal, isExpired }: Stuck,
): TransactionSerializableEIP1559 | undefined {
  const { to, data, gas, ...before } = parseTransaction(raw)
  const isEmpty = to?.toLowerCase() === sender && data === undefined
  // No node takes one above the limit of gas, which a version without that limit may have signed.
  const toEmpty = !isEmpty && (isExpired || (gas ?? 0n) > gasLimit)
  const fees = feesAfter(feesOf(before), now, refusal, toEmpty)
  if (fees === undefined || fees.maxFeePerGas > feeLimit) return undefined
  const base = { type: 'eip1559', chainId, nonce, value: 0n, ...fees } as const
  if (toEmpty) return { ...base, to: sender, gas: 21_000n }
  return { ...base, ...(to && { to }), ...(data && { data }), ...(gas && { gas }) }
}

/** Returns whether the fees are above the limit. A version without a limit may have signed them. */
export const isTooDear = (raw: Slot['raw']): boolean => feesOf(parseTransaction(raw)).maxFeePerGas > feeLimit

function feesAfter(before: Fees, now: Fees, refusal: Refusal | undefined, toEmpty: boolean): Fees | undefined {
  const cannotBePaid = refusal === 'unfunded' || before.maxFeePerGas > feeLimit
  // Clearly cheaper, because each new transaction is one more receipt to look for.
  if (cannotBePaid && raisedFees(now, now).maxFeePerGas < before.maxFeePerGas) return now
  if (toEmpty) return raisedFees(before, now)
  if (cannotBePaid) return undefined
  if (refusal === 'underpriced') return replacementFees(before, now) ?? withHigherTip(before)
  return replacementFees(before, now)
}

/** A node requires a tenth more in both fees. What it has is mined by itself, unless its highest fee is below the base fee. */
function withHigherTip(before: Fees): Fees | undefined {
  const { maxPriorityFeePerGas: raised } = raisedFees(before, before)
  if (before.maxPriorityFeePerGas === before.maxFeePerGas) return undefined
  return { ...before, maxPriorityFeePerGas: raised < before.maxFeePerGas ? raised : before.maxFeePerGas }
}

function feesOf({ maxFeePerGas: max = 0n, maxPriorityFeePerGas: tip = 0n }: FeesBefore): Fees {
  return { maxFeePerGas: max, maxPriorityFeePerGas: tip }
}
