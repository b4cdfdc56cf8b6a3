/** Bodies of requests: bounded in bytes and time, without a content coding, in strict UTF-8. */
import type { IncomingMessage } from 'node:http'
import { withDeadline } from '../lib/async/deadline.ts'
import { decodeUtf8 } from '../lib/bytes.ts'

export type BodyLimits = {
  readonly maxBytes: number
  /** The deadline of the whole body. Left out: only the listener's timeout for requests applies. */
  readonly timeoutMs?: number
  /** A body that declares more than `maxBytes` is read and discarded up to here, too. Left out: it is rejected at once. Node requests only. */
  readonly drainBytes?: number
}

/** A body that is too large is discarded up to here before its rejection. Otherwise the client may fail to send it, and lose the response. */
export const mostDrained = 4 * 1024 * 1024
/** A client that sends nothing for so long while its body is discarded gets the response. */
const drainIdleMs = 300

/** `aborted`: the client closed the connection, so that no response can be sent. */
export type BodyFailure = 'too-large' | 'too-slow' | 'encoded' | 'not-utf8' | 'aborted'
export type Body = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly because: BodyFailure }

/**
 * Reads the body of a Node request. An empty body is an empty text. After `too-large` and `too-slow` bytes may be left unread:
 * then the response needs `Connection: close`. Events are used because an async iterator costs several times as much.
 */
export async function readBody(request: IncomingMessage, limits: BodyLimits): Promise<Body> {
  const { headers } = request
  if ((headers['content-encoding'] ?? 'identity') !== 'identity') return failed('encoded')
  if (Number(headers['content-length'] ?? 0) > (limits.drainBytes ?? limits.maxBytes)) return failed('too-large')
  return decoded(await requestBytes(request, limits))
}

/** Reads the body of a web `Request` with the same rules. A body that is rejected is cancelled. */
export async function readWebBody({ headers, body }: Request, limits: BodyLimits): Promise<Body> {
  if ((headers.get('content-encoding') ?? 'identity') !== 'identity') return failed('encoded')
  if (Number(headers.get('content-length') ?? 0) > limits.maxBytes) return failed('too-large')
  if (body === null) return { ok: true, text: '' }
  const reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader()
  try {
    const bytes = streamBytes(reader, limits.maxBytes)
    return decoded(await withDeadline(bytes, limits.timeoutMs ?? Infinity, { onTimeout: () => 'too-slow' as const }))
  } catch {
    return failed('aborted')
  } finally {
    void reader.cancel().catch(() => {})
  }
}

function requestBytes(request: IncomingMessage, limits: BodyLimits): Promise<Buffer | BodyFailure> {
  const { maxBytes, timeoutMs, drainBytes = mostDrained } = limits
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    const fail = () => settle(size > maxBytes ? 'too-large' : 'too-slow')
    const deadline = timeoutMs === undefined ? undefined : setTimeout(fail, timeoutMs)
    let idle: NodeJS.Timeout | undefined

    function settle(result: Buffer | BodyFailure): void {
      clearTimeout(deadline)
      clearTimeout(idle)
      request.off('data', take).off('end', end).off('close', abort).off('error', abort)
      if (!request.complete) request.pause()
      resolve(result)
    }
    function take(chunk: Buffer): void {
      size += chunk.length
      if (size <= maxBytes) return void chunks.push(chunk)
      if (size > drainBytes) return settle('too-large')
      chunks.length = 0
      clearTimeout(idle)
      idle = setTimeout(fail, drainIdleMs)
    }
    const end = () => settle(size > maxBytes ? 'too-large' : Buffer.concat(chunks, size))
    const abort = () => settle('aborted')
    request.on('data', take).on('end', end).on('close', abort).on('error', abort)
    if (request.destroyed && !request.readableEnded) abort() // closed before: its events are over
  })
}

async function streamBytes(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  maxBytes: number,
): Promise<Buffer | BodyFailure> {
  const chunks: Uint8Array[] = []
  let size = 0
  for (;;) {
    const isTooLarge = size > maxBytes
    const next = reader.read()
    const read = isTooLarge ? await withDeadline(next, drainIdleMs, { onTimeout: () => null }) : await next
    if (read === null) return 'too-large'
    if (read.done) return isTooLarge ? 'too-large' : Buffer.concat(chunks, size)
    size += read.value.length
    if (size > mostDrained) return 'too-large'
    if (size > maxBytes) chunks.length = 0
    else chunks.push(read.value)
  }
}

function decoded(bytes: Buffer | BodyFailure): Body {
  if (typeof bytes === 'string') return failed(bytes)
  const text = decodeUtf8(bytes)
  return text === null ? failed('not-utf8') : { ok: true, text }
}

function failed(because: BodyFailure): Body {
  return { ok: false, because }
}
