/**
 * Money on the local chain (spec §2.6): a worthless USDC at the address that it has on Base Sepolia, because buyers refuse any other,
 * and Multicall3, without which a facilitator cannot tell why a payment would fail.
 */
import type { Hex } from '@touchstone/verdict'
import { setTimeout as delay } from 'node:timers/promises'
import { decodeFunctionResult, encodeFunctionData, parseAbi } from 'viem'
import multicall from '../../../contracts/artifacts/Multicall3.json' with { type: 'json' }
import testUsdc from '../../../contracts/artifacts/TestUsdc.json' with { type: 'json' }
import { publishedAddresses } from './local-chain-accounts.ts'
import { createWriterRpc } from './writer-rpc.ts'
import type { WriterRpc } from './writer-rpc.ts'

/** USDC on Base Sepolia. */
export const usdcAddress: Hex = '0x036cbd53842c5426634e7929541ec2318f3dcf7e'
const multicallAddress: Hex = '0xca11bde05977b3631167028862be2a173976ca11'
/** Which of anvil's published accounts do what in the demonstration; the lower ones are the catalogue's. */
export const moneyAccounts = { payer: 6, seller: 7, facilitator: 8, minter: 9 } as const
/** Mints, so that the accounts that write to the registry keep their transaction counts. */
const mintingAccount = publishedAddresses[moneyAccounts.minter] as Hex
const tokenAbi = parseAbi(['function balanceOf(address) view returns (uint256)', 'function mint(address,uint256)'])

/** `amount` in millionths of a dollar. */
export type Fund = Readonly<{ address: Hex; amount: bigint }>

/**
 * Puts the token in place where nothing stands yet and tops every payer up to its amount; called again it changes nothing.
 * Each change ends in a block, so that proofs at the head hold. An Error of one sentence when the chain does not mine.
 */
export async function installTestMoney({
  rpcUrl,
  fund = [],
}: {
  rpcUrl: string
  fund?: readonly Fund[]
}): Promise<void> {
  const rpc = createWriterRpc({ url: rpcUrl, timeoutMs: 10_000 })
  const placed = [
    await placeCode(rpc, multicallAddress, multicall.deployedBytecode),
    await placeCode(rpc, usdcAddress, testUsdc.deployedBytecode),
  ]
  if (placed.includes(true)) await rpc('evm_mine')
  for (const payer of fund) await topUp(rpc, payer)
}

async function placeCode(rpc: WriterRpc, address: Hex, code: string): Promise<boolean> {
  if ((await rpc('eth_getCode', [address, 'latest'])) !== '0x') return false
  await rpc('anvil_setCode', [address, code])
  return true
}

async function topUp(rpc: WriterRpc, { address, amount }: Fund): Promise<void> {
  const held = await balanceOf(rpc, address)
  if (held >= amount) return
  const data = encodeFunctionData({ abi: tokenAbi, functionName: 'mint', args: [address, amount - held] })
  const hash = await rpc('eth_sendTransaction', [{ from: mintingAccount, to: usdcAddress, data }])
  for (const until = performance.now() + 10_000; performance.now() < until; await delay(5)) {
    if ((await rpc('eth_getTransactionReceipt', [hash])) !== null) return
  }
  throw new Error('The local chain did not mine the test money within 10 s; restart the service.')
}

async function balanceOf(rpc: WriterRpc, account: Hex): Promise<bigint> {
  const data = encodeFunctionData({ abi: tokenAbi, functionName: 'balanceOf', args: [account] })
  const answer = (await rpc('eth_call', [{ to: usdcAddress, data }, 'latest'])) as Hex
  return decodeFunctionResult({ abi: tokenAbi, functionName: 'balanceOf', data: answer })
}
