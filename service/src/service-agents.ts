/** The doors for agents made of the parts (spec §4.2, §4.3, §9): tools, MCP, A2A, the agent registry. */
import { createA2aAgent } from './agents/a2a-agent.ts'
import { createTaskStore } from './agents/a2a-tasks.ts'
import { createRemoteFiles } from './agents/agent-registry-fetch.ts'
import { createRegistryReads } from './agents/agent-registry-reads.ts'
import { createAgents } from './agents/agent-registry.ts'
import { createReputations } from './agents/agent-reputation.ts'
import { mcpDocuments } from './agents/mcp-documents.ts'
import { identityAt } from './agents/mcp-protocol.ts'
import { createTools } from './agents/tools.ts'
import type { Config } from './config.ts'
import type { Log } from './log.ts'
import type { Parts } from './parts.ts'
import { programVersion } from './version.ts'

/** What the verification host needs to serve agents; `close` ends the connections of its own. */
export function agentDoors({
  config,
  parts,
  urls,
  log,
}: {
  readonly config: Config
  readonly parts: Parts
  readonly urls: Readonly<Record<'verification' | 'gateway', string>>
  readonly log: Log
}) {
  const { id, identity, reputation, reviewers, remoteFiles, origins } = config.agents
  const tools = createTools({ verdicts: parts.verdicts, histories: parts.history, contract: parts.contract, log })
  const own = identityAt(urls.verification, programVersion)
  const reads = createRegistryReads(parts.agentSource)
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
