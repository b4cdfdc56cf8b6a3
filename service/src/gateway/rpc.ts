/** What payments need of a JSON-RPC provider: the token's calls, and the difference between «no» and no answer. */
import type { Hex } from '@touchstone/verdict'
import { decodeFunctionResult, encodeFunctionData, parseAbi, type Abi } from 'viem'

/** Throws an Error named `RpcRefusal` (with `data` of a revert) when the node says no, and any other error when no usable answer came. */
export type PaymentRpc = (method: string, params?: readonly unknown[]) => Promise<unknown>

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

/** Calls a view function; it throws what `rpc` throws, and for bytes that are no such result. */
export async function readContract(
  rpc: PaymentRpc,
  call: { to: Hex; abi: Abi; functionName: string; args?: readonly unknown[]; at?: BlockAt },
): Promise<unknown> {
  const { to, abi, functionName, args = [], at = 'latest' } = call
  const data = encodeFunctionData({ abi, functionName, args: [...args] })
  const result = (await rpc('eth_call', [{ to, data }, at])) as Hex
  return decodeFunctionResult({ abi, functionName, args: [...args], data: result })
}

/**
 * The same provider, whose simulations run in the block being made: at the head of a chain that has been idle, an authorization has not
 * begun yet. A node that knows no such block simulates at its head.
 */
export function asOfNow(rpc: PaymentRpc): PaymentRpc {
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

/** The node answered and said no. */
export function isRefusal(error: unknown): error is Error & { data?: Hex } {
  return error instanceof Error && error.name === 'RpcRefusal'
}

/** The contract said no, not the node. */
export function isRevert(error: unknown): boolean {
  return isRefusal(error) && (error.data !== undefined || /revert/i.test(error.message))
}

/** It throws for an answer that is no quantity. */
export function quantityOf(value: unknown): bigint {
  if (typeof value !== 'string' || !/^0x[0-9a-f]{1,64}$/i.test(value)) throw new Error('the node’s answer is no number')
  return BigInt(value)
}
