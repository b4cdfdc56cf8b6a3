/**
 * The WebSocket of GraphQL (spec §5, §6): graphql-ws at /graphql. The key comes as the connection parameter `authorization` or as the
 * header: none closes with 4401, a wrong or revoked one with 4403. Operations pass the same checks and consume the same quota as over HTTP.
 */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { GraphQLError } from 'graphql'
import { CloseCode, handleProtocols, makeServer, type ServerOptions } from 'graphql-ws'
import { WebSocket, WebSocketServer, type RawData } from 'ws'
import type { ClientAddress, ClientKey } from '../../http/client-ip.ts'
import { getHeader, newRequestId, parseRequestTarget } from '../../http/request.ts'
import { endUpgrade, type OnUpgrade } from '../../http/listener.ts'
import type { RateLimiter } from '../../http/rate-limit/limiter.ts'
import { reasonOf } from '../../lib/errors.ts'
import { parseJsonObject } from '../../lib/json.ts'
import type { Log } from '../../lib/log.ts'
import type { ApiKey, AuthenticateKey } from '../../access/api-keys.ts'
import { graphqlError } from '../errors.ts'
import type { OperationSteps } from '../server/operation.ts'
import { connectionGroups, type Connection, type Connections } from './connections.ts'
import { createResultMaker, type Results } from './results.ts'

export type SocketServerOptions = OperationSteps & {
  /** Those of all servers of the host. */
  readonly connections: Connections
  /** By API key. Left out: no limit. */
  readonly limiter?: RateLimiter | undefined
  /** Subscriptions and pending requests of one connection. */
  readonly maxOperations?: number
  readonly authenticate: AuthenticateKey
  readonly clientKey: ClientKey
  readonly clientAddress: ClientAddress
  readonly log: Log
  /** Connections of one client that have sent no key yet. */
  readonly maxUnauthenticated?: number
  readonly keepAliveMs?: number
}

/** Limits the frames of a message, and the reads of a frame. Each takes more than a hundred bytes of memory, however short it is. */
const mostPieces = 1_000

/** Returns the listener of upgrades. `connections` closes the sockets. */
export function createSocketServer(options: SocketServerOptions): OnUpgrade {
  const {
    connections,
    authenticate,
    clientKey,
    clientAddress,
    log,
    keepAliveMs = 7_000,
    maxUnauthenticated = 100,
  } = options
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: 65_536,
    maxFragments: mostPieces,
    maxBufferedChunks: mostPieces,
    clientTracking: false,
    autoPong: false,
    handleProtocols,
  })
  const unauthenticated = connectionGroups()
  const tooMany: CloseFrame = [tryAgainLater, `An API key may have ${connections.maxPerKey} connections`]
  const rejectionCodes = { ...closeCodes, 'too-many': tooMany }

  function accept(socket: WebSocket, request: IncomingMessage, client: string): void {
    const address = clientAddress(request.socket.remoteAddress, getHeader(request, 'x-forwarded-for'))

    async function admit(parameter: string | undefined): Promise<ApiKey | null> {
      const authenticated = await authenticate(parameter ?? request.headers.authorization, client, address)
      const rejection = authenticated.ok ? connections.claim(connection, authenticated.key.id) : authenticated.because
      if (rejection !== null) attached.close(...rejectionCodes[rejection])
      if (!authenticated.ok || rejection !== null) return null
      unauthenticated.delete(client, connection)
      return authenticated.key
    }

    function onClose(): void {
      connections.remove(connection)
      unauthenticated.delete(client, connection)
    }

    const operations = connectionOperations(options, admit)
    const attached = attachSocket(socket, operations, { keepAliveMs, log, onClose })
    const connection: Connection = { close: (because) => attached.close(...closeCodes[because]) }
    connections.add(connection)
    unauthenticated.add(client, connection)
  }

  return (request, socket, head) => {
    const client = clientKey(request.socket.remoteAddress, getHeader(request, 'x-forwarded-for'))
    if (parseRequestTarget(request.url ?? '').path !== '/graphql') return reject(socket, '404 Not Found')
    if (!connections.hasRoom()) return reject(socket, '503 Service Unavailable')
    if (unauthenticated.of(client).size >= maxUnauthenticated) return reject(socket, '429 Too Many Requests', tryAgain)
    server.handleUpgrade(request, socket, head, (webSocket) => accept(webSocket, request, client))
  }
}

