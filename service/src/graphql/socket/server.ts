/**
 * The WebSocket of GraphQL (spec §5, §6): graphql-ws at /graphql. The key comes as the connection parameter `authorization` or as the
 * header: none closes with 4401, a wrong or revoked one with 4403. Operations pass the same checks and consume the same quota as over HTTP.
 */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { createSourceEventStream, type ExecutionArgs, type ExecutionResult, type GraphQLError } from 'graphql'
import { handleProtocols, makeServer, type ServerOptions } from 'graphql-ws'
import { WebSocket, WebSocketServer, type RawData } from 'ws'
import type { ClientKey } from '../../http/client-ip.ts'
import { getHeader, parseRequestTarget } from '../../http/request.ts'
import type { OnUpgrade } from '../../http/listener.ts'
import type { RateLimiter } from '../../http/rate-limit/limiter.ts'
import { reasonOf } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'
import type { ApiKey, ApiKeyStore, Authenticate } from '../api-keys.ts'
import type { GraphqlContext } from '../context.ts'
import { graphqlError } from '../errors.ts'
import { executeWithin, newRequestId, type OperationSteps } from '../server/operation.ts'
import type { SubscriptionEvent } from '../subscriptions/subscriptions.ts'

export type SocketServerOptions = OperationSteps & {
  /** By API key. Left out: no limit. */
  readonly limiter?: RateLimiter | undefined
  /** Subscriptions and pending requests of one connection. */
  readonly maxOperations?: number
  readonly authenticate: Authenticate
  readonly keys: Pick<ApiKeyStore, 'active'>
  readonly clientKey: ClientKey
  readonly log: Log
  readonly maxConnections?: number
  readonly maxConnectionsPerKey?: number
  /** Connections of one client that have sent no key yet. */
  readonly maxUnauthenticated?: number
  readonly keepAliveMs?: number
  /** Interval of checks for revoked keys, in ms. */
  readonly checkKeysMs?: number
}

export type SocketServer = {
  readonly upgrade: OnUpgrade
  /** Returns the number of open connections. */
  readonly count: () => number
  /** Closes all connections (1001). Resolves when they have ended, after a second at the latest. */
  readonly close: () => Promise<void>
}

export function createSocketServer(options: SocketServerOptions): SocketServer {
  const { maxConnections = 10_000, maxConnectionsPerKey = 100, maxUnauthenticated = 100 } = options
  const { authenticate, keys, clientKey, log, keepAliveMs = 7_000, checkKeysMs = 1_000 } = options
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: 65_536,
    clientTracking: false,
    autoPong: false,
    handleProtocols,
  })
  const connections = new Set<Connection>()
  const byKey = connectionGroups()
  const unauthenticated = connectionGroups()
  let onEmpty: (() => void) | undefined

  function accept(socket: WebSocket, request: IncomingMessage, client: string): void {
    let keyId: string | undefined

    async function admit(parameter: string | undefined): Promise<ApiKey | null> {
      const authenticated = await authenticate(parameter ?? request.headers.authorization, client)
      const closeCode = authenticated.ok ? rejectionOf(authenticated.key) : closeCodes[authenticated.because]
      if (closeCode !== null) connection.close(...closeCode)
      if (!authenticated.ok || closeCode !== null) return null
      keyId = authenticated.key.id
      byKey.add(keyId, connection)
      unauthenticated.delete(client, connection)
      return authenticated.key
    }

    /** Returns why the connection may not stay. */
    function rejectionOf({ id }: ApiKey): CloseCode | null {
      if (!connections.has(connection)) return closeCodes.stopping
      if (byKey.of(id).size < maxConnectionsPerKey) return null
      return [4429, `An API key may have ${maxConnectionsPerKey} connections`]
    }

    function onClose(): void {
      connections.delete(connection)
      unauthenticated.delete(client, connection)
      if (keyId !== undefined) byKey.delete(keyId, connection)
      if (connections.size === 0) onEmpty?.()
    }

    const operations = connectionOperations(options, admit)
    const connection = attachSocket(socket, operations, { keepAliveMs, log, onClose })
    connections.add(connection)
    unauthenticated.add(client, connection)
  }

  async function closeRevoked(): Promise<void> {
    const ids = byKey.names()
    if (ids.length === 0) return
    const active = new Set(await keys.active(ids))
    for (const id of ids.filter((one) => !active.has(one)))
      for (const connection of byKey.of(id)) connection.close(...closeCodes.wrong)
  }

  let isChecking = false
  const checks = setInterval(() => {
    if (isChecking) return
    isChecking = true
    closeRevoked()
      .catch((error: unknown) => log.warn('keys of sockets not checked', { reason: reasonOf(error) }))
      .finally(() => (isChecking = false))
  }, checkKeysMs)

  return {
    count: () => connections.size,
    upgrade(request, socket, head) {
      const client = clientKey(request.socket.remoteAddress, getHeader(request, 'x-forwarded-for'))
      if (parseRequestTarget(request.url ?? '').path !== '/graphql') return reject(socket, '404 Not Found')
      if (onEmpty !== undefined || connections.size >= maxConnections) return reject(socket, '503 Service Unavailable')
      if (unauthenticated.of(client).size >= maxUnauthenticated) return reject(socket, '429 Too Many Requests')
      server.handleUpgrade(request, socket, head, (webSocket) => accept(webSocket, request, client))
    },
    async close() {
      clearInterval(checks)
      const { promise, resolve } = Promise.withResolvers<void>()
      onEmpty = resolve
      for (const connection of connections) connection.close(...closeCodes.stopping)
      if (connections.size > 0) await promise
    },
  }
}

