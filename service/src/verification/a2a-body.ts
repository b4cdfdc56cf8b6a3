/** The body of an A2A request: at most 64 KiB of JSON in UTF-8, in time. */
import type { Context } from 'hono'
import type { Fault } from '../agents/a2a-errors.ts'
import type { Env } from './edge.ts'

const maxBodyBytes = 65_536
const timeoutMs = 10_000
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** `optional`: no body is a body, undefined. */
export async function readJsonBody(
  c: Context<Env>,
  { optional = false }: { readonly optional?: boolean } = {},
): Promise<{ readonly value: unknown } | Fault> {
  const type = (c.req.header('content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  if (Number(c.req.header('content-length') ?? 0) > maxBodyBytes) return tooLarge
  const bytes = await bytesOf(c.req.raw)
  if (!(bytes instanceof Uint8Array)) return bytes
  if (optional && bytes.length === 0) return { value: undefined }
  if (type !== '' && type !== 'application/json' && type !== 'application/a2a+json')
    return { fault: 'CONTENT_TYPE_NOT_SUPPORTED', message: 'Send the body as application/json.' }
  try {
    return { value: JSON.parse(utf8.decode(bytes)) as unknown }
  } catch {
    return { fault: 'PARSE_ERROR', message: 'The body is not JSON.' }
  }
}

const tooLarge: Fault = { fault: 'BODY_TOO_LARGE', message: `The body must not exceed ${maxBodyBytes} bytes.` }

async function bytesOf({ body }: Request): Promise<Uint8Array | Fault> {
  if (body === null) return new Uint8Array()
  const reader = body.getReader()
  const chunks: Uint8Array[] = []
  let size = 0
  const late = { fault: 'BODY_TOO_SLOW', message: 'The body took too long to arrive.' } as const
  let timer: NodeJS.Timeout | undefined
  const deadline = new Promise<'late'>((resolve) => (timer = setTimeout(resolve, timeoutMs, 'late')))
  try {
    for (;;) {
      const read = await Promise.race([reader.read(), deadline])
      if (read === 'late') return late
      if (read.done) return Buffer.concat(chunks, size)
      size += read.value.length
      if (size > maxBodyBytes) return tooLarge
      chunks.push(read.value)
    }
  } finally {
    clearTimeout(timer)
    void reader.cancel().catch(() => {})
  }
}
