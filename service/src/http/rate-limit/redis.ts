/** Quota windows in Redis (spec §8): any number of windows in one script, which Redis runs atomically and by its own clock. */
import { createClient, defineScript, type CommandParser } from '@redis/client'
import { poll } from '../../lib/async/sleep.ts'
import type { LimitStore, WindowRequest, WindowUse } from './shared-limiter.ts'

/** A call without an answer for this long means a dead connection, even if its socket is open. */
const stalledMs = 2_000

/**
 * Opens the windows in the Redis at `url` (redis:// or rediss://). The client reconnects by itself; while it is not connected,
 * `consume` rejects at once. `close` ends pending calls.
 */
export function openRedisWindows(url: string) {
  let fault: unknown
  let client = connect()

  function connect() {
    const made = createClient({
      url,
      name: 'touchstone',
      RESP: 2, // proxies in front of Redis understand it too
      scripts: { consume: consumeScript },
      disableClientInfo: true,
      disableOfflineQueue: true,
      maintNotifications: 'disabled',
      commandsQueueMaxLength: 100,
      pingInterval: 2_000,
      socket: {
        connectTimeout: 1_000,
        socketTimeout: 5_000,
        reconnectStrategy: (retries) => Math.min(50 * 2 ** Math.min(retries, 10), 1_000) * (0.75 + Math.random() / 4),
      },
    })
    made.on('error', (error) => (fault = error))
    made.connect().catch(() => {}) // ends only with close(); earlier failures arrive as events
    return made
  }

  function renew(stalled: typeof client): void {
    if (stalled !== client) return
    stalled.destroy()
    client = connect()
  }

  return {
    async consume(requests: readonly WindowRequest[], size: number): Promise<readonly WindowUse[]> {
      if (!client.isReady) throw new Error('Redis is not connected', { cause: fault })
      const stalled = setTimeout(renew, stalledMs, client)
      return client.consume(requests, size).finally(() => clearTimeout(stalled))
    },
    /** Waits until the client is connected, at most `withinMs`. Returns null then, else the last error. */
    async ready(withinMs: number): Promise<unknown> {
      await poll(() => client.isReady, { everyMs: 10, timeoutMs: withinMs })
      return client.isReady ? null : (fault ?? new Error('it does not answer'))
    },
    close(): void {
      client.destroy()
    },
  } satisfies LimitStore & { ready: unknown; close: unknown }
}

const prefix = 'touchstone:limit:'

const consumeScript = defineScript({
  // Numbers travel as one text each way: every argument or integer of the protocol has a cost of its own.
  SCRIPT: `
local number, answer = string.gmatch(ARGV[1], '%d+'), {}
local size = tonumber(number())
for index, key in ipairs(KEYS) do
  local limit, length, count = tonumber(number()), tonumber(number()), tonumber(number())
  local remaining, used = redis.call('PTTL', key), 0
  local is_new = remaining <= 0 or remaining > length
  if is_new then remaining = length else used = tonumber(redis.call('GET', key)) or 0 end
  local granted = math.max(0, math.min(count, limit - used))
  granted = granted - granted % size
  used = used + granted
  if is_new then
    redis.call('SET', key, used, 'PX', length)
  elseif granted > 0 then
    redis.call('INCRBY', key, granted)
  end
  answer[index] = string.format('%d %d %d', used, granted, remaining)
end
return table.concat(answer, ' ')`,
  parseCommand(parser: CommandParser, requests: readonly WindowRequest[], size: number) {
    parser.push(String(requests.length))
    for (const { key } of requests) parser.pushKey(prefix + key)
    parser.push([size, ...requests.map(({ limit, windowMs, count }) => `${limit} ${windowMs} ${count}`)].join(' '))
  },
  transformReply(reply: string): WindowUse[] {
    const numbers = reply.split(' ').map(Number)
    return Array.from({ length: numbers.length / 3 }, (_window, index) => {
      const [used = 0, granted = 0, remainingMs = 0] = numbers.slice(3 * index, 3 * index + 3)
      return { used, granted, remainingMs }
    })
  },
})
