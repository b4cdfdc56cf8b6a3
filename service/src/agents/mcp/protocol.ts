/** The revisions of MCP that the endpoint supports, its identity, and the two documents that describe it (spec §4.2, §4.3). */
import { verdictChainId } from '@touchstone/verdict'
import { chainName } from '../../domain/chain.ts'
import { staticDocument, type StaticDocument } from '../../http/static-document.ts'
import { toolNames } from '../tools/tools.ts'

/** A request of this revision is self-contained; there is no handshake. */
export const modernVersion = '2026-07-28'
/** Revisions with a handshake, the newest first. A client that names an unknown one is offered the newest. */
export const legacyVersions = ['2025-11-25', '2025-06-18', '2025-03-26'] as const

const supportedVersions = [modernVersion, ...legacyVersions]

/** The server in the protocol and in its descriptors. */
export type McpIdentity = {
  /** Reverse-DNS, with exactly one slash, such as `com.example.verify/touchstone`. */
  readonly name: string
  readonly title: string
  /** At most 100 characters. */
  readonly description: string
  /** One version, no range. */
  readonly version: string
  /** Public URL of the host, without a slash at the end. */
  readonly baseUrl: string
}

/** Returns the identity of this project at `baseUrl`. `operator` is the name of who runs the service. */
export function identityAt(baseUrl: string, version: string, operator: string): McpIdentity {
  return {
    name: `${new URL(baseUrl).hostname.replace(/[[\]]/g, '').replaceAll(':', '.').split('.').reverse().join('.')}/touchstone`,
    title: Array.from(`Asset verification by ${operator}`).slice(0, 100).join(''),
    description: 'Keyless, read-only lifecycle checks for products with an NFC tag. Testnet only, unaudited.',
    version,
    baseUrl,
  }
}

export function mcpDocuments(identity: McpIdentity): ReadonlyMap<string, StaticDocument> {
  const cardType = 'application/mcp-server-card+json'
  return new Map([
    ['/.well-known/mcp.json', staticDocument('application/json', JSON.stringify(registryEntry(identity)))],
    ['/mcp/server-card', staticDocument(cardType, JSON.stringify(serverCard(identity)))],
  ])
}

/** The entry of the MCP registry: `server.json` of 2025-12-11. */
function registryEntry(identity: McpIdentity): object {
  return {
    ...describe(identity, '2025-12-11/server.schema.json'),
    remotes: [remoteOf(identity)],
    _meta: {
      'io.modelcontextprotocol.registry/publisher-provided': {
        tools: toolNames,
        readOnly: true,
        protocolVersions: supportedVersions,
        network: chainName,
        chainId: verdictChainId,
        audit_status: 'unaudited',
        production_ready: false,
      },
    },
  }
}

/** The server card (MCP SEP-2127, experimental): how to connect; it names no tool. */
function serverCard(identity: McpIdentity): object {
  return {
    ...describe(identity, 'v1/server-card.schema.json'),
    remotes: [{ ...remoteOf(identity), supportedProtocolVersions: supportedVersions }],
  }
}

function describe({ name, title, description, version, baseUrl }: McpIdentity, schema: string) {
  const $schema = `https://static.modelcontextprotocol.io/schemas/${schema}`
  return { $schema, name, title, description, version, websiteUrl: baseUrl }
}

function remoteOf({ baseUrl }: McpIdentity) {
  return { type: 'streamable-http', url: `${baseUrl}/mcp` }
}
