/**
 * The registry on the local chain (spec §2.5), always at the same address: account 0's first deployment.
 * Account 0 holds every role except ATTESTER, which is account 1's. Multicall3 stands where it stands on every chain.
 */
import type { Hex } from '@touchstone/verdict'
import { setTimeout as delay } from 'node:timers/promises'
import { bytesToHex, encodeDeployData, hexToBytes, keccak256, toEventSelector } from 'viem'
import multicall from '../../../contracts/artifacts/Multicall3.json' with { type: 'json' }
import registry from '../../../contracts/artifacts/AssetRegistry.json' with { type: 'json' }
import { assetRegistryAbi } from './abi.ts'
import { publishedAddresses } from './local-chain-accounts.ts'
import { createWriterRpc } from './writer-rpc.ts'
import type { WriterRpc } from './writer-rpc.ts'

export const localRegistry: Hex = '0x5fbdb2315678afecb367f032d93f642f64180aa3'
const multicallAddress: Hex = '0xca11bde05977b3631167028862be2a173976ca11'

/** `contract` in lower case; `codeHash` is keccak256 of its code; the first log is in `deployBlock`. */
export type Deployment = Readonly<{ contract: Hex; codeHash: Hex; deployBlock: bigint }>

/** Deploys what is missing and answers the same every time. Another version of the registry there is an Error of one sentence. */
export async function deployLocal({ rpcUrl }: { rpcUrl: string }): Promise<Deployment> {
  const rpc = createWriterRpc({ url: rpcUrl, timeoutMs: 10_000 })
  if ((await codeAt(rpc, multicallAddress)) === '0x') {
    await rpc('anvil_setCode', [multicallAddress, multicall.deployedBytecode])
  }
  let code = await codeAt(rpc, localRegistry)
  if (code === '0x') {
    await deployRegistry(rpc)
    code = await codeAt(rpc, localRegistry)
  }
  if (withoutImmutables(code) !== withoutImmutables(registry.deployedBytecode as Hex)) {
    throw new Error(
      'The local chain holds another version of the registry contract: move the data folder away to start anew, or run the version of this program that made it.',
    )
  }
  return { contract: localRegistry, codeHash: keccak256(code), deployBlock: await firstLogBlock(rpc) }
}

async function codeAt(rpc: WriterRpc, address: Hex): Promise<Hex> {
  return (await rpc('eth_getCode', [address, 'latest'])) as Hex
}

/** anvil signs for its own accounts. */
async function deployRegistry(rpc: WriterRpc): Promise<void> {
  const [operator, attester] = publishedAddresses as [Hex, Hex]
  const holders = {
    admin: operator,
    issuer: operator,
    binder: operator,
    qa: operator,
    guardian: operator,
    recycler: operator,
    attester,
  }
  const data = encodeDeployData({ abi: assetRegistryAbi, bytecode: registry.bytecode as Hex, args: [holders, '', ''] })
  const hash = await rpc('eth_sendTransaction', [{ from: operator, data, nonce: '0x0' }])
  for (const until = performance.now() + 10_000; performance.now() < until; await delay(5)) {
    if ((await rpc('eth_getTransactionReceipt', [hash])) !== null) return
  }
  throw new Error('The local chain did not mine the registry contract within 10 s; restart the service.')
}

/** A deployment's own values (its address, the chain id) are zero in the artifact. */
function withoutImmutables(code: Hex): Hex {
  const bytes = hexToBytes(code)
  for (const { start, length } of Object.values(registry.immutableReferences).flat())
    bytes.fill(0, start, start + length)
  return bytesToHex(bytes)
}

async function firstLogBlock(rpc: WriterRpc): Promise<bigint> {
  const roleGranted = toEventSelector('RoleGranted(bytes32,address,address)')
  const filter = { address: localRegistry, topics: [roleGranted], fromBlock: '0x0', toBlock: 'latest' }
  const [first] = (await rpc('eth_getLogs', [filter])) as { blockNumber: Hex }[]
  if (first === undefined)
    throw new Error(
      'The local chain has lost the first blocks of the registry contract: move the data folder away to start anew.',
    )
  return BigInt(first.blockNumber)
}
