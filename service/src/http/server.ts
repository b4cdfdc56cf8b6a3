/**
 * A listener that starts with one sentence when it cannot, answers broken HTTP with JSON, and stops without losing an accepted request.
 */
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { Server as NetServer, type AddressInfo, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { requestIdFor } from './request-id.ts'

export type OnUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

export type Listener = {
  readonly port: number
  /** Takes no new connection from now on; the open ones are served as before. */
  readonly stopAccepting: () => void
  /** Stops accepting, lets requests under way and those already on open connections finish, then ends within `withinMs`. */
  readonly close: (withinMs?: number) => Promise<void>
}

/** While draining, a busy connection is told by `Connection: close` on its next answer; what is idle after this time is closed. */
const quietMs = 1_000

/** Listens on `host`:`port` (0 chooses a free port). It throws one sentence when the port is taken. */
export async function listen(options: {
  readonly name: string
  readonly host: string
  readonly port: number
  readonly onRequest: RequestListener
  /** Of this process alone, where several workers would share the port. */
  readonly exclusive?: boolean
  /** For WebSockets; without it an upgrade is answered like any request. Whoever takes a socket over also ends it. */
  readonly onUpgrade?: OnUpgrade
}): Promise<Listener> {
  let draining = false
  const server = createServer({
    maxHeaderSize: 16_384,
    requestTimeout: 30_000,
    headersTimeout: 10_000,
    keepAliveTimeout: 65_000,
  })
  server.on('clientError', refuseBroken)
  server.on('request', (request, response) => {
    if (draining) response.shouldKeepAlive = false
    options.onRequest(request, response)
  })
  if (options.onUpgrade !== undefined) server.on('upgrade', options.onUpgrade)
  await bound(server, options)
  const port = (server.address() as AddressInfo).port
  let closing: Promise<void> | undefined
  // Not server.close(): that also cuts idle connections, on which a client may be sending its next request at this moment.
  const stopAccepting = () =>
    (closing ??= new Promise((resolve) => NetServer.prototype.close.call(server, () => resolve())))
  return {
    port,
    stopAccepting: () => void stopAccepting(),
    close: async (withinMs = 4_000) => {
      draining = true
      const closed = stopAccepting()
      const quiet = Math.min(quietMs, withinMs / 2)
      const began = performance.now()
      const sweep = setInterval(() => {
        const elapsed = performance.now() - began
        if (elapsed > withinMs) server.closeAllConnections()
        else if (elapsed > quiet) server.closeIdleConnections()
      }, 20)
      await closed
      clearInterval(sweep)
    },
  }
}

async function bound(
  server: Server,
  { name, host, port, exclusive = false }: { name: string; host: string; port: number; exclusive?: boolean },
): Promise<void> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen({ port, host, exclusive }, resolve)
    })
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code === 'EADDRINUSE')
      throw new Error(`Port ${port} for the ${name} is in use. End what listens there, or choose another port.`, {
        cause: error,
      })
    if (code === 'EACCES')
      throw new Error(`Port ${port} for the ${name} may not be used by this user. Choose a port above 1023.`, {
        cause: error,
      })
    throw new Error(`The ${name} cannot listen on ${host}:${port} (${code ?? 'unknown reason'}).`, { cause: error })
  }
}

/** What is not even HTTP gets the general error body (spec §7), so that every refusal is JSON. */
function refuseBroken(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy()
  const [status, reason] = refusals[error.code ?? ''] ?? ['400 Bad Request', 'The request is not valid HTTP.']
  const body = JSON.stringify({ error: reason })
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` +
      `Cache-Control: no-store\r\nAccess-Control-Allow-Origin: *\r\nX-Request-Id: ${requestIdFor(undefined)}\r\n` +
      `X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n${body}`,
  )
}

const refusals: Readonly<Record<string, readonly [string, string]>> = {
  HPE_HEADER_OVERFLOW: [
    '431 Request Header Fields Too Large',
    'The request line and headers may have at most 16 kB together.',
  ],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'The request did not arrive in time.'],
}
