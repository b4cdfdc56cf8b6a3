/**
 * The fast path of MCP (spec §4.3), in front of the SDK. It recognises plain requests, runs the tool and writes the response itself. The
 * constant parts were asked of the SDK once, at start. A test proves its answers equal to the SDK's. Unusual requests and all errors of the
 * protocol are left to the SDK.
 */
import {
  classifyInboundRequest,
  CLIENT_CAPABILITIES_META_KEY,
  PROTOCOL_VERSION_META_KEY,
  SERVER_INFO_META_KEY,
} from '@modelcontextprotocol/server'
import type { IncomingHttpHeaders } from 'node:http'
import { isObject, type JsonObject } from '../../lib/json.ts'
import { memoize } from '../../lib/memoize.ts'
import { toolNames, type ToolAnswer, type ToolName, type Tools } from '../tools/tools.ts'
import { legacyVersions, modernVersion } from './protocol.ts'
import { toCallResult, type SdkFetch } from './server.ts'

type Era = 'modern' | 'legacy'
type StaticMethod = 'tools/list' | 'server/discover' | 'ping'
type PlainRequest = { readonly id: string | number; readonly era: Era } & (
  | { readonly method: 'tools/call'; readonly tool: ToolName; readonly args: object }
  | { readonly method: StaticMethod }
)

/** Returns the body of the response. */
export type FastPath = (request: PlainRequest) => Promise<string>

/** Throws if the SDK does not return its constant answers. */
export async function createFastPath(tools: Tools, fetch: SdkFetch): Promise<FastPath> {
  const constant: Readonly<Record<Era, Readonly<Record<string, string>>>> = {
    modern: {
      'tools/list': await askSdk(fetch, 'modern', 'tools/list'),
      'server/discover': await askSdk(fetch, 'modern', 'server/discover'),
    },
    legacy: { 'tools/list': await askSdk(fetch, 'legacy', 'tools/list'), ping: await askSdk(fetch, 'legacy', 'ping') },
  }
  // The SDK adds these to every result of the modern era.
  const { _meta: meta } = JSON.parse(constant.modern['tools/list'] ?? '') as { _meta: Record<string, unknown> }
  const serverInfo = { [SERVER_INFO_META_KEY]: meta[SERVER_INFO_META_KEY] }
  const added = { modern: `,"resultType":"complete","_meta":${JSON.stringify(serverInfo)}}`, legacy: '}' }

  const memoized = memoize(openResult, { max: 2_000 })

  return async (request) => {
    const id = JSON.stringify(request.id)
    if (request.method !== 'tools/call') return envelope(constant[request.era][request.method] ?? '', id)
    const answer = await tools[request.tool](request.args)
    // Every history is an object of its own, and a long one has a megabyte as JSON.
    const opened = request.tool === 'get_lifecycle_history' ? openResult(answer) : memoized(answer)
    return envelope(opened + added[request.era], id)
  }
}

/** Formats a result without its closing brace, because the era adds members. */
function openResult(answer: ToolAnswer): string {
  return JSON.stringify(toCallResult(answer)).slice(0, -1)
}

function envelope(result: string, id: string): string {
  return `{"result":${result},"jsonrpc":"2.0","id":${id}}`
}

/** Returns the JSON of the SDK's result to a plain request. */
async function askSdk(fetch: SdkFetch, era: Era, method: string): Promise<string> {
  const meta = { [PROTOCOL_VERSION_META_KEY]: modernVersion, [CLIENT_CAPABILITIES_META_KEY]: {} }
  const body = { jsonrpc: '2.0', id: 0, method, ...(era === 'modern' && { params: { _meta: meta } }) }
  const headers = {
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    'MCP-Protocol-Version': era === 'modern' ? modernVersion : legacyVersions[0],
    'Mcp-Method': method,
  }
  const request = new Request('http://localhost/mcp', { method: 'POST', headers, body: JSON.stringify(body) })
  const { result } = (await (await fetch(request, { parsedBody: body })).json()) as { result?: object }
  if (result === undefined) throw new Error(`The MCP SDK returned no result for ${method}.`)
  return JSON.stringify(result)
}

