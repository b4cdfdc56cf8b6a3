/**
 * Several calls in one, each with its own gas limit and outcome: the constructor of contracts/src/CallBatch.sol, which creates no contract.
 * As a transaction it settles many payments; as an `eth_call` it reports what each would do.
 */
import type { Hex } from '@touchstone/verdict'
import callBatch from '../../../../contracts/artifacts/CallBatch.json' with { type: 'json' }
import { toHex } from 'viem/utils'
import type { RpcClient } from '../../chain/rpc/client.ts'
import { encodeAddress, encodeWord, padToWords } from '../../lib/words.ts'
import type { Fees } from '../../chain/transactions/transaction.ts'

/** Empty `data`: no call is made, and the report has the code hash of the target. */
export type Call = { readonly target: Hex; readonly gasLimit: number; readonly data: Hex }
/** `word` is the first word of the returned data, or the code hash. */
export type CallReport = { readonly ok: boolean; readonly gasUsed: number; readonly word: Hex }

/** Initialisation code is limited to this many bytes (EIP-3860), and each byte of calldata counts. */
export const maxBytes = 49_152 - 2_048
/** Returns the gas of a batch. It is 53,000 for the creation, then its code, and for each call its limit, its loop and its calldata. */
export function gasOf(calls: readonly Call[]): number {
  return calls.reduce((sum, { gasLimit, data }) => sum + gasLimit + 4_000 + 16 * (data.length / 2 + 160), 75_000)
}

/** Returns the bytes of the calls in a batch. */
export function sizeOf(calls: readonly Call[]): number {
  return calls.reduce((sum, { data }) => sum + 160 + Math.ceil((data.length - 2) / 64) * 32, 0)
}

/** Encodes constructor arguments by hand, because the general encoder takes longer than everything else that a payment needs. */
export function encodeBatch(calls: readonly Call[], report: boolean): Hex {
  const tuples = calls.map(({ target, gasLimit, data }) => {
    const bytes = data.slice(2)
    return `${encodeAddress(target)}${encodeWord(gasLimit)}${encodeWord(96)}${encodeWord(bytes.length / 2)}${padToWords(bytes)}`
  })
  let offset = calls.length * 32
  const offsets = tuples.map((tuple) => {
    const at = encodeWord(offset)
    offset += tuple.length / 2
    return at
  })
  return `${callBatch.bytecode as Hex}${encodeWord(64)}${encodeWord(report ? 1 : 0)}${encodeWord(calls.length)}${offsets.join('')}${tuples.join('')}`
}

/** The sender and the fees of the transaction that is simulated, because a contract can distinguish a call without fees. */
type Simulation = { readonly from: Hex; readonly fees: Fees }

/** Runs the calls in the pending block without a transaction. Throws what `rpc` throws, and for an answer of another length. */
export async function simulateBatch(
  rpc: RpcClient,
  calls: readonly Call[],
  simulation?: Simulation,
): Promise<CallReport[]> {
  const data = encodeBatch(calls, true)
  const call = {
    data,
    gas: toHex(gasOf(calls) + calls.length * 64 * 220),
    ...(simulation && {
      from: simulation.from,
      maxFeePerGas: toHex(simulation.fees.maxFeePerGas),
      maxPriorityFeePerGas: toHex(simulation.fees.maxPriorityFeePerGas),
    }),
  }
  const answer = await rpc('eth_call', [call, 'pending'])
  if (typeof answer !== 'string' || answer.length !== 2 + calls.length * 128)
    throw new Error('The node returned another number of results.')
  return calls.map((_, index) => {
    const outcome = BigInt(`0x${answer.slice(2 + 128 * index, 66 + 128 * index)}`)
    return {
      ok: outcome >> 255n === 1n,
      gasUsed: Number(outcome & 0xffffffffffffn),
      word: `0x${answer.slice(66 + 128 * index, 130 + 128 * index)}`,
    }
  })
}
