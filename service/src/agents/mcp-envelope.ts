/**
 * The `_meta` object in which a request of the modern era carries its version and its client (spec §4.3). Each client sends the same one
 * again and again, so what the SDK once found valid is remembered by its text.
 */
import {
  classifyInboundRequest,
  CLIENT_CAPABILITIES_META_KEY,
  PROTOCOL_VERSION_META_KEY,
} from '@modelcontextprotocol/server'
import { modernVersion } from './mcp-protocol.ts'

type Meta = Readonly<Record<string, unknown>>

const longestKept = 2_048
const mostKept = 1_000

/** Whether the request's `_meta` claims the modern era at all; the SDK looks at this key only. */
export function claimsModern(meta: Meta | undefined): meta is Meta {
  return meta !== undefined && PROTOCOL_VERSION_META_KEY in meta
}

/** Tells whether the SDK would find a `_meta` valid, and of the modern revision. */
export function createEnvelopes(): (meta: Meta) => boolean {
  const valid = new Set<string>()
  return (meta) => {
    if (meta[PROTOCOL_VERSION_META_KEY] !== modernVersion || meta[CLIENT_CAPABILITIES_META_KEY] === undefined)
      return false
    const text = JSON.stringify(meta)
    if (valid.has(text)) return true
    if (text.length > longestKept || !isValid(meta)) return false
    if (valid.size >= mostKept) valid.clear()
    valid.add(text)
    return true
  }
}

function isValid(meta: Meta): boolean {
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: meta } }
  return classifyInboundRequest({ httpMethod: 'POST', body }).kind === 'modern'
}
