/**
 * The registry on the local chain (spec §2.5), always at the same address: account 0's first deployment.
 * Account 0 holds every role except ATTESTER, which is account 1's, unless others are named. Multicall3 has the address of every chain.
 */
import type { Hex } from '@touchstone/verdict'
import { bytesToHex, encodeDeployData, hexToBytes, keccak256, toEventSelector } from 'viem/utils'
import registry from '../../../../contracts/artifacts/AssetRegistry.json' with { type: 'json' }
import registryV1 from '../../../../contracts/artifacts/AssetRegistryV1.json' with { type: 'json' }
import { publishedAddresses } from '../../domain/published-accounts.ts'
import { assetRegistryAbi } from '../../domain/registry-abi.ts'
import type { RpcClient } from '../rpc/client.ts'
import { readContract } from '../rpc/contract.ts'
import { codeAt, localRpc, placeMulticall, transact } from './transact.ts'

export const localRegistry: Hex = '0x5fbdb2315678afecb367f032d93f642f64180aa3'

/** `contract` in lower case; `codeHash` is keccak256 of its code; the first log is in `deployBlock`. */
export type LocalDeployment = Readonly<{ contract: Hex; codeHash: Hex; deployBlock: bigint }>

/** A local chain keeps the version that it was made with. */
const readable = [registry, registryV1]

/** Deploys what is missing and returns the same every time. Throws one sentence where an unknown version of the registry stands. */
export async function deployLocal({
  rpcUrl,
  operator = publishedAddresses[0] as Hex,
  attester = publishedAddresses[1] as Hex,
}: {
  rpcUrl: string
  operator?: Hex
  attester?: Hex
}): Promise<LocalDeployment> {
  const rpc = localRpc(rpcUrl)
  await placeMulticall(rpc)
  let code = await codeAt(rpc, localRegistry)
  if (code === '0x') {
    await deployRegistry(rpc, operator, attester)
    code = await codeAt(rpc, localRegistry)
  }
  if (!readable.some((version) => isCodeOf(version, code))) {
    throw new Error(
      'The local chain holds another version of the registry contract. Move the data folder away to start anew, or run the version of this program that made it.',
    )
  }
  await assertRoles(rpc, { ISSUER_ROLE: operator, ATTESTER_ROLE: attester })
  return { contract: localRegistry, codeHash: keccak256(code), deployBlock: await firstLogBlock(rpc) }
}

/** Throws one sentence where the roles were given to other accounts when the registry was deployed. */
async function assertRoles(
  rpc: RpcClient,
  holders: Readonly<Record<'ISSUER_ROLE' | 'ATTESTER_ROLE', Hex>>,
): Promise<void> {
  const read = { to: localRegistry, abi: assetRegistryAbi } as const
  for (const name of ['ISSUER_ROLE', 'ATTESTER_ROLE'] as const) {
    const role = await readContract(rpc, { ...read, functionName: name, args: [] })
    if (!(await readContract(rpc, { ...read, functionName: 'hasRole', args: [role, holders[name]] })))
      throw new Error(
        'The local chain was made for other keys: start with the KEYS of before, or move the data folder away to start anew.',
      )
  }
}

async function deployRegistry(rpc: RpcClient, operator: Hex, attester: Hex): Promise<void> {
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
  await transact(rpc, 'the registry contract', { from: publishedAddresses[0] as Hex, data, nonce: '0x0' })
}

/** Compares code with an artifact, in which the values of a deployment (its address, the chain id) are zero. */
function isCodeOf({ deployedBytecode, immutableReferences }: (typeof readable)[number], code: Hex): boolean {
  const bytes = hexToBytes(code)
  for (const { start, length } of Object.values(immutableReferences).flat()) bytes.fill(0, start, start + length)
  return bytesToHex(bytes) === deployedBytecode
}

async function firstLogBlock(rpc: RpcClient): Promise<bigint> {
  const roleGranted = toEventSelector('RoleGranted(bytes32,address,address)')
  const filter = { address: localRegistry, topics: [roleGranted], fromBlock: '0x0', toBlock: 'latest' }
  const [first] = (await rpc('eth_getLogs', [filter])) as { blockNumber: Hex }[]
  if (first === undefined)
    throw new Error(
      'The local chain has lost the first blocks of the registry contract: move the data folder away to start anew.',
    )
  return BigInt(first.blockNumber)
}
