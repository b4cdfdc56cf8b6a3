import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { createPublicClient, http, parseAbi } from 'viem'
import { createLog } from '../../lib/log.ts'
import { testFolder } from '../../../test/support/folder.ts'
import { pinnedReads } from '../../../test/support/local-reads.ts'
import { deployLocalAgents, localAgentRegistries, registerLocalAgent } from './agent-registries.ts'
import { publishedAddresses } from '../../domain/published-accounts.ts'
import { type LocalChain, startLocalChain } from './devchain.ts'
import { deployLocal } from './deploy.ts'
import { createRpcClient, type RpcClient } from '../rpc/client.ts'

const abi = parseAbi([
  'function tokenURI(uint256 tokenId) view returns (string)',
  'function ownerOf(uint256 tokenId) view returns (address)',
  'function getAgentWallet(uint256 agentId) view returns (address)',
  'function getIdentityRegistry() view returns (address)',
  'function getClients(uint256 agentId) view returns (address[])',
])
const log = createLog(() => {})
const registration = JSON.stringify({ name: 'one', active: true })

describe('the agent registries of the local chain', () => {
  const dataDir = testFolder()
  let chain: LocalChain
  let rpc: RpcClient
  before(async () => {
    chain = await startLocalChain({ dataDir, log })
    rpc = createRpcClient(chain)
    await deployLocal({ rpcUrl: chain.url })
    await deployLocalAgents({ rpcUrl: chain.url })
    await registerLocalAgent({ rpcUrl: chain.url, registration })
  })
  after(() => chain.close())

  it('have the service as agent 0, whose wallet is its owner’s', async () => {
    assert.equal(await uri(), `data:application/json;base64,${btoa(registration)}`)
    const owner = await ask('ownerOf')
    assert.equal(String(owner).toLowerCase(), publishedAddresses[7])
    assert.equal(await ask('getAgentWallet'), owner)
  })

  it('know one another, and hold the feedback of two clients', async () => {
    const { identity, reputation } = localAgentRegistries
    const client = createPublicClient({ transport: http(chain.url) })
    const of = await client.readContract({ address: reputation, abi, functionName: 'getIdentityRegistry' })
    assert.equal(of.toLowerCase(), identity)
    const clients = await client.readContract({ address: reputation, abi, functionName: 'getClients', args: [0n] })
    assert.deepEqual(
      clients.map((address) => address.toLowerCase()),
      [publishedAddresses[6], publishedAddresses[9]],
    )
  })

  it('are not where those of Base Sepolia are, whose agent 0 is another', () => {
    assert.doesNotMatch(localAgentRegistries.identity, /^0x8004/)
    assert.doesNotMatch(localAgentRegistries.reputation, /^0x8004/)
  })

  it('leave account 0 its one deployment, and every block provable', async () => {
    assert.equal(await rpc('eth_getTransactionCount', [publishedAddresses[0], 'latest']), '0x1')
    assert.ok((await pinnedReads(chain.url)).length > 9)
  })

  it('are there already after a restart: no block; a new registration file is one block', async () => {
    await chain.close()
    chain = await startLocalChain({ dataDir, log })
    rpc = createRpcClient(chain)
    const head = await rpc('eth_blockNumber')
    await deployLocalAgents({ rpcUrl: chain.url })
    await registerLocalAgent({ rpcUrl: chain.url, registration })
    assert.equal(await rpc('eth_blockNumber'), head)
    await registerLocalAgent({ rpcUrl: chain.url, registration: '{}' })
    assert.equal(BigInt((await rpc('eth_blockNumber')) as string), BigInt(head as string) + 1n)
    assert.equal(await uri(), `data:application/json;base64,${btoa('{}')}`)
  })

  const ask = (functionName: 'ownerOf' | 'tokenURI' | 'getAgentWallet') =>
    createPublicClient({ transport: http(chain.url) }).readContract({
      address: localAgentRegistries.identity,
      abi,
      functionName,
      args: [0n],
    })
  const uri = () => ask('tokenURI')
})
