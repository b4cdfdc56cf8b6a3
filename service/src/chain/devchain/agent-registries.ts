/**
 * The agent registries of ERC-8004 on the local chain. The service is agent 0, and there is some feedback. Their addresses are not those of
 * Base Sepolia: the chain id is the same, and another agent is number 0 there.
 */
import type { Hex } from '@touchstone/verdict'
import { encodeAbiParameters, encodeFunctionData, getCreate2Address, parseAbi } from 'viem/utils'
import identity from '../../../../contracts/artifacts/AgentIdentity.json' with { type: 'json' }
import reputation from '../../../../contracts/artifacts/AgentReputation.json' with { type: 'json' }
import { publishedAddresses } from '../../domain/published-accounts.ts'
import { moneyAccounts } from './test-money.ts'
import { isRevert, type RpcClient } from '../rpc/client.ts'
import { readContract } from '../rpc/contract.ts'
import { codeAt, localRpc, transact } from './transact.ts'

/** The CREATE2 deployer of nearly every chain, anvil's too: an address follows from the code alone. */
const deployer: Hex = '0x4e59b44847b379578588920ca78fbf26c0b4956c'
const salt: Hex = `0x${'0'.repeat(64)}`
const identityCode = identity.bytecode as Hex
const identityAddress = addressOf(identityCode)
const constructorWords = encodeAbiParameters([{ type: 'address' }], [identityAddress])
const reputationCode: Hex = `${reputation.bytecode as Hex}${constructorWords.slice(2)}`

/** Their addresses, in lower case. Another version of the contracts has others. */
export const localAgentRegistries = {
  identity: identityAddress,
  reputation: addressOf(reputationCode),
}

/** The service's own agent. */
export const localAgentId = 0n
/** Owns the agent and is paid for attestations. It is no account whose transactions a running service counts. */
const owner = publishedAddresses[moneyAccounts.seller] as Hex
const minter = publishedAddresses[moneyAccounts.minter] as Hex
/** For the sentence about a failed transaction. */
const what = 'a write to its agent registries'

const abi = parseAbi([
  'function register(string agentURI) returns (uint256 agentId)',
  'function ownerOf(uint256 tokenId) view returns (address)',
  'function tokenURI(uint256 tokenId) view returns (string)',
  'function setAgentURI(uint256 agentId, string newURI)',
  'function getLastIndex(uint256 agentId, address clientAddress) view returns (uint64)',
  'function giveFeedback(uint256 agentId, int128 value, uint8 valueDecimals, string tag1, string tag2, string endpoint, string feedbackURI, bytes32 feedbackHash)',
])

const payer = publishedAddresses[moneyAccounts.payer] as Hex

/** Invented feedback by accounts of the demonstration; it says nothing about a real service. */
const feedback: readonly (readonly [client: Hex, value: bigint, decimals: number, tag1: string, tag2: string])[] = [
  [payer, 92n, 0, 'starred', ''],
  [payer, 9977n, 2, 'uptime', 'month'],
  [payer, 41n, 0, 'responseTime', ''],
  [payer, 1n, 0, 'reachable', ''],
  [minter, 875n, 1, 'starred', ''],
  [minter, 998n, 1, 'uptime', 'month'],
  [minter, 1n, 0, 'chip-read', 'demo'],
]

/** Deploys what is missing; a second call changes nothing. Throws one sentence when the chain does not mine. */
export async function deployLocalAgents({ rpcUrl }: { rpcUrl: string }): Promise<void> {
  const rpc = localRpc(rpcUrl)
  for (const code of [identityCode, reputationCode])
    if ((await codeAt(rpc, addressOf(code))) === '0x')
      await transact(rpc, what, { from: minter, to: deployer, data: `${salt}${code.slice(2)}` })
}

/**
 * Registers the service as agent 0, its registration file in the URI itself, and sends the feedback that is missing. A second call
 * changes only what differs. Needs the registries.
 */
export async function registerLocalAgent({
  rpcUrl,
  registration,
}: {
  rpcUrl: string
  /** The JSON text of the registration file (ERC-8004). */
  registration: string
}): Promise<void> {
  const rpc = localRpc(rpcUrl)
  const { identity: agents, reputation: ratings } = localAgentRegistries
  const uri = `data:application/json;base64,${Buffer.from(registration).toString('base64')}`
  const known = await tokenUri(rpc)
  if (known === null) await write(owner, agents, encodeFunctionData({ abi, functionName: 'register', args: [uri] }))
  else if (known !== uri)
    await write(owner, agents, encodeFunctionData({ abi, functionName: 'setAgentURI', args: [localAgentId, uri] }))
  for (const client of [payer, minter]) {
    const args = [localAgentId, client] as const
    const found = await readContract(rpc, { to: ratings, abi, functionName: 'getLastIndex', args })
    for (const [, ...given] of feedback.filter(([by]) => by === client).slice(Number(found))) {
      const words = [localAgentId, ...given, '', '', salt] as const
      await write(client, ratings, encodeFunctionData({ abi, functionName: 'giveFeedback', args: words }))
    }
  }

  function write(from: Hex, to: Hex, data: Hex): Promise<void> {
    return transact(rpc, what, { from, to, data })
  }
}

function addressOf(code: Hex): Hex {
  return getCreate2Address({ from: deployer, salt, bytecode: code }).toLowerCase() as Hex
}

/** Returns the URI of the service's agent, or `null` when it is not registered. */
async function tokenUri(rpc: RpcClient): Promise<string | null> {
  try {
    return await readContract(rpc, { to: identityAddress, abi, functionName: 'tokenURI', args: [localAgentId] })
  } catch (error) {
    if (isRevert(error)) return null
    throw error
  }
}