type CloseFrame = readonly [code: number, reason: string]

/** «Try again later» (RFC 6455, IANA registry). Stock clients reconnect after it. They do not after 4429, «Too many initialisation requests». */
const tryAgainLater = 1013

/** Stock clients reconnect after each of these codes but 4401. */
const closeCodes: Readonly<Record<'missing' | 'wrong' | 'elsewhere' | 'busy' | 'stopping', CloseFrame>> = {
  missing: [4401, 'Unauthorized'],
  wrong: [4403, 'Forbidden'],
  elsewhere: [4403, 'Forbidden'],
  busy: [tryAgainLater, 'Too many unknown keys'],
  stopping: [1001, 'Going away'],
}

/** Connections without a key send one or end within seconds. */
const tryAgain = 'Retry-After: 5\r\n'

function reject(socket: Duplex, status: string, headers = ''): void {
  endUpgrade(socket, `HTTP/1.1 ${status}\r\n${headers}Connection: close\r\nContent-Length: 0\r\n\r\n`)
}

/** Bytes that may be queued for a client before it is dropped. One message may be larger. */
const maxQueuedBytes = 1_000_000
/** A close frame holds no more (RFC 6455 §5.5). graphql-ws repeats the id of an operation. */
const mostReasonBytes = 123
/** Time in which a client has to answer a close frame, in ms. */
const closeWithinMs = 1_000

/** `onClose` is called once. A client that answers no ping, or reads nothing, is dropped after two times `keepAliveMs`. */
function attachSocket(
  socket: WebSocket,
  operations: ServerOptions,
  { keepAliveMs, onClose, log }: Readonly<{ keepAliveMs: number; onClose: () => void; log: Log }>,
) {
  const isOpen = () => socket.readyState === WebSocket.OPEN
  const isStuck = () => socket.bufferedAmount > maxQueuedBytes

  function drop(reason: string): void {
    log.info('socket dropped', { reason })
    socket.terminate()
  }

  let unsent = 0
  let hasSent = true
  async function send(data: string): Promise<void> {
    if (!isOpen()) return
    if (isStuck()) return drop('it does not read')
    unsent += 1
    await new Promise((resolve) => socket.send(data, resolve))
    unsent -= 1
    hasSent = true
  }

  /** Sends a close frame, and ends the connection a second later at the latest. */
  function close(code: number, reason: string): void {
    if (!isOpen()) return
    socket.close(code, Buffer.byteLength(reason) > mostReasonBytes ? reason.slice(0, mostReasonBytes / 3) : reason)
    const timer = setTimeout(() => socket.terminate(), closeWithinMs)
    socket.once('close', () => clearTimeout(timer))
    endSubscriptions(code, reason)
  }

  let isEnded = false
  function endSubscriptions(code: number, reason: string): void {
    if (isEnded) return
    isEnded = true
    // A microtask later, because graphql-ws may close while `opened` has not returned yet.
    queueMicrotask(() => {
      closed(code, reason).catch((error: unknown) => log.error('socket not ended', { reason: reasonOf(error) }))
    })
  }

  /** Operations that have not ended, by their ids. `next` is the message of one under the same id, which waits for the end. */
  const begun = new Map<unknown, { isCompleted: boolean; next?: string | undefined }>()
  /**
   * Hands a message to graphql-ws, which forgets an id with `complete`. The end of that operation would end one that has begun meanwhile under
   * its id.
   */
  async function deliver(text: string, take: (text: string) => Promise<void>): Promise<void> {
    if (!isOpen()) return
    const { type, id } = parseJsonObject(text) ?? {}
    const before = begun.get(id)
    if (type === 'complete' && before !== undefined) {
      before.isCompleted = true
      before.next = undefined
    }
    if (type !== 'subscribe') return take(text)
    if (before !== undefined) {
      if (!before.isCompleted || before.next !== undefined)
        return close(CloseCode.SubscriberAlreadyExists, `Subscriber for ${String(id)} already exists`)
      before.next = text
      return
    }
    const own: { isCompleted: boolean; next?: string | undefined } = { isCompleted: false }
    begun.set(id, own)
    await take(text).finally(() => begun.delete(id))
    if (own.next !== undefined) await deliver(own.next, take)
  }

  const onMessage = (take: (text: string) => Promise<void>) => {
    socket.on('message', (data: RawData) => {
      deliver((data as Buffer).toString(), take).catch((error: unknown) => {
        log.error('socket failed', { reason: reasonOf(error) })
        close(tryAgainLater, 'Try again later')
      })
    })
  }
  const closed = makeServer(operations).opened({ protocol: socket.protocol, send, close, onMessage }, undefined)

  let isAnswered = true
  const pings = setInterval(() => {
    if (!isAnswered) return drop('no answer')
    if (unsent > 0 && !hasSent) return drop('it does not read')
    isAnswered = false
    hasSent = unsent === 0
    socket.ping()
  }, keepAliveMs)
  socket.on('pong', () => (isAnswered = true))
  socket.on('ping', (data) => (isStuck() ? drop('it does not read') : socket.pong(data)))
  socket.on('error', () => {}) // for example a message that is too large, for which ws closes with the right code
  socket.once('close', (code, reason) => {
    clearInterval(pings)
    endSubscriptions(code, String(reason))
    onClose()
  })
  return { close }
}

