/** The version of the registry's contract (contracts/README.md). */
import type { Hex } from '@touchstone/verdict'
import { assetRegistryAbi as abi } from '../../domain/registry-abi.ts'
import { chainUnavailable } from '../../lib/errors.ts'
import { isRevert, type RpcClient } from '../rpc/client.ts'
import { readContract } from '../rpc/contract.ts'

/** Reads `version()`. Version 1 has no such function and reverts. Throws CHAIN_UNAVAILABLE. */
export async function readRegistryVersion(rpc: RpcClient, contract: Hex): Promise<number> {
  try {
    return Number(await readContract(rpc, { to: contract, abi, functionName: 'version', args: [] }))
  } catch (error) {
    if (isRevert(error)) return 1
    throw chainUnavailable(error)
  }
}
