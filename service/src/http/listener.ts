/** An HTTP listener that explains in one sentence why it cannot start, answers broken HTTP with JSON, and stops without losing an accepted request. */
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { Server as NetServer, type AddressInfo, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { namesOneHost, requestIdFor, requestIdOf } from './request.ts'
import { sendError } from './responses.ts'

export type OnUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

/** An answer to bytes that are no valid request: the status line's end, and the body as JSON. */
export type Rejection = readonly [status: string, body: object]

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
  /** Words the answer to a request that the parser rejects, from the first bytes of its last packet. Left out or undefined: the general body. */
  readonly onBroken?: ((start: string) => Rejection | undefined) | undefined
  /** For tests. */
  readonly headersTimeoutMs?: number
}): Promise<Listener> {
  let draining = false
  const server = createServer({
    maxHeaderSize: 16_384,
    requestTimeout: 30_000,
    headersTimeout: options.headersTimeoutMs ?? 10_000,
    connectionsCheckingInterval: 1_000, // both timeouts hold within this time
    keepAliveTimeout: 65_000,
    requireHostHeader: false, // checked here, so that the answer is JSON
  })
  server.on('clientError', (error: BrokenRequest, socket: Socket) => rejectBroken(error, socket, options.onBroken))
  server.on('request', (request, response) => {
    const isRight = namesOneHost(request)
    if (draining || !isRight) response.shouldKeepAlive = false
    if (isRight) return options.onRequest(request, response)
    sendError(response, 400, oneHost, { 'Access-Control-Allow-Origin': '*', 'X-Request-Id': requestIdOf(response) })
  })
  const { onUpgrade } = options
  if (onUpgrade !== undefined)
    server.on('upgrade', (request, socket, head) => {
      if (namesOneHost(request)) onUpgrade(request, socket, head)
      else end(socket, '400 Bad Request', { error: oneHost })
    })
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

type BrokenRequest = NodeJS.ErrnoException & { readonly rawPacket?: Buffer }

/** Broken HTTP gets the general error body (spec §7), so that every error is JSON. */
function rejectBroken(
  { code = '', rawPacket }: BrokenRequest,
  socket: Socket,
  onBroken: ((start: string) => Rejection | undefined) | undefined,
): void {
  if (!socket.writable || code === 'ECONNRESET') return void socket.destroy()
  const own = rawPacket && onBroken?.(rawPacket.toString('latin1', 0, 300))
  end(socket, ...(own ?? rejections[code] ?? notHttp))
}

/** Sends the last answer of a connection. */
function end(socket: Duplex, status: string, content: object): void {
  const body = JSON.stringify(content)
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` +
      `Cache-Control: no-store\r\nAccess-Control-Allow-Origin: *\r\nX-Request-Id: ${requestIdFor(undefined)}\r\n` +
      `X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n${body}`,
  )
}

const notHttp: Rejection = ['400 Bad Request', { error: 'The request is not valid HTTP.' }]
const oneHost = 'A request names its host once.'

const rejections: Readonly<Record<string, Rejection>> = {
  HPE_HEADER_OVERFLOW: [
    '431 Request Header Fields Too Large',
    { error: 'The request line and headers may have at most 16 kB together.' },
  ],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', { error: 'The request did not arrive in time.' }],
}