/** Creates the options of graphql-ws for one connection. `admit` returns its key, or null after it has closed the connection. */
function connectionOperations(
  options: SocketServerOptions,
  admit: (authorization: string | undefined) => Promise<ApiKey | null>,
): ServerOptions {
  const { prepare, createContext, formatError, limiter, maxOperations = 50 } = options
  let key: ApiKey | null = null
  /** The operations that have not ended, by their messages, with the streams of subscriptions. */
  const running = new Map<object, Results | null>()
  // graphql-ws acknowledges a connection, and so reads operations, only after `admit` has returned a key.
  const newContext = (operation?: Parameters<typeof createContext>[2]) =>
    createContext(key as ApiKey, newRequestId(), operation)
  const results = createResultMaker(options, newContext)

  async function quotaError(): Promise<GraphQLError | null> {
    const quota = await limiter?.take(key?.id ?? '')
    return quota?.allowed === false
      ? graphqlError('RATE_LIMITED', `Too many requests. Send the next one in ${quota.resetSeconds} s.`)
      : null
  }

  return {
    async onConnect({ connectionParams }) {
      const given = connectionParams?.['authorization'] ?? connectionParams?.['Authorization']
      key = await admit(typeof given === 'string' ? given : undefined)
      return key !== null
    },
    async onSubscribe(_connection, _id, parameters) {
      if (running.size >= maxOperations)
        return [
          graphqlError(
            'RATE_LIMITED',
            `A connection may have ${maxOperations} operations at a time. Complete one first.`,
          ),
        ]
      running.set(parameters, null) // before the quota is read, which may take a moment
      const overQuota = await quotaError()
      const prepared = overQuota === null ? prepare(parameters) : ({ ok: false, errors: [overQuota] } as const)
      if (prepared.ok) return { ...prepared.args, contextValue: newContext(prepared) }
      running.delete(parameters)
      return prepared.errors
    },
    execute: results.execute,
    subscribe: results.subscribe,
    onOperation: (_connection, _id, parameters, _args, result) => {
      if ('next' in result) running.set(parameters, result as Results)
    },
    // graphql-ws misses a stream that began after its id was completed.
    onClose: async () => {
      for (const stream of running.values()) await stream?.return(undefined)
    },
    onComplete: (_connection, _id, parameters) => void running.delete(parameters), // called once per accepted operation, whichever side ends it
    onError: (_connection, _id, _payload, errors) => {
      const requestId = newRequestId()
      return errors.map((error) => formatError(error, requestId).toJSON())
    },
  }
}
