/**
 * One WebSocket under graphql-ws: nothing is written to a client that does not read, a dead one is dropped, and a closed one is not
 * listened to any more.
 */
import { makeServer, type ServerOptions } from 'graphql-ws'
import { WebSocket, type RawData } from 'ws'
import { reasonOf } from '../errors.ts'
import type { Log } from '../log.ts'

/** Bytes that may wait for a client before it is dropped; one answer may be larger. */
const maxWaitingBytes = 1_000_000
/** For how long a closing client may stay silent, in ms. */
const closeWithinMs = 1_000

export type Connection = {
  /** Says goodbye with a code, and ends the connection soon whatever the client does. */
  readonly close: (code: number, reason: string) => void
}

/** `onGone` is called once, when the connection has ended. `keepAliveMs`: a client that does not answer a ping is gone after two. */
export function attachSocket(
  socket: WebSocket,
  {
    operations,
    keepAliveMs,
    onGone,
    log,
  }: {
    readonly operations: (close: Connection['close']) => ServerOptions
    readonly keepAliveMs: number
    readonly onGone: () => void
    readonly log: Log
  },
): Connection {
  const isOpen = () => socket.readyState === WebSocket.OPEN
  const isStuck = () => socket.bufferedAmount > maxWaitingBytes

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
    const patience = setTimeout(() => socket.terminate(), closeWithinMs)
    socket.once('close', () => clearTimeout(patience))
    stop(code, reason)
  }

  let stopped = false
  /** Ends its subscriptions. */
  function stop(code: number, reason: string): void {
    if (stopped) return
    stopped = true
    queueMicrotask(() => {
      // graphql-ws may close while it opens
      closed(code, reason).catch((error: unknown) => log.error('socket not ended', { reason: reasonOf(error) }))
    })
  }

  const closed = makeServer(operations(close)).opened(
    {
      protocol: socket.protocol,
      send,
      close,
      onMessage: (take) => {
        socket.on('message', (data: RawData) => {
          if (!isOpen()) return
          take((data as Buffer).toString()).catch((error: unknown) => {
            log.error('socket failed', { reason: reasonOf(error) })
            close(1013, 'Try again later')
          })
        })
      },
    },
    undefined,
  )

  let answers = true
  const pings = setInterval(() => {
    if (!answers) return drop('no answer')
    answers = false
    socket.ping()
  }, keepAliveMs)
  socket.on('pong', () => (answers = true))
  socket.on('ping', (data) => (isStuck() ? drop('it does not read') : socket.pong(data)))
  socket.on('error', () => {}) // such as a message that is too large: ws closes by itself, with the right code
  socket.once('close', (code, reason) => {
    clearInterval(pings)
    stop(code, String(reason))
    onGone()
  })
  return { close }
}
