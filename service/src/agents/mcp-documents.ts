/** The two documents that describe the MCP server, by path. */
import { staticDocument, type StaticDocument } from '../http/static-document.ts'
import { mcpDescriptor, mcpDescriptorPath } from './mcp-descriptor.ts'
import type { McpIdentity } from './mcp-protocol.ts'
import { serverCard, serverCardPath, serverCardType } from './server-card.ts'

export function mcpDocuments(identity: McpIdentity): ReadonlyMap<string, StaticDocument> {
  return new Map([
    [mcpDescriptorPath, staticDocument('application/json', JSON.stringify(mcpDescriptor(identity)))],
    [serverCardPath, staticDocument(serverCardType, JSON.stringify(serverCard(identity)))],
  ])
}
