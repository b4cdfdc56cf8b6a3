/** The server card at `/mcp/server-card` (MCP SEP-2127, experimental): how to connect, and nothing about the tools. */
import { legacyVersions, modernVersion, type McpIdentity } from './mcp-protocol.ts'

export const serverCardPath = '/mcp/server-card'
export const serverCardType = 'application/mcp-server-card+json'

export function serverCard({ name, title, description, version, baseUrl }: McpIdentity): object {
  return {
    $schema: 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json',
    name,
    title,
    description,
    version,
    websiteUrl: baseUrl,
    remotes: [
      {
        type: 'streamable-http',
        url: `${baseUrl}/mcp`,
        supportedProtocolVersions: [modernVersion, ...legacyVersions],
      },
    ],
  }
}
