/** Reads of contracts without a check of the provider: for writes, payments and the local chain. */
import type { Hex } from '@touchstone/verdict'
import type {
  Abi,
  ContractFunctionArgs,
  ContractFunctionName,
  ContractFunctionReturnType,
  DecodeFunctionResultParameters,
  EncodeFunctionDataParameters,
} from 'viem'
import { decodeFunctionResult, encodeFunctionData } from 'viem/utils'
import type { RpcClient } from './client.ts'

/** A call returned no data: there is no contract at the address, or it has no such function. */
export class NoDataError extends Error {
  constructor() {
    super('The call returned no data.')
  }
}

type View = 'pure' | 'view'
/** A block by its number or tag, or by its hash (EIP-1898). */
export type BlockAt = Hex | 'latest' | Readonly<{ blockHash: Hex }>

/**
 * Returns the decoded result of a view function, at the newest block unless `at` is given. Throws `RpcError`; throws an error of viem for a
 * result of another shape, and NoDataError for none.
 */
export async function readContract<
  const A extends Abi,
  Name extends ContractFunctionName<A, View>,
  const Args extends ContractFunctionArgs<A, View, Name>,
>(
  rpc: RpcClient,
  { at = 'latest', ...call }: Readonly<{ to: Hex; abi: A; functionName: Name; args: Args; at?: BlockAt }>,
): Promise<ContractFunctionReturnType<A, View, Name, Args>> {
  const data = encodeFunctionData(call as unknown as EncodeFunctionDataParameters)
  const result = await rpc('eth_call', [{ to: call.to, data }, at])
  if (result === '0x') throw new NoDataError()
  return decodeFunctionResult({ ...call, data: result } as unknown as DecodeFunctionResultParameters) as Awaited<
    ReturnType<typeof readContract<A, Name, Args>>
  >
}

/** Returns whether a contract is at an address at the newest block. Throws `RpcError`, and for an answer that is no code. */
export async function hasCode(rpc: RpcClient, address: Hex): Promise<boolean> {
  const code = await rpc('eth_getCode', [address, 'latest'])
  if (typeof code !== 'string' || !/^0x(?:[0-9a-fA-F]{2})*$/.test(code)) throw new Error('The node returned no code.')
  return code !== '0x'
}
