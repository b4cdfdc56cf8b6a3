/** What a write needs from the chain before it is signed, and the signing (EIP-1559 transactions, spec §4.9). */
import type { Hex } from '@touchstone/verdict'
import { keccak256 } from 'viem'
import type { LocalAccount } from 'viem'
import { ServiceError } from '../errors.ts'
import { revertFailure, writeFailure } from './write-calls-failures.ts'
import type { WriteFailure } from './write-calls-failures.ts'
import { RpcRefusal } from './writer-rpc.ts'
import type { WriterRpc } from './writer-rpc.ts'

/** Wei per unit of gas. */
export type Fees = Readonly<{ maxFeePerGas: bigint; maxPriorityFeePerGas: bigint }>
/** `nonce` is the chain's pending count of the signer. */
export type Prepared = Readonly<{ ok: true; gas: bigint; nonce: bigint; fees: Fees }>
export type SignedTransaction = Readonly<{ txHash: Hex; raw: Hex }>

/** A transaction may use no more (EIP-7825). */
const gasLimit = 16_777_216n

/** Simulates the call from the operator's account: a revert is a failure value and costs nothing. */
export async function prepare(
  rpc: WriterRpc,
  call: { from: Hex; to: Hex; data: Hex },
  maxFeePerGas: bigint,
): Promise<Prepared | WriteFailure> {
  try {
    const [estimate, nonce, balance, fees] = await Promise.all([
      numberFrom(rpc, 'eth_estimateGas', [call]),
      pendingCount(rpc, call.from),
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
    if (error instanceof RpcRefusal && (error.data !== undefined || /revert/i.test(error.message)))
      return revertFailure(error.data)
    throw chainUnavailable(error)
  }
}

/** The next nonce as the node that gets the transaction counts it, its pool included. */
export async function pendingCount(rpc: WriterRpc, address: Hex): Promise<bigint> {
  return numberFrom(rpc, 'eth_getTransactionCount', [address, 'pending'])
}

/** Room for the base fee to double. */
export async function currentFees(rpc: WriterRpc): Promise<Fees> {
  const [head, tip] = await Promise.all([
    rpc('eth_getBlockByNumber', ['latest', false]),
    numberFrom(rpc, 'eth_maxPriorityFeePerGas', []),
  ])
  const baseFee = numberOf((head as { baseFeePerGas?: unknown } | null)?.baseFeePerGas)
  return { maxFeePerGas: 2n * baseFee + tip, maxPriorityFeePerGas: tip }
}

export async function signTransaction(
  account: LocalAccount,
  transaction: Readonly<{ chainId: number; to: Hex; data: Hex; nonce: bigint; gas: bigint; fees: Fees }>,
): Promise<SignedTransaction> {
  const { fees, nonce, ...rest } = transaction
  const raw = await account.signTransaction({ type: 'eip1559', ...rest, ...fees, nonce: Number(nonce), value: 0n })
  return { raw, txHash: keccak256(raw) }
}

/** What is not a refusal by the contract is the chain's fault; the caller may repeat the request under the same key. */
export function chainUnavailable(cause: unknown): ServiceError {
  return cause instanceof ServiceError
    ? cause
    : new ServiceError('CHAIN_UNAVAILABLE', 'The chain could not be reached.', { cause })
}

export async function numberFrom(rpc: WriterRpc, method: string, params: readonly unknown[]): Promise<bigint> {
  return numberOf(await rpc(method, params))
}

function numberOf(value: unknown): bigint {
  if (typeof value !== 'string' || !/^0x[0-9a-f]{1,64}$/i.test(value))
    throw new Error('the node answered with something that is not a number')
  return BigInt(value)
}
