/** Header fields of requests. */
import type { IncomingMessage } from 'node:http'

/**
 * Returns a header by its lower-case name; fields that were sent twice are joined by a comma, as `request.headers` joins them.
 * Node builds `request.headers` on its first use, so that it is read only when the raw fields hold the name.
 */
export function getHeader(request: Pick<IncomingMessage, 'headers' | 'rawHeaders'>, name: string): string | undefined {
  const { rawHeaders } = request
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const field = rawHeaders[index] ?? ''
    if (field.length !== name.length || field.toLowerCase() !== name) continue
    const value = request.headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  }
  return undefined
}
