/** The MCP endpoint on a server of its own, and a client of each era. */
import type { RequestListener } from 'node:http'
import { mcpListener, type McpListener } from '../../../src/agents/mcp/endpoint.ts'
import { identityAt } from '../../../src/agents/mcp/protocol.ts'
import { serve } from '../http.ts'

export const envelope = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

/** Listens on a free port; `baseUrl` is that of the port unless another is given. */
export async function startMcp({
  router = (_request, response) => response.writeHead(404).end(),
  baseUrl,
  ...options
}: Omit<McpListener, 'identity' | 'clientKey'> & { router?: RequestListener; baseUrl?: string }) {
  let listener: RequestListener = router
  const { url, close } = await serve((request, response) => listener(request, response))
  listener = mcpListener(
    { identity: identityAt(baseUrl ?? url, '0.1.0', 'Example'), clientKey: (peer) => peer ?? '', ...options },
    router,
  )
  return {
    url,
    mcpUrl: `${url}/mcp`,
    post: (body: unknown, headers: Record<string, string> = {}) => postTo(`${url}/mcp`, body, headers),
    /** A request of the modern era with the headers that it must have. */
    modern: (method: string, params: object = {}, headers: Record<string, string> = {}) =>
      postTo(
        `${url}/mcp`,
        { jsonrpc: '2.0', id: 1, method, params: { _meta: envelope, ...params } },
        { ...modernHeaders(method, params), ...headers },
      ),
    legacy: (method: string, params?: object, headers: Record<string, string> = {}) =>
      postTo(`${url}/mcp`, { jsonrpc: '2.0', id: 1, method, ...(params && { params }) }, headers),
    close,
    [Symbol.asyncDispose]: close,
  }
}

export function modernHeaders(method: string, params: object): Record<string, string> {
  const { name } = params as { name?: string }
  return {
    'MCP-Protocol-Version': '2026-07-28',
    'Mcp-Method': method,
    ...(name !== undefined && { 'Mcp-Name': name }),
  }
}

async function postTo(url: string, body: unknown, headers: Record<string, string>) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: '*/*', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    text,
    json: (text === '' ? undefined : JSON.parse(text)) as Answer,
  }
}

export type Answer = {
  readonly jsonrpc: string
  readonly id: unknown
  readonly result?: Record<string, unknown> & {
    readonly content?: readonly { readonly type: string; readonly text: string; readonly annotations?: object }[]
    readonly structuredContent?: Record<string, unknown>
    readonly isError?: boolean
    readonly tools?: readonly {
      readonly name: string
      readonly inputSchema: object
      readonly outputSchema: object
      readonly annotations: object
    }[]
  }
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown }
}
