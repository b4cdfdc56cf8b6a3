/**
 * Tells which MCP requests are so plain that the SDK's answer to them is known (spec §4.3): anything unusual, and every error of the
 * protocol, is left to the SDK.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { claimsModern, createEnvelopes } from './mcp-envelope.ts'
import { legacyVersions, modernVersion } from './mcp-protocol.ts'
import { toolNames, type ToolName } from './tools.ts'

export type Era = 'modern' | 'legacy'
type StaticMethod = 'tools/list' | 'server/discover' | 'ping'
export type PlainRequest = { readonly id: string | number; readonly era: Era } & (
  | { readonly method: 'tools/call'; readonly tool: ToolName; readonly args: object }
  | { readonly method: StaticMethod }
)

type Members = Readonly<Record<string, unknown>>

/** Reads a parsed body; null is for the SDK. */
export function createRecogniser(): (headers: IncomingHttpHeaders, body: unknown) => PlainRequest | null {
  const isEnvelope = createEnvelopes()

  function eraOf(headers: IncomingHttpHeaders, method: string, params: Members): Era | null {
    const meta = params['_meta']
    if (meta !== undefined && !isObject(meta)) return null
    const version = headers['mcp-protocol-version']
    if (claimsModern(meta))
      return version === modernVersion && headers['mcp-method'] === method && isEnvelope(meta) ? 'modern' : null
    if (version !== undefined && !(legacyVersions as readonly unknown[]).includes(version)) return null
    return acceptsBoth(headers.accept) && isLegacyMeta(meta) ? 'legacy' : null
  }

  return (headers, body) => {
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
}

/** A client that takes JSON at all gets it; the SDK wants it to name event streams too. */
export function acceptsBoth(accept: string | undefined): boolean {
  return accept === undefined || accept.includes('application/json') || accept.includes('*/*')
}

function isStatic(method: string, era: Era): method is StaticMethod {
  return method === 'tools/list' || method === (era === 'modern' ? 'server/discover' : 'ping')
}

/** Exactly what the listed input schema allows; how the tool takes other arguments is the SDK's way to it. */
function areAdvertised(args: unknown, tool: ToolName): args is object {
  if (!isObject(args)) return false
  const { token_id, include_untrusted = true } = args
  if (typeof token_id !== 'string' || !/^[0-9]{1,78}$/.test(token_id) || typeof include_untrusted !== 'boolean')
    return false
  return hasOnly(args, tool === 'verify_asset' ? ['token_id', 'include_untrusted'] : ['token_id'])
}

/** The protocol's own keys have rules; all others may hold anything. */
function isLegacyMeta(meta: Members | undefined): boolean {
  if (meta === undefined) return true
  const { progressToken } = meta
  if (progressToken !== undefined && typeof progressToken !== 'string' && !Number.isSafeInteger(progressToken))
    return false
  return !Object.keys(meta).some((key) => key.startsWith('io.modelcontextprotocol/'))
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function hasOnly(value: Members, keys: readonly string[]): boolean {
  for (const key in value) if (!keys.includes(key)) return false
  return true
}
