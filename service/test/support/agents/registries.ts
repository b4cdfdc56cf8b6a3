/** The agent registries on a local chain of their own, for tests. Also the routes that look agents up in them. */
import { Hono } from 'hono'
import { encodeFunctionData, parseAbi, type Hex } from 'viem'
import { registrationFile } from '../../../src/agents/erc8004/registration-file.ts'
import { createAgents } from '../../../src/agents/erc8004/registry.ts'
import type { RemoteFiles } from '../../../src/agents/erc8004/fetch.ts'
import { createRegistryReads } from '../../../src/agents/erc8004/reads.ts'
import { createReputations } from '../../../src/agents/erc8004/reputation.ts'
import {
  deployLocalAgents,
  localAgentRegistries,
  registerLocalAgent,
} from '../../../src/chain/devchain/agent-registries.ts'
import { publishedAddresses } from '../../../src/domain/published-accounts.ts'
import type { RateLimiter } from '../../../src/http/rate-limit/limiter.ts'
import { createLog } from '../../../src/lib/log.ts'
import { agentRoutes } from '../../../src/hosts/verification/routes/agents.ts'
import { createRequestHelpers, rawPath, type Env } from '../../../src/hosts/verification/request.ts'
import { sourceOver } from '../rpc-anvil.ts'
import { startRegistryChain } from '../test-chain.ts'
import { ownAgentAt, type Json } from './a2a.ts'

const abi = parseAbi([
  'function register(string agentURI) returns (uint256 agentId)',
  'function transferFrom(address from, address to, uint256 tokenId)',
  'function giveFeedback(uint256 agentId, int128 value, uint8 valueDecimals, string tag1, string tag2, string endpoint, string feedbackURI, bytes32 feedbackHash)',
  'function revokeFeedback(uint256 agentId, uint64 feedbackIndex)',
])

export const accountOf = (index: number): Hex => publishedAddresses[index] ?? '0x'
export const dataUri = (file: object): string =>
  `data:application/json;base64,${Buffer.from(JSON.stringify(file)).toString('base64')}`

export async function startAgents() {
  const lines: string[] = []
  const log = createLog((line) => lines.push(line), 'debug')
  const chain = await startRegistryChain()
  await deployLocalAgents({ rpcUrl: chain.url })
  const { identity, reputation } = localAgentRegistries
  const own = { ...ownAgentAt('https://verify.example'), identity }
  await registerLocalAgent({ rpcUrl: chain.url, registration: JSON.stringify(registrationFile(own)) })
  const { source } = sourceOver([chain.url], { contract: chain.contract, log })
  const reads = createRegistryReads(source)

  async function write(from: Hex, to: Hex, functionName: string, args: readonly unknown[]): Promise<void> {
    const data = encodeFunctionData({ abi, functionName, args } as Parameters<typeof encodeFunctionData>[0])
    const { status } = await chain.send({ from, to, data, gas: 30_000_000 })
    if (status !== '0x1') throw new Error(`${functionName} was refused`)
  }

  /** The routes as an app, with other options than usual where a test wants them. */
  function host({
    remote,
    reviewers = [],
    limiter,
    registry = identity,
  }: {
    remote?: Pick<RemoteFiles, 'text'>
    reviewers?: readonly Hex[]
    limiter?: RateLimiter
    registry?: Hex
  } = {}) {
    const app = new Hono<Env>({ getPath: rawPath, strict: true })
    const helpers = createRequestHelpers({ clientKey: () => 'client', log })
    agentRoutes(app, helpers, {
      ownAgent: own,
      agents: createAgents({ reads, identity: registry, remote }),
      reputations: createReputations({ reads, identity: registry, reputation, reviewers }),
      limiter,
    })
    return async (path: string) => {
      const response = await app.request(path)
      const isJson = response.headers.get('content-type') === 'application/json'
      return { status: response.status, headers: response.headers, body: (isJson ? await response.json() : {}) as Json }
    }
  }

  let agents = 1n
  return {
    identity,
    reputation,
    own,
    lines,
    chainUrl: chain.url,
    host,
    get: host(),
    /** Registers an agent of account 5; its number. */
    async register(uri: string): Promise<bigint> {
      await write(accountOf(5), identity, 'register', [uri])
      return agents++
    },
    transfer: (agentId: bigint) => write(accountOf(5), identity, 'transferFrom', [accountOf(5), accountOf(4), agentId]),
    feedback: (account: number, agentId: bigint, value: bigint, decimals: number, tag1: string, tag2 = '') =>
      write(accountOf(account), reputation, 'giveFeedback', [
        agentId,
        value,
        decimals,
        tag1,
        tag2,
        '',
        '',
        `0x${'0'.repeat(64)}`,
      ]),
    revoke: (account: number, agentId: bigint, index: bigint) =>
      write(accountOf(account), reputation, 'revokeFeedback', [agentId, index]),
    async end() {
      await source.close()
      await chain.close()
    },
  }
}
