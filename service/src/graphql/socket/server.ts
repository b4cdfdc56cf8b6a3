/**
 * The WebSocket of GraphQL (spec §5, §6): graphql-ws at /graphql. The key comes as the connection parameter `authorization` or as the
 * header: none closes with 4401, a wrong or revoked one with 4403.
 */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { handleProtocols } from 'graphql-ws'
import { WebSocketServer, type WebSocket } from 'ws'
import type { ClientKey } from '../../http/client-ip.ts'
import { getHeader } from '../../http/headers.ts'
import type { OnUpgrade } from '../../http/listener.ts'
import { parseRequestTarget } from '../../http/request-target.ts'
import { reasonOf } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'
import type { ApiKey, ApiKeyStore, Authenticate } from '../api-keys.ts'
import { attachSocket, type Connection } from './connection.ts'
import { connectionOperations, type SocketOperations } from './operations.ts'

export type SocketServerOptions = SocketOperations & {
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
  const byKey = new Map<string, Set<Connection>>()
  const unauthenticated = new Map<string, number>()
  let onEmpty: (() => void) | undefined

  function accept(socket: WebSocket, request: IncomingMessage, client: string): void {
    let keyId: string | undefined
    const markAuthenticated = countUnauthenticated(client)

    async function admit(parameter: string | undefined): Promise<ApiKey | null> {
      const authenticated = await authenticate(parameter ?? request.headers.authorization, client)
      const closeCode = authenticated.ok ? addToKey(authenticated.key, connection) : closeCodes[authenticated.because]
      if (closeCode !== null) connection.close(...closeCode)
      if (!authenticated.ok || closeCode !== null) return null
      markAuthenticated()
      keyId = authenticated.key.id
      return authenticated.key
    }

    function onClose(): void {
      connections.delete(connection)
      markAuthenticated()
      const others = byKey.get(keyId ?? '')
      others?.delete(connection)
      if (keyId !== undefined && others?.size === 0) byKey.delete(keyId)
      if (connections.size === 0) onEmpty?.()
    }

    const operations = connectionOperations(options, admit)
    const connection = attachSocket(socket, { keepAliveMs, log, operations, onClose })
    connections.add(connection)
  }

  /** Counts the connection to its key, or returns why it may not stay. */
  function addToKey({ id }: ApiKey, connection: Connection): CloseCode | null {
    if (!connections.has(connection)) return closeCodes.stopping
    const others = byKey.get(id) ?? new Set()
    if (others.size >= maxConnectionsPerKey) return [4429, `An API key may have ${maxConnectionsPerKey} connections`]
    byKey.set(id, others.add(connection))
    return null
  }

  /** Counts a connection without a key. Returns a function that ends the count once. */
  function countUnauthenticated(client: string): () => void {
    unauthenticated.set(client, (unauthenticated.get(client) ?? 0) + 1)
    let isCounted = true
    return () => {
      if (!isCounted) return
      isCounted = false
      const rest = (unauthenticated.get(client) ?? 1) - 1
      if (rest > 0) unauthenticated.set(client, rest)
      else unauthenticated.delete(client)
    }
  }

  async function closeRevoked(): Promise<void> {
    const ids = [...byKey.keys()]
    if (ids.length === 0) return
    const active = new Set(await keys.active(ids))
    for (const id of ids.filter((one) => !active.has(one)))
      for (const connection of byKey.get(id) ?? []) connection.close(...closeCodes.wrong)
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
      if ((unauthenticated.get(client) ?? 0) >= maxUnauthenticated) return reject(socket, '429 Too Many Requests')
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
