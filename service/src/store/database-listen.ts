/** LISTEN on PostgreSQL for as long as the service lives: a connection that ends is replaced. */
import { setTimeout as delay } from 'node:timers/promises'
import { openConnection } from './database-connection.ts'

const shortestWaitMs = 50
const longestWaitMs = 5_000

/**
 * Calls `onNotice` for every notice on the channel, and after every (re)connection, because notices of the time between are gone.
 * While PostgreSQL is away it tries again, at most every 5 s; it never throws.
 */
export function listenOn(url: string, channel: string, onNotice: () => void): AsyncDisposable {
  const closing = new AbortController()
  const closed = new Promise<void>((resolve) => closing.signal.addEventListener('abort', () => resolve()))

  async function keepListening(): Promise<void> {
    let waitMs = shortestWaitMs
    while (!closing.signal.aborted) {
      if (await listenOnce()) waitMs = shortestWaitMs
      await delay(waitMs, undefined, { signal: closing.signal }).catch(() => {})
      waitMs = Math.min(waitMs * 2, longestWaitMs)
    }
  }

  /** False when it could not even begin. */
  async function listenOnce(): Promise<boolean> {
    const connection = await openConnection({ url, checkMs: 5_000, onNotice }).catch(() => null)
    if (connection === null) return false
    try {
      await connection.query(`listen ${channel}`)
      onNotice()
      await Promise.race([connection.lost, closed])
      return true
    } catch {
      return false
    } finally {
      await connection.end()
    }
  }

  const ended = keepListening()
  return {
    [Symbol.asyncDispose]: () => {
      closing.abort()
      return ended
    },
  }
}
