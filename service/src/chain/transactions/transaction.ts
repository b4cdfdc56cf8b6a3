/** Prepares and signs transactions (EIP-1559, spec §4.9). */
import type { Hex } from '@touchstone/verdict'
import type { LocalAccount } from 'viem'
import { keccak256 } from 'viem/utils'
import { chainUnavailable } from '../../lib/errors.ts'
import { revertFailure, writeFailure, type WriteFailure } from './failures.ts'
import { requireQuantity } from '../rpc/answer.ts'
import { isRefusal, isRevert, type RpcClient } from '../rpc/client.ts'
import type { SignedTransaction } from './operations.ts'

/** Wei per unit of gas. */
export type Fees = Readonly<{ maxFeePerGas: bigint; maxPriorityFeePerGas: bigint }>
/** `nonce` is the chain's pending count of the signer. */
type Prepared = Readonly<{ ok: true; gas: bigint; nonce: bigint; fees: Fees }>

/** Wei per gas; the highest fee that is signed. */
export const feeLimit = 100_000_000_000n
/** A transaction may use no more (EIP-7825). */
export const gasLimit = 16_777_216n

/** Simulates the call from the operator's account: a revert is a failure value and costs nothing. */
export async function prepare(
  rpc: RpcClient,
  call: { from: Hex; to: Hex; data: Hex },
  maxFeePerGas: bigint,
): Promise<Prepared | WriteFailure> {
  try {
    const [estimate, nonce, balance, fees] = await Promise.all([
      numberFrom(rpc, 'eth_estimateGas', [call]),
      // By the node that gets the transaction, its pool included.
      numberFrom(rpc, 'eth_getTransactionCount', [call.from, 'pending']),
      numberFrom(rpc, 'eth_getBalance', [call.from, 'latest']),
      currentFees(rpc),
    ])
    // The asset may change before the transaction is mined, and the call may then cost a little more.
    const gas = (estimate * 5n) / 4n + 10_000n
    if (gas > gasLimit) return writeFailure('INVALID_REQUEST')
    if (fees.maxFeePerGas > maxFeePerGas) return writeFailure('FEE_TOO_HIGH')
    if (balance < gas * fees.maxFeePerGas) return writeFailure('OPERATOR_UNFUNDED')
    return { ok: true, gas, nonce, fees }
  } catch (error) {
    if (isRevert(error)) return revertFailure(error.data)
    throw chainUnavailable(error)
  }
}

/** Returns fees that leave room for the base fee to double. */
export async function currentFees(rpc: RpcClient): Promise<Fees> {
  const baseFee = rpc('eth_getBlockByNumber', ['latest', false]).then((head) =>
    requireQuantity((head as { baseFeePerGas?: unknown } | null)?.baseFeePerGas),
  )
  const [base, tip] = await Promise.all([baseFee, currentTip(rpc, () => baseFee)])
  return { maxFeePerGas: 2n * base + tip, maxPriorityFeePerGas: tip }
}

/** Returns the tip that a node suggests. A node without that method has a gas price, which is the base fee and the tip. */
export async function currentTip(rpc: RpcClient, baseFee: () => Promise<bigint>): Promise<bigint> {
  const tip = await numberFrom(rpc, 'eth_maxPriorityFeePerGas', []).catch((error: unknown) => {
    if (isRefusal(error) && error.kind === 'rejected') return null
    throw error
  })
  if (tip !== null) return tip
  const [price, base] = await Promise.all([numberFrom(rpc, 'eth_gasPrice', []), baseFee()])
  return price > base ? price - base : 0n
}

/** Fees of a parsed transaction. */
export type FeesBefore = Readonly<{ [Name in keyof Fees]?: bigint | undefined }>

/** Returns fees for a stuck transaction. Undefined: the chain costs no more than before, or more than the limit. */
export function replacementFees(before: FeesBefore, now: Fees, limit = feeLimit): Fees | undefined {
  const { maxFeePerGas = 0n, maxPriorityFeePerGas = 0n } = before
  if (now.maxFeePerGas <= maxFeePerGas && now.maxPriorityFeePerGas <= maxPriorityFeePerGas) return undefined
  const fees = raisedFees(before, now)
  return fees.maxFeePerGas > limit ? undefined : fees
}

/** Returns fees for a transaction that replaces another one: nodes ask for a tenth more than before (EIP-1559). */
export function raisedFees(before: FeesBefore, now: Fees): Fees {
  const raised = (fee = 0n) => (fee * 9n) / 8n + 1n
  const larger = (one: bigint, other: bigint) => (one > other ? one : other)
  return {
    maxFeePerGas: larger(raised(before.maxFeePerGas), now.maxFeePerGas),
    maxPriorityFeePerGas: larger(raised(before.maxPriorityFeePerGas), now.maxPriorityFeePerGas),
  }
}

export async function signTransaction(
  account: LocalAccount,
  transaction: Readonly<{ chainId: number; to: Hex; data: Hex; nonce: bigint; gas: bigint; fees: Fees }>,
): Promise<SignedTransaction> {
  const { fees, nonce, ...rest } = transaction
  const raw = await account.signTransaction({ type: 'eip1559', ...rest, ...fees, nonce: Number(nonce), value: 0n })
  return { raw, txHash: keccak256(raw) }
}

/** Returns how many transactions of the account are mined: the lowest nonce that is not used. */
export async function minedCount(
  rpc: RpcClient,
  address: Hex,
  options: Parameters<RpcClient>[2] = {},
): Promise<bigint> {
  return requireQuantity(await rpc('eth_getTransactionCount', [address, 'latest'], options))
}

export async function numberFrom(rpc: RpcClient, method: string, params: readonly unknown[]): Promise<bigint> {
  return requireQuantity(await rpc(method, params))
}
