/**
 * Money on the local chain (spec §2.6). It is a worthless USDC at the address that it has on Base Sepolia, because buyers accept no other,
 * and Multicall3, which a facilitator needs to find out why a payment would fail.
 */
import type { Hex } from '@touchstone/verdict'
import { encodeFunctionData, parseAbi } from 'viem/utils'
import testUsdc from '../../../../contracts/artifacts/TestUsdc.json' with { type: 'json' }
import { publishedAddresses } from '../../domain/published-accounts.ts'
import type { RpcClient } from '../rpc/client.ts'
import { readContract } from '../rpc/contract.ts'
import { localRpc, placeCode, placeMulticall, transact } from './transact.ts'

/** USDC on Base Sepolia. */
export const usdcAddress: Hex = '0x036cbd53842c5426634e7929541ec2318f3dcf7e'
/** Indexes of anvil's published accounts with a part in the demonstration; the lower ones are the catalogue's. */
export const moneyAccounts = { payer: 6, seller: 7, facilitator: 8, minter: 9 } as const
/** Mints, so that the accounts that write to the registry keep their transaction counts. */
const mintingAccount = publishedAddresses[moneyAccounts.minter] as Hex
const abi = parseAbi(['function balanceOf(address) view returns (uint256)', 'function mint(address,uint256)'])

/** `amount` in millionths of a dollar. */
export type Fund = Readonly<{ address: Hex; amount: bigint }>

/**
 * Places the token where there is no code yet and tops every payer up to its amount. A second call changes nothing. Each change ends in a
 * block, so that proofs at the head hold. Throws one sentence when the chain does not mine.
 */
export async function installTestMoney({
  rpcUrl,
  fund = [],
}: {
  rpcUrl: string
  fund?: readonly Fund[]
}): Promise<void> {
  const rpc = localRpc(rpcUrl)
  const placed = [await placeMulticall(rpc), await placeCode(rpc, usdcAddress, testUsdc.deployedBytecode)]
  if (placed.includes(true)) await rpc('evm_mine')
  for (const payer of fund) await topUp(rpc, payer)
}

async function topUp(rpc: RpcClient, { address, amount }: Fund): Promise<void> {
  const held = await readContract(rpc, { to: usdcAddress, abi, functionName: 'balanceOf', args: [address] })
  if (held >= amount) return
  const data = encodeFunctionData({ abi, functionName: 'mint', args: [address, amount - held] })
  await transact(rpc, 'the test money', { from: mintingAccount, to: usdcAddress, data })
}
