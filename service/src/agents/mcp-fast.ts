/**
 * The fast path of MCP (spec §4.3), in front of the SDK: it runs the tool and writes the answer around its result, with the bytes of what
 * never changes asked of the SDK once, at start. A test holds its answers equal to the SDK's.
 */
import {
  CLIENT_CAPABILITIES_META_KEY,
  PROTOCOL_VERSION_META_KEY,
  SERVER_INFO_META_KEY,
} from '@modelcontextprotocol/server'
import { legacyVersions, modernVersion } from './mcp-protocol.ts'
import type { Era, PlainRequest } from './mcp-request.ts'
import { callResultOf } from './mcp-result.ts'
import type { SdkFetch } from './mcp-server.ts'
import { remembering } from './remembering.ts'
import type { ToolAnswer, Tools } from './tools.ts'

/** The body of the answer. */
export type FastPath = (request: PlainRequest) => Promise<string>

/** Asks the SDK for its constant answers. It throws when the SDK does not give them. */
export async function createFastPath(tools: Tools, fetch: SdkFetch): Promise<FastPath> {
  const constant: Readonly<Record<Era, Readonly<Record<string, string>>>> = {
    modern: {
      'tools/list': await ask(fetch, 'modern', 'tools/list'),
      'server/discover': await ask(fetch, 'modern', 'server/discover'),
    },
    legacy: { 'tools/list': await ask(fetch, 'legacy', 'tools/list'), ping: await ask(fetch, 'legacy', 'ping') },
  }
  // What the SDK adds to every result of the modern era.
  const { _meta: meta } = JSON.parse(constant.modern['tools/list'] ?? '') as { _meta: Record<string, unknown> }
  const serverInfo = { [SERVER_INFO_META_KEY]: meta[SERVER_INFO_META_KEY] }
  const added = { modern: `,"resultType":"complete","_meta":${JSON.stringify(serverInfo)}}`, legacy: '}' }

  /** Open at its end, for what the era adds. */
  const resultText = remembering((answer: ToolAnswer) => JSON.stringify(callResultOf(answer)).slice(0, -1))

  return async (request) => {
    const id = JSON.stringify(request.id)
    if (request.method !== 'tools/call') return whole(constant[request.era][request.method] ?? '', id)
    return whole(resultText(await tools[request.tool](request.args)) + added[request.era], id)
  }
}

function whole(result: string, id: string): string {
  return `{"result":${result},"jsonrpc":"2.0","id":${id}}`
}

/** The JSON of the SDK's result to a request that asks for nothing special. */
async function ask(fetch: SdkFetch, era: Era, method: string): Promise<string> {
  const envelope = { [PROTOCOL_VERSION_META_KEY]: modernVersion, [CLIENT_CAPABILITIES_META_KEY]: {} }
  const body = { jsonrpc: '2.0', id: 0, method, ...(era === 'modern' && { params: { _meta: envelope } }) }
  const headers = {
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    'MCP-Protocol-Version': era === 'modern' ? modernVersion : legacyVersions[0],
    'Mcp-Method': method,
  }
  const request = new Request('http://localhost/mcp', { method: 'POST', headers, body: JSON.stringify(body) })
  const { result } = (await (await fetch(request, { parsedBody: body })).json()) as { result?: object }
  if (result === undefined) throw new Error(`The MCP SDK gave no result for ${method}.`)
  return JSON.stringify(result)
}