/** Connections by the client or the API key that they belong to. */
function connectionGroups() {
  const groups = new Map<string, Set<Connection>>()
  return {
    of: (name: string): ReadonlySet<Connection> => groups.get(name) ?? new Set(),
    names: () => [...groups.keys()],
    add(name: string, connection: Connection) {
      groups.set(name, (groups.get(name) ?? new Set()).add(connection))
    },
    delete(name: string, connection: Connection) {
      const group = groups.get(name)
      group?.delete(connection)
      if (group?.size === 0) groups.delete(name)
    },
  }
}

type CloseCode = readonly [code: number, reason: string]

/** Clients of graphql-ws reconnect after every code but 4401. */
const closeCodes = {
  missing: [4401, 'Unauthorized'],
  wrong: [4403, 'Forbidden'],
  busy: [4429, 'Too many unknown keys'],
  stopping: [1001, 'Going away'],
} as const

function reject(socket: Duplex, status: string): void {
  socket.on('error', () => {})
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
}

/** Bytes that may be queued for a client before it is dropped. One message may be larger. */
const maxQueuedBytes = 1_000_000
/** Time in which a client has to answer a close frame, in ms. */
const closeWithinMs = 1_000

type Connection = {
  /** Sends a close frame, and ends the connection a second later at the latest. */
  readonly close: (code: number, reason: string) => void
}

