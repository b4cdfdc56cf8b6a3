/** The text of a request's body, at most 16 KiB of it. JSON is read under any content type: some clients lose theirs when they retry. */
import type { IncomingMessage } from 'node:http'

const mostBytes = 16 * 1024
/** So much more is read and thrown away, so that the client gets to see the refusal instead of a broken connection. */
const drainedBytes = 4 * 1024 * 1024

/** null: the body is too large; undefined: the client broke off. By events: an async iterator costs several times as much. */
export function readBody(request: IncomingMessage): Promise<string | null | undefined> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= mostBytes) chunks.push(chunk)
      else if (size > drainedBytes) {
        resolve(null)
        request.destroy()
      }
    })
    request.on('end', () => resolve(size > mostBytes ? null : Buffer.concat(chunks, size).toString('utf8')))
    request.on('error', () => resolve(undefined))
    request.on('close', () => resolve(undefined)) // after the end nothing changes any more
  })
}
