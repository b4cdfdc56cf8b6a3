import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import fc from 'fast-check'
import { eventually } from '../../support/wait.ts'
import { skipRedis, startRedis, type TestRedis } from '../../support/database/redis.ts'
import { openOwnDatabase, testDatabases } from '../../support/database/databases.ts'
import { useOpened } from '../../support/opened.ts'
import { createClient } from '@redis/client'
import { openDatabase } from '../../../src/db/database.ts'
import { openRedisWindows } from '../../../src/http/rate-limit/redis.ts'
import { rateWindowStore } from '../../../src/http/rate-limit/postgres.ts'
import type { LimitStore } from '../../../src/http/rate-limit/shared-limiter.ts'

type Opened = {
  /** Two connections to the same windows. */
  stores: readonly [LimitStore, LimitStore]
  /** Ends the window of a key at once. */
  expire: (key: string) => Promise<unknown>
  keys: () => Promise<readonly string[]>
  /** Redis prunes by itself. */
  prune?: (limit: number) => Promise<number>
  close: () => Promise<unknown>
}

const postgres = testDatabases()[1]
const kinds: readonly { name: string; skip: string | false; open: () => Promise<Opened> }[] = [
  { name: 'PostgreSQL', skip: postgres?.skip ?? false, open: onPostgres },
  { name: 'Redis', skip: skipRedis, open: onRedis },
]

async function onPostgres(): Promise<Opened> {
  const own = await openOwnDatabase('migrated')
  const other = await openDatabase({ url: own.url, poolSize: 1 })
  const [one, two] = [rateWindowStore(own), rateWindowStore(other)]
  return {
    stores: [one, two],
    expire: (key) => own.query('update rate_window set ends_at = 0 where key = $1', [key]),
    keys: async () => (await own.query<{ key: string }>('select key from rate_window')).map(({ key }) => key),
    prune: (limit) => one.prune(limit),
    close: async () => {
      await other.close()
      await own.close()
    },
  }
}

async function onRedis(): Promise<Opened> {
  const redis = await startRedis()
  const admin = createClient({ url: redis.url })
  await admin.connect()
  const stores = [openRedisWindows(redis.url), openRedisWindows(redis.url)] as const
  await Promise.all(stores.map((store) => store.ready(10_000)))
  return {
    stores,
    expire: (key) => admin.del(`touchstone:limit:${key}`),
    keys: () => admin.keys('*'),
    close: async () => {
      for (const store of stores) store.close()
      admin.destroy()
      await redis.kill()
    },
  }
}

