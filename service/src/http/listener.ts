/** An HTTP listener that explains in one sentence why it cannot start, answers broken HTTP with JSON, and stops without losing an accepted request. */
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { Server as NetServer, type AddressInfo, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { requestIdFor } from './request.ts'

export type OnUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

export type Listener = {
  readonly port: number
  /** Accepts no new connections; the open ones are served as before. */
  readonly stopAccepting: () => void
  /** Stops accepting, lets requests in progress and those already on open connections finish, then ends within `withinMs`. */
  readonly close: (withinMs?: number) => Promise<void>
}

/** While draining, the next response of a connection has `Connection: close`; connections that are idle after this time are closed. */
const quietMs = 1_000

/** Listens on `host`:`port` (0 chooses a free port). Throws one sentence when the port is taken. */
export async function listen(options: {
  readonly name: string
  readonly host: string
  readonly port: number
  readonly onRequest: RequestListener
  /** The port belongs to this process alone, where several workers would share it. */
  readonly exclusive?: boolean
  /** Takes over the socket of an upgrade, and closes it. Left out: an upgrade is answered like any request. */
  readonly onUpgrade?: OnUpgrade
}): Promise<Listener> {
  let draining = false
  const server = createServer({
    maxHeaderSize: 16_384,
    requestTimeout: 30_000,
    headersTimeout: 10_000,
    keepAliveTimeout: 65_000,
  })
  server.on('clientError', rejectBroken)
  server.on('request', (request, response) => {
    if (draining) response.shouldKeepAlive = false
    options.onRequest(request, response)
  })
  if (options.onUpgrade !== undefined) server.on('upgrade', options.onUpgrade)
  await bind(server, options)
  const port = (server.address() as AddressInfo).port
  let closing: Promise<void> | undefined
  // server.close() would also cut idle connections, on which a client may be sending its next request at this moment.
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
      const timer = setInterval(() => {
        const elapsed = performance.now() - began
        if (elapsed > withinMs) server.closeAllConnections()
        else if (elapsed > quiet) server.closeIdleConnections()
      }, 20)
      await closed
      clearInterval(timer)
    },
  }
}

async function bind(
  server: Server,
  { name, host, port, exclusive = false }: { name: string; host: string; port: number; exclusive?: boolean },
): Promise<void> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen({ port, host, exclusive }, resolve)
    })
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    const because =
      code === 'EADDRINUSE'
        ? `Port ${port} for the ${name} is in use. Stop the program that listens there, or choose another port.`
        : code === 'EACCES'
          ? `Port ${port} for the ${name} may not be used by this user. Choose a port above 1023.`
          : `The ${name} cannot listen on ${host}:${port} (${code ?? 'unknown reason'}).`
    throw new Error(because, { cause })
  }
}

/** Broken HTTP gets the general error body (spec §7), so that every error is JSON. */
function rejectBroken(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy()
  const [status, reason] = rejections[error.code ?? ''] ?? ['400 Bad Request', 'The request is not valid HTTP.']
  const body = JSON.stringify({ error: reason })
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` +
      `Cache-Control: no-store\r\nAccess-Control-Allow-Origin: *\r\nX-Request-Id: ${requestIdFor(undefined)}\r\n` +
      `X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n${body}`,
  )
}

const rejections: Readonly<Record<string, readonly [string, string]>> = {
  HPE_HEADER_OVERFLOW: [
    '431 Request Header Fields Too Large',
    'The request line and headers may have at most 16 kB together.',
  ],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'The request did not arrive in time.'],
}
