/** The body of an MCP request: at most 64 KiB of JSON. How long it may take to arrive is the listener's rule for all bodies (http/server.ts). */
import type { IncomingMessage } from 'node:http'

const maxBodyBytes = 65_536

export type JsonBody =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly because: 'large' | 'not JSON' | 'gone' }

/** `done` is called exactly once. What was refused may have left bytes unread, so that the connection is to be closed. */
export function readJson(request: IncomingMessage, done: (body: JsonBody) => void): void {
  if (Number(request.headers['content-length'] ?? 0) > maxBodyBytes) return done({ ok: false, because: 'large' })
  const chunks: Buffer[] = []
  let length = 0
  let settled = false

  function settle(body: JsonBody): void {
    if (settled) return
    settled = true
    done(body)
  }
  function take(chunk: Buffer): void {
    length += chunk.length
    if (length <= maxBodyBytes) return void chunks.push(chunk)
    request.pause()
    settle({ ok: false, because: 'large' })
  }
  const end = () => settle(parse(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
  const gone = () => settle({ ok: false, because: 'gone' })
  request.on('data', take).on('end', end).on('close', gone).on('error', gone)
}

function parse(bytes: Buffer): JsonBody {
  try {
    return { ok: true, value: JSON.parse(bytes.toString()) as unknown }
  } catch {
    return { ok: false, because: 'not JSON' }
  }
}
