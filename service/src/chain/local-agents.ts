/**
 * The agent registries of ERC-8004 on the local chain, with the service as agent 0 and some feedback to look at.
 * Their addresses are not those of Base Sepolia: the chain id is the same, and another agent is number 0 there.
 */
import type { Hex } from '@touchstone/verdict'
import { setTimeout as delay } from 'node:timers/promises'
import { decodeFunctionResult, encodeAbiParameters, encodeFunctionData, getCreate2Address, parseAbi } from 'viem'
import identity from '../../../contracts/artifacts/AgentIdentity.json' with { type: 'json' }
import reputation from '../../../contracts/artifacts/AgentReputation.json' with { type: 'json' }
import { publishedAddresses } from './local-chain-accounts.ts'
import { moneyAccounts } from './local-money.ts'
import { createWriterRpc, RpcRefusal } from './writer-rpc.ts'
import type { WriterRpc } from './writer-rpc.ts'

export type AgentRegistries = Readonly<{ identity: Hex; reputation: Hex }>

/** The CREATE2 deployer that stands on nearly every chain, anvil's too: an address follows from the code alone, whoever deploys. */
const deployer: Hex = '0x4e59b44847b379578588920ca78fbf26c0b4956c'
const salt: Hex = `0x${'0'.repeat(64)}`
const identityCode = identity.bytecode as Hex
const identityAddress = addressOf(identityCode)
const constructorWords = encodeAbiParameters([{ type: 'address' }], [identityAddress])
const reputationCode: Hex = `${reputation.bytecode as Hex}${constructorWords.slice(2)}`

/** Where they stand once they are deployed, in lower case. Another version of the contracts stands somewhere else. */
export const localAgentRegistries: AgentRegistries = {
  identity: identityAddress,
  reputation: addressOf(reputationCode),
}

/** The service's own agent. */
export const localAgentId = 0n
/** Owns the agent: who is paid for attestations. No account of it counts its own transactions in a running service. */
const owner = publishedAddresses[moneyAccounts.seller] as Hex
const pays = publishedAddresses[moneyAccounts.minter] as Hex

const abi = parseAbi([
  'function register(string agentURI) returns (uint256 agentId)',
  'function ownerOf(uint256 tokenId) view returns (address)',
  'function tokenURI(uint256 tokenId) view returns (string)',
  'function setAgentURI(uint256 agentId, string newURI)',
  'function getLastIndex(uint256 agentId, address clientAddress) view returns (uint64)',
  'function giveFeedback(uint256 agentId, int128 value, uint8 valueDecimals, string tag1, string tag2, string endpoint, string feedbackURI, bytes32 feedbackHash)',
])

type Feedback = readonly [value: bigint, decimals: number, tag1: string, tag2?: string]

/** Made up, by accounts of the demonstration: nothing of it says anything about a real service. */
const feedback: ReadonlyMap<Hex, readonly Feedback[]> = new Map([
  [
    publishedAddresses[moneyAccounts.payer] as Hex,
    [
      [92n, 0, 'starred'],
      [9977n, 2, 'uptime', 'month'],
      [41n, 0, 'responseTime'],
      [1n, 0, 'reachable'],
    ],
  ],
  [
    publishedAddresses[moneyAccounts.minter] as Hex,
    [
      [875n, 1, 'starred'],
      [998n, 1, 'uptime', 'month'],
      [1n, 0, 'chip-read', 'demo'],
    ],
  ],
])

/** Deploys what is missing; called again it changes nothing. An Error of one sentence when the chain does not mine. */
export async function deployLocalAgents({ rpcUrl }: { rpcUrl: string }): Promise<AgentRegistries> {
  const rpc = createWriterRpc({ url: rpcUrl, timeoutMs: 10_000 })
  for (const code of [identityCode, reputationCode]) {
    if ((await rpc('eth_getCode', [addressOf(code), 'latest'])) === '0x')
      await send(rpc, { from: pays, to: deployer, data: `${salt}${code.slice(2)}` })
  }
  return localAgentRegistries
}

/**
 * Registers the service as agent 0, its registration file in the URI itself, and gives the feedback that is missing. Called again it
 * changes what differs only. Needs the registries.
 */
export async function registerLocalAgent({
  rpcUrl,
  registration,
}: {
  rpcUrl: string
  /** The JSON text of the registration file (ERC-8004). */
  registration: string
}): Promise<void> {
  const rpc = createWriterRpc({ url: rpcUrl, timeoutMs: 10_000 })
  const uri = `data:application/json;base64,${Buffer.from(registration).toString('base64')}`
  const known = await uriOf(rpc, localAgentId)
  if (known === null) await write(rpc, owner, identityAddress, 'register', [uri])
  else if (known !== uri) await write(rpc, owner, identityAddress, 'setAgentURI', [localAgentId, uri])
  for (const [client, given] of feedback) {
    const args = [localAgentId, client] as const
    const found = (await read(rpc, localAgentRegistries.reputation, 'getLastIndex', args)) as bigint
    for (const one of given.slice(Number(found))) {
      const [value, decimals, tag1, tag2 = ''] = one
      const words = [localAgentId, value, decimals, tag1, tag2, '', '', salt]
      await write(rpc, client, localAgentRegistries.reputation, 'giveFeedback', words)
    }
  }
}

function addressOf(code: Hex): Hex {
  return getCreate2Address({ from: deployer, salt, bytecode: code }).toLowerCase() as Hex
}

/** Null: no such agent. */
async function uriOf(rpc: WriterRpc, agentId: bigint): Promise<string | null> {
  try {
    return (await read(rpc, identityAddress, 'tokenURI', [agentId])) as string
  } catch (error) {
    if (error instanceof RpcRefusal && error.data !== undefined) return null
    throw error
  }
}

async function read(rpc: WriterRpc, to: Hex, functionName: string, args: readonly unknown[]): Promise<unknown> {
  const data = encodeFunctionData({ abi, functionName, args } as Parameters<typeof encodeFunctionData>[0])
  const answer = (await rpc('eth_call', [{ to, data }, 'latest'])) as Hex
  return decodeFunctionResult({ abi, functionName, data: answer } as Parameters<typeof decodeFunctionResult>[0])
}

async function write(rpc: WriterRpc, from: Hex, to: Hex, functionName: string, args: readonly unknown[]) {
  const data = encodeFunctionData({ abi, functionName, args } as Parameters<typeof encodeFunctionData>[0])
  await send(rpc, { from, to, data })
}

/** anvil signs for its own accounts. */
async function send(rpc: WriterRpc, transaction: { from: Hex; to: Hex; data: Hex }): Promise<void> {
  const hash = await rpc('eth_sendTransaction', [transaction])
  for (const until = performance.now() + 10_000; performance.now() < until; await delay(5)) {
    const receipt = (await rpc('eth_getTransactionReceipt', [hash])) as { status: Hex } | null
    if (receipt?.status === '0x1') return
    if (receipt !== null) break
  }
  throw new Error('The local chain did not take a write to its agent registries; restart the service.')
}
