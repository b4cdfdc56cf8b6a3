/** Windows of request budgets on Redis (spec §8): any number of draws in one script, which Redis runs undivided and by its own clock. */
import { setTimeout as delay } from 'node:timers/promises'
import { createClient, defineScript, type CommandParser } from '@redis/client'

type Draw = { readonly key: string; readonly limit: number; readonly windowMs: number; readonly count: number }
type Drawn = { readonly used: number; readonly granted: number; readonly remainingMs: number }

/** A call without an answer for so long means that the connection is dead, whatever its socket says. */
const stalledMs = 2_000

/**
 * Windows on the Redis that `url` names (redis:// or rediss://). It connects by itself, again and again; until then, and whenever Redis is
 * away, a draw fails at once. Closing it ends what is under way.
 */
export function openRedisWindows(url: string) {
  let fault: unknown
  let client = connect()

  function connect() {
    const made = createClient({
      url,
      name: 'touchstone',
      RESP: 2, // what proxies in front of Redis understand too
      scripts: { draw: drawScript },
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
    made.connect().catch(() => {}) // ends only with close(); what failed before was told by the event
    return made
  }

  function renew(stalled: typeof client): void {
    if (stalled !== client) return
    stalled.destroy()
    client = connect()
  }

  return {
    /** Every key must be another one. The answers are in the order of the draws. */
    async draw(draws: readonly Draw[]): Promise<readonly Drawn[]> {
      if (!client.isReady) throw new Error('Redis is not connected', { cause: fault })
      const stalled = setTimeout(renew, stalledMs, client)
      return client.draw(draws).finally(() => clearTimeout(stalled))
    },
    /** Waits until it is connected, at most so long. */
    async ready(withinMs: number): Promise<void> {
      const until = performance.now() + withinMs
      while (!client.isReady && performance.now() < until) await delay(10)
    },
    close(): void {
      client.destroy()
    },
  }
}

/** Every key begins with this, in whatever database of Redis the URL names. */
const prefix = 'touchstone:limit:'

const drawScript = defineScript({
  // Numbers go as one text each way: an argument or an integer of the protocol costs more than what it tells.
  SCRIPT: `
local number, answer = string.gmatch(ARGV[1], '%d+'), {}
for index, key in ipairs(KEYS) do
  local limit, length, count = tonumber(number()), tonumber(number()), tonumber(number())
  local remaining, used = redis.call('PTTL', key), 0
  local is_new = remaining <= 0 or remaining > length
  if is_new then remaining = length else used = tonumber(redis.call('GET', key)) or 0 end
  local granted = math.max(0, math.min(count, limit - used))
  used = used + granted
  if is_new then
    redis.call('SET', key, used, 'PX', length)
  elseif granted > 0 then
    redis.call('INCRBY', key, granted)
  end
  answer[index] = string.format('%d %d %d', used, granted, remaining)
end
return table.concat(answer, ' ')`,
  parseCommand(parser: CommandParser, draws: readonly Draw[]) {
    parser.push(String(draws.length))
    for (const { key } of draws) parser.pushKey(prefix + key)
    parser.push(draws.map(({ limit, windowMs, count }) => `${limit} ${windowMs} ${count}`).join(' '))
  },
  transformReply(reply: string): Drawn[] {
    const numbers = reply.split(' ').map(Number)
    return Array.from({ length: numbers.length / 3 }, (_window, index) => {
      const [used = 0, granted = 0, remainingMs = 0] = numbers.slice(3 * index, 3 * index + 3)
      return { used, granted, remainingMs }
    })
  },
})