/** Recognises plain requests by headers and parsed body; null leaves the request to the SDK. */
export function recognise(headers: IncomingHttpHeaders, body: unknown): PlainRequest | null {
  if (!isObject(body) || !hasOnly(body, ['jsonrpc', 'id', 'method', 'params'])) return null
  const { jsonrpc, id, method, params = {} } = body
  if (jsonrpc !== '2.0' || typeof method !== 'string' || !isObject(params)) return null
  if (typeof id !== 'string' && !(typeof id === 'number' && Number.isSafeInteger(id))) return null
  if (!hasOnly(params, method === 'tools/call' ? ['name', 'arguments', '_meta'] : ['_meta'])) return null
  const era = eraOf(headers, method, params)
  if (era === null) return null
  if (method === 'tools/call') {
    const { name, arguments: args } = params
    const tool = toolNames.find((known) => known === name)
    if (tool === undefined || !areAdvertised(args, tool)) return null
    if (era === 'modern' && headers['mcp-name'] !== name) return null
    return { id, era, method, tool, args }
  }
  return isStatic(method, era) ? { id, era, method } : null
}

function eraOf(headers: IncomingHttpHeaders, method: string, params: JsonObject): Era | null {
  const meta = params['_meta']
  if (meta !== undefined && !isObject(meta)) return null
  const version = headers['mcp-protocol-version']
  // The SDK decides the era by this key alone.
  if (meta !== undefined && PROTOCOL_VERSION_META_KEY in meta)
    return version === modernVersion && headers['mcp-method'] === method && isEnvelope(meta) ? 'modern' : null
  if (version !== undefined && !(legacyVersions as readonly unknown[]).includes(version)) return null
  return acceptsBoth(headers.accept) && isLegacyMeta(meta) ? 'legacy' : null
}

/** A client that accepts JSON gets it. The SDK rejects an `Accept` that does not name event streams too. */
export function acceptsBoth(accept: string | undefined): boolean {
  return accept === undefined || ['application/json', '*/*', 'application/*'].some((type) => accept.includes(type))
}

function isStatic(method: string, era: Era): method is StaticMethod {
  return method === 'tools/list' || method === (era === 'modern' ? 'server/discover' : 'ping')
}

/** Accepts exactly what the listed input schema allows. */
function areAdvertised(args: unknown, tool: ToolName): args is object {
  if (!isObject(args)) return false
  const { token_id, include_untrusted = true } = args
  if (typeof token_id !== 'string' || !/^[0-9]{1,78}$/.test(token_id) || typeof include_untrusted !== 'boolean')
    return false
  return hasOnly(args, tool === 'verify_asset' ? ['token_id', 'include_untrusted'] : ['token_id'])
}

/** The protocol's own keys have rules; all others may hold anything. */
function isLegacyMeta(meta: JsonObject | undefined): boolean {
  if (meta === undefined) return true
  const { progressToken } = meta
  if (progressToken !== undefined && typeof progressToken !== 'string' && !Number.isSafeInteger(progressToken))
    return false
  return !Object.keys(meta).some((key) => key.startsWith('io.modelcontextprotocol/'))
}

function hasOnly(value: JsonObject, keys: readonly string[]): boolean {
  for (const key in value) if (!keys.includes(key)) return false
  return true
}

const maxMetaLength = 2_048

/** Returns whether the SDK accepts the `_meta` of a modern request, which holds its version and its client (spec §4.3). */
function isEnvelope(meta: JsonObject): boolean {
  if (meta[PROTOCOL_VERSION_META_KEY] !== modernVersion || meta[CLIENT_CAPABILITIES_META_KEY] === undefined)
    return false
  const text = JSON.stringify(meta)
  return text.length <= maxMetaLength && isAccepted(text)
}

/** A client sends the same text with every request. */
const isAccepted = memoize(
  (meta: string) => {
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: JSON.parse(meta) as JsonObject } }
    return classifyInboundRequest({ httpMethod: 'POST', body }).kind === 'modern'
  },
  { max: 1_000 },
)
