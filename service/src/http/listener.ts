/**
 * An HTTP listener that answers broken HTTP with JSON and stops without losing an accepted request. If it cannot start, its error is one
 * sentence.
 */
import { open } from 'node:fs/promises'
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { Server as NetServer, type AddressInfo, type Socket } from 'node:net'
import { devNull } from 'node:os'
import type { Duplex } from 'node:stream'
import { errorCodes } from '../lib/error-codes.ts'
import { getHeader, namesOneHost, requestIdFor, requestIdOf } from './request.ts'
import { openToAll, sendError } from './responses.ts'

export type OnUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

/** An answer to bytes that are no valid request: the status line's end, and the body as JSON. */
export type Rejection = readonly [status: string, body: object]
/** Returns undefined for the general body. */
type OnBroken = (start: string) => Rejection | undefined

export type HttpListener = {
  readonly port: number
  /** Accepts no new connections; the open ones are served as before. */
  readonly stopAccepting: () => void
  /** Stops accepting, lets requests in progress and those already on open connections finish, then ends within `withinMs`. */
  readonly close: (withinMs?: number) => Promise<void>
}

/** While draining, the next response of a connection has `Connection: close`; connections that are idle after this time are closed. */
const quietMs = 1_000
/**
 * A connection is closed when nothing moves on it for so long during a request. Otherwise a client that takes nothing of its answer would
 * keep its memory. Every answer begins earlier, and streams write more often.
 */
const stuckMs = 120_000
/** Connections that wait to be accepted; the default of Node, 511, overflows when a thousand buyers come at once. The system may allow fewer. */
const backlog = 4_096

