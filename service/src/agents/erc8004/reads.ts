/**
 * Reads of the agent registries (ERC-8004) at one block (spec §2.2). A revert with a reason is an answer; any other failure is
 * CHAIN_UNAVAILABLE.
 */
import type { Hex } from '@touchstone/verdict'
import type { Abi, ContractFunctionArgs, ContractFunctionName, ContractFunctionReturnType } from 'viem'
import { decodeFunctionResult, encodeFunctionData, parseAbi } from 'viem/utils'
import { type BlockId, headPausesMs, multicallAddress } from '../../domain/chain.ts'
import { retry } from '../../lib/async/retry.ts'
import { chainUnavailable } from '../../lib/errors.ts'

/** `deadline` is a moment of `performance.now()` in milliseconds. */
type ReadOptions = Readonly<{ deadline?: number }>

/** The source of lookups. A symbol means that the block is not canonical. All its errors are CHAIN_UNAVAILABLE. */
export type RegistrySource<B extends BlockId> = {
  readonly head: (options?: ReadOptions) => Promise<B>
  readonly call: (to: Hex, data: Hex, block: B, options?: ReadOptions) => Promise<Hex | symbol>
  readonly calls: (to: Hex, datas: readonly Hex[], block: B, options?: ReadOptions) => Promise<readonly Hex[] | symbol>
}

/** A call of a view function. `decode` throws if the bytes are not its result. */
type Call<T> = { readonly to: Hex; readonly data: Hex; readonly decode: (result: Hex) => T }
/** Null means that the contract reverted. */
type Results<T extends readonly Call<unknown>[]> = {
  readonly [I in keyof T]: T[I] extends Call<infer A> ? A | null : never
}

export type ReadsAtBlock = {
  readonly block: BlockId
  /** Sends all calls as one multicall. A revert does not affect the other calls. */
  readonly together: <const T extends readonly Call<unknown>[]>(calls: T) => Promise<Results<T>>
  /** Sends each call alone, for calls that use much gas. None may revert, and all are of the same contract. */
  readonly each: <T>(calls: readonly Call<T>[]) => Promise<readonly T[]>
}

/** Runs reads at the head, and again at the new head while that block is not canonical. */
export type RegistryReads = <T>(run: (reads: ReadsAtBlock) => Promise<T>) => Promise<T>

/** The deadline of all reads of one answer. */
const answerTimeoutMs = 5_000

export function createRegistryReads<B extends BlockId>(
  source: RegistrySource<B>,
  pausesMs = headPausesMs,
): RegistryReads {
  async function attempt<T>(run: (reads: ReadsAtBlock) => Promise<T>, options: ReadOptions): Promise<T> {
    const block = await source.head(options)
    return run({
      block,
      async together<const C extends readonly Call<unknown>[]>(calls: C) {
        if (calls.length === 0) return [] as unknown as Results<C>
        const result = await source.call(multicallAddress, encodeMulticall(calls), block, options)
        return decodeMulticall(calls, requireCanonical(result)) as Results<C>
      },
      async each(calls) {
        const [first] = calls
        if (first === undefined) return []
        const datas = calls.map(({ data }) => data)
        const results = requireCanonical(await source.calls(first.to, datas, block, options))
        return calls.map(({ decode }, index) => decodeWith(decode, results[index] ?? '0x'))
      },
    })
  }

  return async (run) => {
    const options = { deadline: performance.now() + answerTimeoutMs }
    const isRetryable = (error: unknown) => error instanceof NotCanonical
    try {
      return await retry(() => attempt(run, options), { pausesMs, isRetryable })
    } catch (error) {
      throw isRetryable(error) ? chainUnavailable('the block is no longer canonical') : error
    }
  }
}

export function viewCall<
  const A extends Abi,
  N extends ContractFunctionName<A, 'view'>,
  const P extends ContractFunctionArgs<A, 'view', N>,
>(abi: A, to: Hex, functionName: N, args: P): Call<ContractFunctionReturnType<A, 'view', N>> {
  type Any = { abi: Abi; functionName: string; args: readonly unknown[] }
  const called = { abi, functionName, args } as unknown as Any
  return {
    to,
    data: encodeFunctionData(called),
    decode: (data) => decodeFunctionResult({ ...called, data }) as ContractFunctionReturnType<A, 'view', N>,
  }
}

function encodeMulticall(calls: readonly Call<unknown>[]): Hex {
  const args = [calls.map(({ to, data }) => ({ target: to, allowFailure: true, callData: data }))] as const
  return encodeFunctionData({ abi: multicallAbi, functionName: 'aggregate3', args })
}

function decodeMulticall(calls: readonly Call<unknown>[], bytes: Hex): unknown[] {
  const results = decodeWith(
    (data) => decodeFunctionResult({ abi: multicallAbi, functionName: 'aggregate3', data }),
    bytes,
  )
  if (results.length !== calls.length) throw chainUnavailable('a multicall returned another number of results')
  return results.map(({ success, returnData }, index) => {
    if (success) return decodeWith(calls[index]!.decode, returnData)
    // A revert has a reason. A call without one may have run out of gas.
    if (returnData === '0x') throw chainUnavailable('a call of a registry failed without a reason')
    return null
  })
}

function decodeWith<T>(decode: (result: Hex) => T, result: Hex): T {
  try {
    return decode(result)
  } catch {
    throw chainUnavailable('a result of a registry cannot be decoded') // the decoder's own message repeats the bytes
  }
}

class NotCanonical extends Error {}

function requireCanonical<T>(result: T | symbol): T {
  if (typeof result === 'symbol') throw new NotCanonical()
  return result
}

const multicallAbi = parseAbi([
  'struct Call { address target; bool allowFailure; bytes callData; }',
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3(Call[] calls) payable returns (Result[] results)',
])

/** The functions of the registries that the service calls, as published with their deployment on Base Sepolia. */
export const identityAbi = parseAbi([
  'function ownerOf(uint256 tokenId) view returns (address)',
  'function tokenURI(uint256 tokenId) view returns (string)',
  'function getAgentWallet(uint256 agentId) view returns (address)',
])

export const reputationAbi = parseAbi([
  'function getIdentityRegistry() view returns (address)',
  'function getClients(uint256 agentId) view returns (address[])',
  'function getLastIndex(uint256 agentId, address clientAddress) view returns (uint64)',
  'function getSummary(uint256 agentId, address[] clientAddresses, string tag1, string tag2) view returns (uint64 count, int128 summaryValue, uint8 summaryValueDecimals)',
  'function readFeedback(uint256 agentId, address clientAddress, uint64 feedbackIndex) view returns (int128 value, uint8 valueDecimals, string tag1, string tag2, bool isRevoked)',
])
