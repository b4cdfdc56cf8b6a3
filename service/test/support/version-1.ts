/** Version 1 of the registry, as earlier releases deployed it: on the local chain it stands where version 2 would. */
import type { Hex } from '@touchstone/verdict'
import { encodeDeployData } from 'viem'
import registryV1 from '../../../contracts/artifacts/AssetRegistryV1.json' with { type: 'json' }
import { publishedAddresses } from '../../src/domain/published-accounts.ts'
import { assetRegistryAbi as abi } from '../../src/domain/registry-abi.ts'
import type { RpcClient } from '../../src/chain/rpc/client.ts'

/** Deploys by account 0, with the roles that deployLocal gives, and returns the address. The constructor is that of version 2. */
export async function deployVersion1({ rpc }: { readonly rpc: RpcClient }): Promise<Hex> {
  const [admin, attester] = publishedAddresses as [Hex, Hex]
  const holders = { admin, issuer: admin, binder: admin, qa: admin, guardian: admin, recycler: admin, attester }
  const data = encodeDeployData({ abi, bytecode: registryV1.bytecode as Hex, args: [holders, '', ''] })
  const receipt = await rpc('eth_sendTransactionSync', [{ from: admin, data, gas: '0x1c9c380' }])
  return (receipt as { contractAddress: Hex }).contractAddress
}