/** Listens on `host`:`port` (0 chooses a free port). Throws one sentence when the port is taken. */
export async function listen(options: {
  readonly name: string
  readonly host: string
  readonly port: number
  readonly onRequest: RequestListener
  /** Called with what a route has thrown; its request gets 500. Left out: it is thrown. */
  readonly onFault?: (error: unknown, requestId: string) => void
  /** The port belongs to this process alone, where several workers would share it. */
  readonly exclusive?: boolean
  /** Takes over the socket of an upgrade to WebSocket, and closes it. Left out, and for other protocols: the request is answered as usual. */
  readonly onUpgrade?: OnUpgrade
  /** Words the rejection of a request from its first bytes. A request that cannot be parsed has those of its last packet. */
  readonly onBroken?: OnBroken | undefined
  /** For tests. */
  readonly headersTimeoutMs?: number
  /** For tests. */
  readonly requestTimeoutMs?: number
  /** For tests. */
  readonly stuckMs?: number
}): Promise<HttpListener> {
  let draining = false
  const { onFault = rethrow } = options
  const server = createServer({
    maxHeaderSize: 3 * mostHeaderBytes, // what is over the limit is still read, because its answer depends on the path
    requestTimeout: options.requestTimeoutMs ?? 30_000,
    headersTimeout: options.headersTimeoutMs ?? 10_000,
    connectionsCheckingInterval: 1_000, // both timeouts hold within this time
    keepAliveTimeout: 65_000,
    requireHostHeader: false, // checked here, so that the answer is JSON
    shouldUpgradeCallback: ({ headers }) =>
      options.onUpgrade !== undefined && headers.upgrade?.toLowerCase() === 'websocket',
  })
  server.timeout = options.stuckMs ?? stuckMs // destroys the socket
  server.on('clientError', (error: BrokenRequest, socket: Socket) => rejectBroken(error, socket, options.onBroken))
  /** An exception that nothing catches would end the process. */
  function answer(request: IncomingMessage, response: ServerResponse): void {
    try {
      options.onRequest(request, response)
    } catch (error) {
      onFault(error, requestIdOf(response))
      if (response.headersSent) response.destroy()
      else sendError(response, 500, errorCodes.INTERNAL.meaning, openToAll)
    }
  }
  server.on('request', (request, response) => {
    const rejection = rejectionOf(request, options.onBroken)
    if (draining) response.shouldKeepAlive = false
    if (rejection === undefined) return answer(request, response)
    reject(request, response, rejection)
  })
  server.on('checkExpectation', (request, response) => reject(request, response, unmet)) // Expect: 100-continue is met by Node
  const { onUpgrade } = options
  if (onUpgrade !== undefined)
    server.on('upgrade', (request, socket, head) => {
      const rejection = rejectionOf(request, options.onBroken)
      if (rejection !== undefined) return endUpgrade(socket, formatLast(rejection, request))
      try {
        onUpgrade(request, socket, head)
      } catch (error) {
        onFault(error, '')
        socket.destroy()
      }
    })
  await bind(server, options)
  server.on('error', (error) => onFault(error, '')) // a connection that cannot be accepted; without a listener it ends the process
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

/** A lack that lasts is noted once in so many checks. */
const checksOfLack = 60

/**
 * Calls `onLack` with the system's code while this process can open no file. Then the system closes each new connection, and the process
 * gets no event of it.
 */
export function watchFileDescriptors(onLack: (code: string) => void, everyMs = 1_000): NodeJS.Timeout {
  let quietChecks = 0
  const check = async () => {
    if (quietChecks > 0) return void (quietChecks -= 1)
    try {
      await (await open(devNull)).close()
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException
      if (code !== 'EMFILE' && code !== 'ENFILE') return
      quietChecks = checksOfLack - 1
      onLack(code)
    }
  }
  return setInterval(() => void check(), everyMs).unref()
}

function rethrow(error: unknown): never {
  throw error
}

async function bind(
  server: Server,
  { name, host, port, exclusive = false }: { name: string; host: string; port: number; exclusive?: boolean },
): Promise<void> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen({ port, host, exclusive, backlog }, () => resolve(void server.off('error', reject)))
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

function reject(request: IncomingMessage, response: ServerResponse, [status, content]: Rejection): void {
  const body = JSON.stringify(content)
  response.writeHead(Number.parseInt(status, 10), rejectionHeaders(body, request)).end(body)
}

/** Limits the target and the headers of a request together. */
const mostHeaderBytes = 16_384

function rejectionOf(request: IncomingMessage, onBroken: OnBroken | undefined): Rejection | undefined {
  const { method, url = '', rawHeaders } = request
  if (!namesOneHost(request)) return ['400 Bad Request', { error: 'A request names its host once.' }]
  let bytes = url.length
  for (const { length } of rawHeaders) bytes += length
  return bytes <= mostHeaderBytes ? undefined : (onBroken?.(`${method} ${url}`) ?? tooLarge)
}

type BrokenRequest = NodeJS.ErrnoException & { readonly rawPacket?: Buffer }
/** Node's reference to the response that a connection is sending or waiting for. */
type HttpSocket = Socket & { readonly _httpMessage?: ServerResponse | null }

/**
 * Broken HTTP gets the general error body (spec §7), so that every error is JSON. A complete request before it gets its own response, because
 * its work goes on, such as a payment.
 */
function rejectBroken(
  { code = '', rawPacket }: BrokenRequest,
  socket: HttpSocket,
  onBroken: OnBroken | undefined,
): void {
  if (!socket.writable || code === 'ECONNRESET') return void socket.destroy()
  const response = socket._httpMessage
  if (response?.req.complete) {
    if (response.shouldKeepAlive) response.once('finish', () => socket.destroySoon())
    response.shouldKeepAlive = false // set once; the error is repeated with each packet
    return
  }
  if (response?.headersSent) return void socket.destroy()
  const own = rawPacket && onBroken?.(rawPacket.toString('latin1', 0, 300))
  socket.end(formatLast(own ?? rejections[code] ?? notHttp))
}

/** Formats the last answer of a connection. */
function formatLast([status, content]: Rejection, request?: IncomingMessage): string {
  const body = JSON.stringify(content)
  const headers = Object.entries(rejectionHeaders(body, request)).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status}\r\n${headers.join('')}\r\n${body}`
}

/** Answers an upgrade that is refused. Node leaves its socket without a listener of errors, one of which would end the process, and a timeout. */
export function endUpgrade(socket: Duplex, answer: string): void {
  socket.on('error', () => {}).end(answer, () => socket.destroy())
}

/** These answers count for no quota. `request` is undefined where its headers could not be parsed. */
function rejectionHeaders(body: string, request?: IncomingMessage) {
  return {
    'Content-Type': 'application/json',
    'Content-Length': String(Buffer.byteLength(body)),
    'Cache-Control': 'no-store',
    'Access-Control-Allow-Origin': '*',
    'X-Content-Type-Options': 'nosniff',
    'X-Request-Id': requestIdFor(request && getHeader(request, 'x-request-id')),
    Connection: 'close',
  }
}

const notHttp: Rejection = ['400 Bad Request', { error: 'The request is not valid HTTP.' }]
const unmet: Rejection = ['417 Expectation Failed', { error: 'The only expectation that can be met is 100-continue.' }]
const tooLarge: Rejection = [
  '431 Request Header Fields Too Large',
  { error: 'The request line and headers may have at most 16 kB together.' },
]

const rejections: Readonly<Record<string, Rejection>> = {
  HPE_HEADER_OVERFLOW: tooLarge,
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', { error: 'The request did not arrive in time.' }],
}
