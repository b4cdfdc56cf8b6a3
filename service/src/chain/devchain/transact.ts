/** Changes of the local chain's contracts. anvil signs for its own accounts. */
import type { Hex } from '@touchstone/verdict'
import multicall from '../../../../contracts/artifacts/Multicall3.json' with { type: 'json' }
import { multicallAddress } from '../../domain/chain.ts'
import { poll } from '../../lib/async/sleep.ts'
import { createRpcClient, type RpcClient } from '../rpc/client.ts'

/** Client of the local chain, which may be slow while it saves its state. */
export const localRpc = (rpcUrl: string): RpcClient => createRpcClient({ url: rpcUrl, timeoutMs: 30_000 })

/** Sends a transaction and waits until it is mined. Throws one sentence about `what` when it is not, or when it reverted. */
export async function transact(
  rpc: RpcClient,
  what: string,
  transaction: Readonly<{ from: Hex; to?: Hex; data: Hex; nonce?: Hex; value?: Hex }>,
): Promise<void> {
  const hash = await rpc('eth_sendTransaction', [transaction])
  const receipt = await poll(
    async () => (await rpc('eth_getTransactionReceipt', [hash])) as { readonly status: Hex } | null,
    { everyMs: 5, timeoutMs: 30_000 },
  )
  if (receipt?.status === '0x1') return
  throw new Error(`The local chain did not ${receipt ? 'accept' : 'mine'} ${what}; restart the service.`)
}

export async function codeAt(rpc: RpcClient, address: Hex): Promise<Hex> {
  return (await rpc('eth_getCode', [address, 'latest'])) as Hex
}

/** Puts code at an address that has none, without a block. Returns whether it changed anything. */
export async function placeCode(rpc: RpcClient, address: Hex, code: string): Promise<boolean> {
  if ((await codeAt(rpc, address)) !== '0x') return false
  await rpc('anvil_setCode', [address, code])
  return true
}

/** Places Multicall3 at the address that it has on every chain. */
export function placeMulticall(rpc: RpcClient): Promise<boolean> {
  return placeCode(rpc, multicallAddress, multicall.deployedBytecode)
}
