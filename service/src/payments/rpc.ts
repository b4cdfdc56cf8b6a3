/** Contract calls of payments over JSON-RPC, and the ABI of the payment token. */
import type { Hex } from '@touchstone/verdict'
import { decodeFunctionResult, encodeFunctionData, parseAbi, type Abi } from 'viem'
import { isRefusal, isRevert, type RpcClient } from '../chain/rpc/client.ts'

export const tokenAbi = parseAbi([
  'function name() view returns (string)',
  'function version() view returns (string)',
  'function decimals() view returns (uint8)',
  'function DOMAIN_SEPARATOR() view returns (bytes32)',
  'function balanceOf(address) view returns (uint256)',
  'function authorizationState(address, bytes32) view returns (bool)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
])

/** A block number, `latest`, or a block by its hash (EIP-1898). */
export type BlockAt = Hex | 'latest' | { readonly blockHash: Hex }

/** Calls a view function. Throws what `rpc` throws, and for bytes that do not decode. */
export async function readContract(
  rpc: RpcClient,
  call: { to: Hex; abi: Abi; functionName: string; args?: readonly unknown[]; at?: BlockAt },
): Promise<unknown> {
  const { to, abi, functionName, args = [], at = 'latest' } = call
  const data = encodeFunctionData({ abi, functionName, args: [...args] })
  const result = (await rpc('eth_call', [{ to, data }, at])) as Hex
  return decodeFunctionResult({ abi, functionName, args: [...args], data: result })
}

/**
 * Returns a client whose simulations run on the pending block, because an authorization may begin after the last block of an idle chain.
 * A node without a pending block simulates on the latest one.
 */
export function onPendingBlock(rpc: RpcClient): RpcClient {
  return async (method, params = []) => {
    if (method !== 'eth_call' && method !== 'eth_estimateGas') return rpc(method, params)
    try {
      return await rpc(method, [params[0], 'pending'])
    } catch (error) {
      if (!isRefusal(error) || isRevert(error)) throw error
      return rpc(method, [params[0], 'latest'])
    }
  }
}

/** Parses a JSON-RPC quantity. Throws for any other answer. */
export function parseQuantity(value: unknown): bigint {
  if (typeof value !== 'string' || !/^0x[0-9a-f]{1,64}$/i.test(value)) throw new Error('The node returned no quantity.')
  return BigInt(value)
}
