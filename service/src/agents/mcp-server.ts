/**
 * MCP by the official SDK (spec §4.3): every request of either era is served by a server and a transport of its own, without sessions.
 * It answers all that the fast path does not take.
 */
import { toNodeHandler } from '@modelcontextprotocol/node'
import {
  createMcpHandler,
  isLegacyRequest,
  McpServer,
  WebStandardStreamableHTTPServerTransport,
  type McpHandlerRequestOptions,
  type StandardSchemaWithJSON,
} from '@modelcontextprotocol/server'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { reasonOf } from '../errors.ts'
import type { Log } from '../log.ts'
import { legacyVersions, type McpIdentity } from './mcp-protocol.ts'
import { callResultOf } from './mcp-result.ts'
import { instructions, listedTools } from './mcp-tools.ts'
import { toolNames, type Tools } from './tools.ts'

export type SdkFetch = (request: Request, options: McpHandlerRequestOptions) => Promise<Response>
/** Answers a request whose body was read and parsed. */
export type SdkHandler = (request: IncomingMessage, response: ServerResponse, body: unknown) => Promise<void>

/** The two eras as one function; the fast path asks it for what never changes. */
export function createSdkFetch(tools: Tools, identity: McpIdentity): SdkFetch {
  const makeServer = () => serverOf(tools, identity)
  const modern = createMcpHandler(makeServer, { legacy: 'reject' })
  return async (request, options) =>
    (await isLegacyRequest(request, options.parsedBody))
      ? await answerLegacy(makeServer(), request, options)
      : await modern.fetch(request, options)
}

/** A request without answer after `deadlineMs` gets 504: a call that is cancelled in its own batch would wait for ever. */
export function createSdkHandler(fetch: SdkFetch, log: Log, deadlineMs = 30_000): SdkHandler {
  const handler = toNodeHandler(
    {
      async fetch(request, options = {}) {
        const response = await within(deadlineMs, fetch(request, options))
        if (response.status >= 500) log.warn('mcp request failed', { status: response.status })
        return response
      },
    },
    { onerror: (error) => log.error('mcp request failed', { reason: reasonOf(error) }) },
  )
  return handler as SdkHandler
}

function serverOf(tools: Tools, { name, title, version, description, baseUrl }: McpIdentity): McpServer {
  const forAnHour = { ttlMs: 3_600_000, cacheScope: 'public' } as const
  const server = new McpServer(
    { name, title, version, description, websiteUrl: baseUrl },
    {
      instructions,
      capabilities: { tools: { listChanged: false } },
      supportedProtocolVersions: [...legacyVersions],
      cacheHints: { 'tools/list': forAnHour, 'server/discover': forAnHour },
    },
  )
  for (const tool of toolNames) {
    const { title: toolTitle, description: about, openWorld } = listedTools[tool]
    server.registerTool(
      tool,
      {
        title: toolTitle,
        description: about,
        inputSchema: schemas[tool].input,
        outputSchema: schemas[tool].output,
        annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: openWorld },
      },
      async (args: unknown) => callResultOf(await tools[tool](args)),
    )
  }
  return server
}

/**
 * The advertised schemas, converted once: the SDK would convert Zod's on every request. They let everything through, because a tool reads
 * its arguments itself, and words its refusal as the other doors do.
 */
const schemas = Object.fromEntries(
  toolNames.map((tool) => {
    const { input, output } = listedTools[tool]
    return [tool, { input: constant({ input, output: input }), output: constant({ input: output, output }) }]
  }),
) as unknown as Readonly<Record<(typeof toolNames)[number], Record<'input' | 'output', StandardSchemaWithJSON>>>

function constant(
  json: Readonly<Record<'input' | 'output', Readonly<Record<string, unknown>>>>,
): StandardSchemaWithJSON {
  return {
    '~standard': {
      version: 1,
      vendor: 'touchstone',
      validate: (value: unknown) => ({ value }),
      jsonSchema: { input: () => json.input, output: () => json.output },
    },
  }
}

/** A handshake revision as JSON; the SDK's own fallback would answer it as an event stream. */
async function answerLegacy(server: McpServer, request: Request, options: McpHandlerRequestOptions): Promise<Response> {
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: undefined,
    enableJsonResponse: true,
  })
  await server.connect(transport)
  try {
    return await transport.handleRequest(request, options)
  } finally {
    await server.close()
  }
}

async function within(ms: number, answer: Promise<Response>): Promise<Response> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<Response>((resolve) => {
    timer = setTimeout(resolve, ms, Response.json(tooLate, { status: 504 }))
  })
  return await Promise.race([answer, late]).finally(() => clearTimeout(timer))
}

const tooLate = { jsonrpc: '2.0', error: { code: -32603, message: 'The request took too long.' }, id: null }