/** `onClose` is called once. A client that answers no ping, or reads nothing, is dropped after two times `keepAliveMs`. */
function attachSocket(
  socket: WebSocket,
  operations: ServerOptions,
  { keepAliveMs, onClose, log }: Readonly<{ keepAliveMs: number; onClose: () => void; log: Log }>,
): Connection {
  const isOpen = () => socket.readyState === WebSocket.OPEN
  const isStuck = () => socket.bufferedAmount > maxQueuedBytes

  function drop(reason: string): void {
    log.info('socket dropped', { reason })
    socket.terminate()
  }

  let unsent = 0
  let hasSent = true
  function send(data: string): Promise<void> {
    return new Promise((resolve) => {
      if (!isOpen()) return resolve()
      if (!isStuck()) {
        unsent += 1
        return socket.send(data, () => {
          unsent -= 1
          hasSent = true
          resolve()
        })
      }
      drop('it does not read')
      resolve()
    })
  }

  function close(code: number, reason: string): void {
    if (!isOpen()) return
    socket.close(code, reason)
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

  const onMessage = (take: (text: string) => Promise<void>) => {
    socket.on('message', (data: RawData) => {
      if (!isOpen()) return
      take((data as Buffer).toString()).catch((error: unknown) => {
        log.error('socket failed', { reason: reasonOf(error) })
        close(1013, 'Try again later')
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
  { prepare, createContext, formatError, limiter, maxOperations = 50, timeoutMs = 30_000 }: SocketServerOptions,
  admit: (authorization: string | undefined) => Promise<ApiKey | null>,
): ServerOptions {
  let key: ApiKey | null = null
  let running = 0
  // graphql-ws acknowledges a connection, and so reads operations, only after `admit` has returned a key.
  const newContext = (listing = false) => createContext(key as ApiKey, newRequestId(), listing)

  async function quotaError(): Promise<GraphQLError | null> {
    const quota = await limiter?.take(key?.id ?? '')
    return quota?.allowed === false
      ? graphqlError('RATE_LIMITED', `Too many requests. Send the next one in ${quota.resetSeconds} s.`)
      : null
  }

  function format({ errors, ...result }: ExecutionResult, { contextValue }: ExecutionArgs): ExecutionResult {
    const { requestId } = contextValue as GraphqlContext
    return errors === undefined ? result : { ...result, errors: errors.map((error) => formatError(error, requestId)) }
  }

  async function runOnce(args: ExecutionArgs): Promise<ExecutionResult> {
    return format(await executeWithin(args, timeoutMs), args)
  }

  async function runSubscription(args: ExecutionArgs): Promise<Results | ExecutionResult> {
    const stream = await createSourceEventStream(args)
    if (!(Symbol.asyncIterator in stream)) return format(stream, args)
    // The loaders of the request would remember the first event, so that each event brings its own.
    return mapResults(stream as AsyncIterable<SubscriptionEvent, undefined>, (event) =>
      runOnce({ ...args, rootValue: event, contextValue: { ...newContext(), loaders: event.loaders } }),
    )
  }

  return {
    async onConnect({ connectionParams }) {
      const given = connectionParams?.['authorization'] ?? connectionParams?.['Authorization']
      key = await admit(typeof given === 'string' ? given : undefined)
      return key !== null
    },
    async onSubscribe(_connection, _id, parameters) {
      if (running >= maxOperations)
        return [graphqlError('RATE_LIMITED', `A connection may have ${maxOperations} operations at a time.`)]
      running += 1 // before the quota is read, which may take a moment
      const overQuota = await quotaError()
      const prepared = overQuota === null ? prepare(parameters) : ({ ok: false, errors: [overQuota] } as const)
      if (prepared.ok)
        return { ...prepared.args, contextValue: { ...newContext(prepared.listing), cost: prepared.cost } }
      running -= 1
      return prepared.errors
    },
    execute: runOnce,
    subscribe: runSubscription,
    onComplete: () => void (running -= 1), // called once per accepted operation, whichever side ends it
    onError: (_connection, _id, _payload, errors) => {
      const requestId = newRequestId()
      return errors.map((error) => formatError(error, requestId).toJSON())
    },
  }
}

type Results = AsyncIterableIterator<ExecutionResult, undefined>

/** Maps events to results. It is not a generator, whose `return` would wait for the event that `next` is waiting for. */
function mapResults<Event>(
  stream: AsyncIterable<Event, undefined>,
  run: (event: Event) => Promise<ExecutionResult>,
): Results {
  const events = stream[Symbol.asyncIterator]()
  const ended = { done: true, value: undefined } as const
  return {
    async next() {
      const { done, value } = await events.next()
      return done === true ? ended : { done: false, value: await run(value) }
    },
    async return() {
      await events.return?.()
      return ended
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}
