/** A PostgreSQL that is there or away: a port before the real one. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { pipeline } from 'node:stream'

/**
 * Answers on a port of 127.0.0.1 as the server of `url` does, or as several servers in turn. Disposing of it cuts every
 * connection. `before` holds each piece that a client sends until it resolves, `after` each piece of an answer; where one
 * rejects, that connection is cut.
 */
export async function answerAs(
  url: string | readonly string[],
  port: number,
  before = goesOn,
  after = goesOn,
): Promise<AsyncDisposable> {
  const urls = [url].flat()
  const sockets = new Set<Socket>()
  let next = 0
  const server = createServer((socket) => {
    const real = new URL(urls[next++ % urls.length] ?? '')
    const onward = connect(Number(real.port || 5432), real.hostname)
    pipeline(socket, held(before), onward, () => {}) // either end cuts the other
    pipeline(onward, held(after), socket, () => {})
    for (const [one, other] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      sockets.add(one)
      one.on('error', () => other.destroy())
    }
  })
  await once(server.listen(port, '127.0.0.1'), 'listening')
  return {
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const goesOn: (piece: Buffer) => Promise<void> | undefined = () => undefined

function held(until: typeof goesOn) {
  return async function* (pieces: AsyncIterable<Buffer>) {
    for await (const piece of pieces) {
      await until(piece)
      yield piece
    }
  }
}

/** Returns the URL of the same database at another port of 127.0.0.1. */
export function atPort(url: string, port: number): string {
  const moved = new URL(url)
  moved.host = `127.0.0.1:${port}`
  return moved.href
}