for (const { name, skip, open } of kinds) {
  describe(`the quota windows in ${name}`, { skip }, () => {
    let runs = 0
    const opened = useOpened(open)

    it('answer as a model does, for any requests, lists, limits, lengths and ends of windows', async () => {
      const requests = fc.uniqueArray(
        fc.record({
          key: fc.constantFrom('a', 'b', 'c'),
          limit: fc.integer({ min: 1, max: 8 }),
          windowMs: fc.constantFrom(1_000_000, 9_000_000),
          lists: fc.integer({ min: 1, max: 5 }),
        }),
        { minLength: 1, selector: ({ key }) => key },
      )
      const calls = fc.record({ requests, size: fc.integer({ min: 1, max: 3 }) })
      const steps = fc.array(fc.oneof({ weight: 4, arbitrary: calls }, fc.constantFrom('a', 'b', 'c')), {
        maxLength: 12,
      })
      await fc.assert(
        fc.asyncProperty(steps, async (script) => {
          const run = `run-${(runs += 1)}-`
          const model = new Map<string, { used: number; windowMs: number }>()
          for (const [at, step] of script.entries()) {
            if (typeof step === 'string') {
              model.delete(step)
              await opened.expire(run + step)
              continue
            }
            const store = opened.stores[at % 2] as LimitStore
            const { size, requests } = step
            const answers = await store.consume(
              requests.map(({ key, lists, ...rest }) => ({ ...rest, key: run + key, count: lists * size })),
              size,
            )
            for (const [index, { key, limit, windowMs, lists }] of requests.entries()) {
              let window = model.get(key)
              // No window is longer than its length: one that was begun under a longer one begins anew.
              if (window === undefined || window.windowMs > windowMs) window = { used: 0, windowMs }
              const before = window.used
              for (let n = 0; n < lists && window.used + size <= limit; n += 1) window.used += size
              const granted = window.used - before
              model.set(key, window)
              const { used, granted: given, remainingMs = 0 } = answers[index] ?? {}
              assert.deepEqual([used, given], [window.used, granted])
              assert.ok(remainingMs > window.windowMs - 900_000 && remainingMs <= window.windowMs, `${remainingMs}`)
            }
          }
        }),
        { numRuns: 40 },
      )
    })

    it('allow exactly the limit of each, whatever batches come at once from two processes', async () => {
      const keys = ['a', 'b', 'c', 'd', 'e', 'f']
      const batches = fc.array(
        fc.uniqueArray(fc.record({ key: fc.constantFrom(...keys), count: fc.integer({ min: 1, max: 4 }) }), {
          minLength: 1,
          selector: ({ key }) => key,
        }),
        { minLength: 10, maxLength: 30 },
      )
      await fc.assert(
        fc.asyncProperty(batches, fc.integer({ min: 1, max: 30 }), async (script, limit) => {
          const run = `run-${(runs += 1)}-`
          const answers = await Promise.all(
            script.map((batch, at) =>
              (opened.stores[at % 2] as LimitStore).consume(
                batch.map(({ key, count }) => ({ key: run + key, limit, windowMs: 1_000_000, count })),
                1,
              ),
            ),
          )
          for (const key of keys) {
            const of = script.flatMap((batch, at) =>
              batch.flatMap((request, index) => (request.key === key ? [{ request, use: answers[at]?.[index] }] : [])),
            )
            const wanted = of.reduce((sum, { request }) => sum + request.count, 0)
            const granted = of.reduce((sum, { use }) => sum + (use?.granted ?? 0), 0)
            assert.equal(granted, Math.min(limit, wanted))
          }
        }),
        { numRuns: 20 },
      )
    })

    if (name === 'PostgreSQL')
      it('are deleted in steps when they are over, and not before', async () => {
        for (const key of await opened.keys()) await opened.expire(key)
        while ((await opened.prune?.(1_000)) === 1_000);
        const requests = ['a', 'b', 'c', 'd'].map((key) => ({ key, limit: 1, windowMs: 1_000_000, count: 1 }))
        await opened.stores[0].consume(requests, 1)
        for (const key of ['a', 'b', 'c']) await opened.expire(key)
        const steps = [await opened.prune?.(2), await opened.prune?.(2), await opened.prune?.(2)]
        assert.deepEqual([steps, await opened.keys()], [[2, 1, 0], ['d']])
      })

    it('end by the clock of the store', async () => {
      const request = () => opened.stores[0].consume([{ key: 'short', limit: 1, windowMs: 300, count: 1 }], 1)
      assert.equal((await request())[0]?.granted, 1)
      assert.ok(await eventually(async () => (await request())[0]?.granted === 1))
    })
  })
}

describe('a Redis that hangs', { skip: skipRedis }, () => {
  let redis: TestRedis
  before(async () => void (redis = await startRedis()))
  after(async () => {
    redis?.resume()
    await redis?.kill()
  })

  it('is connected to anew, although its old connection never broke', async () => {
    const windows = openRedisWindows(redis.url)
    try {
      await windows.ready(10_000)
      const request = () => windows.consume([{ key: 'a', limit: 100, windowMs: 1_000_000, count: 1 }], 1)
      await request()
      redis.suspend()
      await assert.rejects(request())
      await assert.rejects(request(), /Redis is not connected/)
      redis.resume()
      await windows.ready(20_000)
      assert.equal((await request())[0]?.granted, 1)
    } finally {
      windows.close()
    }
  })

  it('keeps a rejected password out of the error', async () => {
    const windows = openRedisWindows(redis.url.replace('//', '//somebody:a-secret-word@'))
    try {
      const request = () => windows.consume([{ key: 'a', limit: 1, windowMs: 1_000, count: 1 }], 1)
      const isSafe = (error: unknown) =>
        error instanceof Error &&
        /WRONGPASS/.test(String(error.cause)) &&
        !JSON.stringify([error.message, String(error.cause)]).includes('a-secret-word')
      assert.ok(await eventually(() => request().then(() => false, isSafe)))
    } finally {
      windows.close()
    }
  })
})
