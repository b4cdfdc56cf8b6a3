/** The official MCP clients, connected to an endpoint, as one shape: SDK 2 in its three modes, and SDK 1. */
import { Client, StreamableHTTPClientTransport, type VersionNegotiationOptions } from '@modelcontextprotocol/client'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

type Result = { readonly structuredContent?: unknown; readonly isError?: unknown; readonly content: readonly unknown[] }
export type McpClient = AsyncDisposable & {
  readonly version: string | undefined
  readonly instructions: string | undefined
  readonly tools: () => Promise<readonly { readonly name: string; readonly outputSchema?: unknown }[]>
  /** Both SDKs check the result against the tool's output schema. */
  readonly call: (name: string, args: Record<string, unknown>) => Promise<Result>
}

const name = { name: 'test', version: '1.0.0' }

async function current(url: string, mode: VersionNegotiationOptions['mode']): Promise<McpClient> {
  const client = new Client(name, { versionNegotiation: { mode: mode ?? 'legacy' } })
  await client.connect(new StreamableHTTPClientTransport(new URL(url)))
  return shapeOf(client, client.getNegotiatedProtocolVersion())
}

async function old(url: string): Promise<McpClient> {
  const client = new OldClient(name)
  const transport = new OldTransport(new URL(url))
  await client.connect(transport as Parameters<typeof client.connect>[0])
  return shapeOf(client, transport.protocolVersion)
}

function shapeOf(client: Client | OldClient, version: string | undefined): McpClient {
  return {
    version,
    instructions: client.getInstructions(),
    tools: async () => (await client.listTools()).tools,
    call: async (tool, args) => (await client.callTool({ name: tool, arguments: args })) as Result,
    [Symbol.asyncDispose]: () => client.close(),
  }
}

/** By what they are called in the names of tests; `version` is what they must come to. */
export const mcpClients = [
  { client: 'SDK 2, auto', version: '2026-07-28', connect: (url: string) => current(url, 'auto') },
  { client: 'SDK 2, pinned', version: '2026-07-28', connect: (url: string) => current(url, { pin: '2026-07-28' }) },
  { client: 'SDK 2, legacy', version: '2025-11-25', connect: (url: string) => current(url, 'legacy') },
  { client: 'SDK 1', version: '2025-11-25', connect: old },
] as const
