/** The interfaces for agents (spec §4.2, §4.3, §9): tools, MCP, A2A, and the agent registries. */
import { createA2aAgent } from '../../agents/a2a/agent.ts'
import { createTaskStore } from '../../agents/a2a/tasks.ts'
import { createRemoteFiles } from '../../agents/erc8004/fetch.ts'
import { createRegistryReads } from '../../agents/erc8004/reads.ts'
import { createAgents } from '../../agents/erc8004/registry.ts'
import { createReputations } from '../../agents/erc8004/reputation.ts'
import { identityAt, mcpDocuments } from '../../agents/mcp/protocol.ts'
import { createTools } from '../../agents/tools/tools.ts'
import type { Config } from '../config/config.ts'
import type { Log } from '../../lib/log.ts'
import type { Components } from '../components.ts'
import { programVersion } from '../../lib/version.ts'

type Options = {
  readonly config: Config
  readonly components: Components
  readonly urls: Readonly<Record<'verification' | 'gateway', string>>
  readonly log: Log
}

/** Builds the interfaces for agents; `close` closes the connections of their own. */
export function openAgentInterfaces({ config, components, urls, log }: Options) {
  const { id, identity, reputation, reviewers, remoteFiles, origins } = config.agents
  const { verdicts, history, contract, agentSource } = components
  const tools = createTools({ verdicts, histories: history, contract, log })
  const own = identityAt(urls.verification, programVersion)
  const reads = createRegistryReads(agentSource)
  const remote = remoteFiles ? createRemoteFiles() : undefined
  return {
    a2a: createA2aAgent({ tools, tasks: createTaskStore() }),
    agents: createAgents({ reads, identity, remote }),
    reputations: createReputations({ reads, identity, reputation, reviewers }),
    ownAgent: {
      baseUrl: urls.verification,
      gatewayUrl: config.gateway.payTo === null ? null : urls.gateway,
      name: own.title,
      description: own.description,
      programVersion,
      agentId: id === null ? null : BigInt(id),
      identity,
    },
    mcp: { tools, identity: own, origins },
    documents: mcpDocuments(own),
    close: async () => remote?.close(),
  }
}
