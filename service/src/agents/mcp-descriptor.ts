/** GET {base_url}/.well-known/mcp.json: the server as the MCP registry describes one (spec §4.2, `server.json` of 2025-12-11). */
import { verdictChainId } from '@touchstone/verdict'
import { legacyVersions, modernVersion, type McpIdentity } from './mcp-protocol.ts'
import { toolNames } from './tools.ts'

export const mcpDescriptorPath = '/.well-known/mcp.json'

export function mcpDescriptor({ name, title, description, version, baseUrl }: McpIdentity): object {
  return {
    $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
    name,
    title,
    description,
    version,
    websiteUrl: baseUrl,
    remotes: [{ type: 'streamable-http', url: `${baseUrl}/mcp` }],
    _meta: {
      'io.modelcontextprotocol.registry/publisher-provided': {
        tools: toolNames,
        readOnly: true,
        protocolVersions: [modernVersion, ...legacyVersions],
        network: 'base-sepolia',
        chainId: verdictChainId,
      },
    },
  }
}
