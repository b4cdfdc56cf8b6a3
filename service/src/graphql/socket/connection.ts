/** One WebSocket under graphql-ws: a client that does not read or does not answer pings is dropped, and a closed one is no longer read. */
import { makeServer, type ServerOptions } from 'graphql-ws'
import { WebSocket, type RawData } from 'ws'
import { reasonOf } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'

/** Bytes that may be queued for a client before it is dropped. One message may be larger. */
const maxQueuedBytes = 1_000_000
/** Time in which a client has to answer a close frame, in ms. */
const closeWithinMs = 1_000

export type Connection = {
  /** Sends a close frame, and ends the connection a second later at the latest. */
  readonly close: (code: number, reason: string) => void
}

/** `onClose` is called once. A client that answers no ping is dropped after two times `keepAliveMs`. */
export function attachSocket(
  socket: WebSocket,
  {
    operations,
    keepAliveMs,
    onClose,
    log,
  }: {
    readonly operations: ServerOptions
    readonly keepAliveMs: number
    readonly onClose: () => void
    readonly log: Log
  },
): Connection {
  const isOpen = () => socket.readyState === WebSocket.OPEN
  const isStuck = () => socket.bufferedAmount > maxQueuedBytes

  function drop(reason: string): void {
    log.info('socket dropped', { reason })
    socket.terminate()
  }

  function send(data: string): Promise<void> {
    return new Promise((resolve) => {
      if (!isOpen()) return resolve()
      if (!isStuck()) return socket.send(data, () => resolve())
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
    isAnswered = false
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
