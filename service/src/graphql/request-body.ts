/** The body of a request: at most 64 kB, in time, in UTF-8. */
import type { IncomingMessage } from 'node:http'

const maxBodyBytes = 65_536

export type Body =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly because: 'large' | 'slow' | 'encoded' | 'not UTF-8' | 'gone' }

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Reads a body; what was refused may have left bytes unread, so that the connection is to be closed. */
export async function readBody(request: IncomingMessage, timeoutMs: number): Promise<Body> {
  if ((request.headers['content-encoding'] ?? 'identity') !== 'identity') return { ok: false, because: 'encoded' }
  if (Number(request.headers['content-length'] ?? 0) > maxBodyBytes) return { ok: false, because: 'large' }
  const bytes = await bytesOf(request, timeoutMs)
  if (typeof bytes === 'string') return { ok: false, because: bytes }
  try {
    return { ok: true, text: utf8.decode(bytes) }
  } catch {
    return { ok: false, because: 'not UTF-8' }
  }
}

function bytesOf(request: IncomingMessage, timeoutMs: number): Promise<Buffer | 'large' | 'slow' | 'gone'> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let length = 0
    const timer = setTimeout(() => settle('slow'), timeoutMs)

    function settle(result: Buffer | 'large' | 'slow' | 'gone'): void {
      clearTimeout(timer)
      request.off('data', take).off('end', end).off('close', gone).off('error', gone)
      if (typeof result === 'string') request.on('error', () => {}).pause()
      resolve(result)
    }
    function take(chunk: Buffer): void {
      length += chunk.length
      if (length > maxBodyBytes) settle('large')
      else chunks.push(chunk)
    }
    const end = () => settle(Buffer.concat(chunks, length))
    const gone = () => settle('gone')
    request.on('data', take).on('end', end).on('close', gone).on('error', gone)
  })
}
