/** The connections of GraphQL that stay open, WebSockets and event streams, counted together by API key. Those of a revoked key are closed. */
import { reasonOf } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'
import type { ApiKeyStore } from '../../access/api-keys.ts'

/** `wrong`: the key was revoked. `stopping`: the service ends. */
type CloseReason = 'wrong' | 'stopping'

export type Connection = {
  /** Ends the connection, a second later at the latest, and then removes it. */
  readonly close: (because: CloseReason) => void
}

export type Connections = ReturnType<typeof createConnections>

export type ConnectionsOptions = {
  readonly keys: Pick<ApiKeyStore, 'active'>
  readonly log: Log
  readonly maxConnectionsPerKey?: number
  /** Interval of checks for revoked keys, in ms. */
  readonly checkKeysMs?: number
}

const maxConnections = 10_000

export function createConnections({ keys, log, maxConnectionsPerKey = 100, checkKeysMs = 1_000 }: ConnectionsOptions) {
  /** Key ids by connection, null before the key was shown. */
  const connections = new Map<Connection, string | null>()
  const byKey = connectionGroups()
  let onEmpty: (() => void) | undefined

  async function closeRevoked(): Promise<void> {
    const ids = byKey.names()
    if (ids.length === 0) return
    const active = new Set(await keys.active(ids))
    for (const id of ids.filter((one) => !active.has(one)))
      for (const connection of byKey.of(id)) connection.close('wrong')
  }

  let isChecking = false
  const checks = setInterval(() => {
    if (isChecking) return
    isChecking = true
    closeRevoked()
      .catch((error: unknown) => log.warn('keys of connections not checked', { reason: reasonOf(error) }))
      .finally(() => (isChecking = false))
  }, checkKeysMs)

  return {
    maxPerKey: maxConnectionsPerKey,
    count: () => connections.size,
    /** Returns whether one more may open. None may while the service stops. */
    hasRoom: () => onEmpty === undefined && connections.size < maxConnections,
    add: (connection: Connection) => void connections.set(connection, null),
    /** Assigns an open connection to its key. Returns why it may not stay: it was closed meanwhile, or the key has too many. */
    claim(connection: Connection, keyId: string): 'stopping' | 'too-many' | null {
      if (!connections.has(connection)) return 'stopping'
      if (byKey.of(keyId).size >= maxConnectionsPerKey) return 'too-many'
      connections.set(connection, keyId)
      byKey.add(keyId, connection)
      return null
    },
    remove(connection: Connection): void {
      const keyId = connections.get(connection)
      connections.delete(connection)
      if (typeof keyId === 'string') byKey.delete(keyId, connection)
      if (connections.size === 0) onEmpty?.()
    },
    /** Closes all connections. Resolves when they have ended, after a second at the latest. */
    async close(): Promise<void> {
      clearInterval(checks)
      const { promise, resolve } = Promise.withResolvers<void>()
      onEmpty = resolve
      for (const connection of connections.keys()) connection.close('stopping')
      if (connections.size > 0) await promise
    },
  }
}

/** Connections by the client or the API key that they belong to. */
export function connectionGroups() {
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
