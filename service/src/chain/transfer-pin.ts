/** Questions to the writer's provider that are all answered at one block (spec §2.2, §4.9). */
import type { Hex } from '@touchstone/verdict'
import { RpcRefusal } from './writer-rpc.ts'
import type { WriterRpc } from './writer-rpc.ts'

/** `timestamp` is in unix seconds: the clock by which the contract judges deadlines. */
export type TransferBlock = Readonly<{ number: bigint; hash: Hex; timestamp: bigint }>

/** Asks `method` with `params` and the block as its last parameter. */
export type PinnedRpc = (method: string, params: readonly unknown[]) => Promise<unknown>

/** By hash, so that one block answers everything; by number where a provider does not know that form (EIP-1898). */
export function pinnedTo(rpc: WriterRpc, { number, hash }: TransferBlock): PinnedRpc {
  return async (method, params) => {
    try {
      return await rpc(method, [...params, { blockHash: hash }])
    } catch (error) {
      if (!(error instanceof RpcRefusal) || isRevert(error)) throw error
      return rpc(method, [...params, `0x${number.toString(16)}`])
    }
  }
}

/** The call itself failed, by a revert or as the EVM ends what it cannot carry out; no other way of asking changes that. */
export function isRevert(error: unknown): boolean {
  const says = /revert|gas|opcode|stack|jump|write protection|evm error/i
  return error instanceof RpcRefusal && (error.data !== undefined || says.test(error.message))
}
