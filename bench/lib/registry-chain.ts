/** The chain of benchmarks that make blocks themselves. It is anvil on the second core with the registry, and mines when it is asked to. */
import type { Hex } from '@touchstone/verdict'
import { encodeFunctionData, multicall3Abi } from 'viem'
import { anvilBinary } from '../../service/src/chain/devchain/anvil.ts'
import { deployLocal } from '../../service/src/chain/devchain/deploy.ts'
import { createRpcClient, type RpcClient } from '../../service/src/chain/rpc/client.ts'
import { multicallAddress } from '../../service/src/domain/chain.ts'
import { publishedAddresses } from '../../service/src/domain/published-accounts.ts'
import { assetRegistryAbi as abi } from '../../service/src/domain/registry-abi.ts'
import { run } from './program.ts'

type RegistryChain = { readonly url: string; readonly contract: Hex }
type Role = 'ISSUER_ROLE' | 'BINDER_ROLE' | 'QA_ROLE' | 'GUARDIAN_ROLE'

/** The account that holds the roles. */
export const [operator] = publishedAddresses as readonly [Hex]

/** `flags` are further arguments of anvil, `fill` makes the blocks. When it fails, the chain is stopped. */
export async function startRegistryChain<T>(
  { flags, maxBytes }: { readonly flags: string; readonly maxBytes: number },
  fill: (chain: RegistryChain & { readonly rpc: RpcClient }) => Promise<T>,
): Promise<RegistryChain & T & { readonly stop: () => Promise<void> }> {
  const usual = '--chain-id 84532 --host 127.0.0.1 --port 0 --prune-history --slots-in-an-epoch 1 --accounts 2'
  const anvil = run({ command: anvilBinary(), args: `${usual} ${flags}`.split(' '), core: 1 })
  try {
    const [, port] = await anvil.line(/^Listening on 127\.0\.0\.1:(\d+)$/m, 30_000)
    const url = `http://127.0.0.1:${port}`
    const rpc = createRpcClient({ url, timeoutMs: 120_000, maxBytes })
    await rpc('anvil_setLoggingEnabled', [false])
    const { contract } = await deployLocal({ rpcUrl: url })
    await rpc('anvil_setAutomine', [false])
    return { url, contract, ...(await fill({ url, rpc, contract })), stop: anvil.stop }
  } catch (error) {
    await anvil.stop()
    throw error
  }
}

/** Sends a transaction of the operator, which the next block mines. Returns its hash. */
export async function send(rpc: RpcClient, to: Hex, data: Hex, gas: Hex): Promise<Hex> {
  return (await rpc('eth_sendTransaction', [{ from: operator, to, data, gas }])) as Hex
}

/** Gives Multicall3 the roles, in one block. */
export async function grantToMulticall(rpc: RpcClient, contract: Hex, roles: readonly Role[]): Promise<void> {
  for (const functionName of roles) {
    const role = (await rpc('eth_call', [{ to: contract, data: encodeFunctionData({ abi, functionName }) }])) as Hex
    const args = [role, multicallAddress] as const
    await send(rpc, contract, encodeFunctionData({ abi, functionName: 'grantRole', args }), '0x100000')
  }
  await rpc('evm_mine', [])
}

/** The call of Multicall3 that sends all `datas` to `target`, or reverts. */
export function multicallOf(target: Hex, datas: readonly Hex[]): Hex {
  const calls = datas.map((callData) => ({ target, allowFailure: false, callData }))
  return encodeFunctionData({ abi: multicall3Abi, functionName: 'aggregate3', args: [calls] })
}
