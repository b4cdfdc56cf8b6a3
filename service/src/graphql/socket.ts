/**
 * The WebSocket of GraphQL (spec §5, §6): graphql-ws at /graphql. The connection parameter `authorization`, or the header, carries the
 * key: none closes with 4401, a wrong or revoked one with 4403.
 */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { handleProtocols } from 'graphql-ws'
import { WebSocketServer } from 'ws'
import { reasonOf } from '../errors.ts'
import type { ClientKey } from '../http/client-key.ts'
import type { Log } from '../log.ts'
import type { ApiKey } from '../store/api-keys.ts'
import type { Authenticate } from './api-keys.ts'
import type { Upgrade } from './host.ts'
import { createRequestIds } from './http-operation.ts'
import { createOperations, type Refusal, type SocketOperations } from './socket-operations.ts'
import { attachSocket, type Connection } from './socket-transport.ts'

export type SocketServerOptions = SocketOperations & {
  readonly authenticate: Authenticate
  /** Which of these keys, by id, are still in force. */
  readonly inForce: (ids: readonly string[]) => Promise<readonly string[]>
  readonly clientKey: ClientKey
  readonly log: Log
  readonly maxConnections?: number
  readonly maxConnectionsPerKey?: number
  /** Of one client, before they showed a key. */
  readonly maxStrangers?: number
  readonly keepAliveMs?: number
  /** Between two looks for revoked keys, in ms. */
  readonly checkKeysMs?: number
}

export type SocketServer = {
  readonly upgrade: Upgrade
  /** How many are open. */
  readonly count: () => number
  /** Says goodbye to everyone (1001) and resolves when all have gone, after a second at the latest. */
  readonly close: () => Promise<void>
}

export function createSocketServer(options: SocketServerOptions): SocketServer {
  const { maxConnections = 10_000, maxConnectionsPerKey = 100, maxStrangers = 100 } = options
  const { authenticate, inForce, clientKey, log, keepAliveMs = 7_000, checkKeysMs = 1_000 } = options
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: 65_536,
    clientTracking: false,
    autoPong: false,
    handleProtocols,
  })
  const operationsOf = createOperations(options, createRequestIds())
  const connections = new Set<Connection>()
  const byKey = new Map<string, Set<Connection>>()
  const strangers = new Map<string, number>()
  let gone: (() => void) | undefined

  function welcome(socket: Parameters<typeof attachSocket>[0], request: IncomingMessage, client: string): void {
    let keyId: string | undefined
    const known = countStranger(client)
    const connection = attachSocket(socket, {
      keepAliveMs,
      log,
      operations: (close) =>
        operationsOf({
          close,
          admit: async (parameter) => {
            const asked = await authenticate(parameter ?? request.headers.authorization, client)
            if (!asked.ok) return refusals[asked.because]
            const refusal = seat(asked.key, connection)
            if (refusal !== null) return refusal
            known()
            keyId = asked.key.id
            return asked.key
          },
        }),
      onGone: () => {
        connections.delete(connection)
        known()
        const others = keyId === undefined ? undefined : byKey.get(keyId)
        others?.delete(connection)
        if (keyId !== undefined && others?.size === 0) byKey.delete(keyId)
        if (connections.size === 0) gone?.()
      },
    })
    connections.add(connection)
  }

  /** Counts the connection to its key. */
  function seat({ id }: ApiKey, connection: Connection): Refusal | null {
    if (!connections.has(connection)) return [1001, 'Going away']
    const others = byKey.get(id) ?? new Set()
    if (others.size >= maxConnectionsPerKey) return [4429, `An API key may have ${maxConnectionsPerKey} connections`]
    byKey.set(id, others.add(connection))
    return null
  }

  /** Returns what to call when it is a stranger no more. */
  function countStranger(client: string): () => void {
    strangers.set(client, (strangers.get(client) ?? 0) + 1)
    let counted = true
    return () => {
      if (!counted) return
      counted = false
      const rest = (strangers.get(client) ?? 1) - 1
      if (rest > 0) strangers.set(client, rest)
      else strangers.delete(client)
    }
  }

  async function closeRevoked(): Promise<void> {
    const ids = [...byKey.keys()]
    if (ids.length === 0) return
    const valid = new Set(await inForce(ids))
    for (const id of ids.filter((one) => !valid.has(one)))
      for (const connection of byKey.get(id) ?? []) connection.close(...refusals.wrong)
  }

  let checking = false
  const checks = setInterval(() => {
    if (checking) return
    checking = true
    closeRevoked()
      .catch((error: unknown) => log.warn('keys of sockets not checked', { reason: reasonOf(error) }))
      .finally(() => (checking = false))
  }, checkKeysMs)

  return {
    count: () => connections.size,
    upgrade(request, socket, head) {
      const client = clientKey(request.socket.remoteAddress, request.headers['x-forwarded-for']?.toString())
      if (!/^(?:https?:\/\/[^/]*)?\/graphql(?:\?|$)/i.test(request.url ?? '')) return refuse(socket, '404 Not Found')
      if (gone !== undefined || connections.size >= maxConnections) return refuse(socket, '503 Service Unavailable')
      if ((strangers.get(client) ?? 0) >= maxStrangers) return refuse(socket, '429 Too Many Requests')
      server.handleUpgrade(request, socket, head, (webSocket) => welcome(webSocket, request, client))
    },
    async close() {
      clearInterval(checks)
      const { promise, resolve } = Promise.withResolvers<void>()
      gone = resolve
      for (const connection of connections) connection.close(1001, 'Going away')
      if (connections.size > 0) await promise
    },
  }
}

const refusals = {
  missing: [4401, 'Unauthorized'],
  wrong: [4403, 'Forbidden'],
  busy: [4429, 'Too many keys that are not known here'],
} as const

function refuse(socket: Duplex, status: string): void {
  socket.on('error', () => {})
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
}
