import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createBreaker } from '../../lib/async/circuit-breaker.ts'
import { currentSpan, type Span, withSpan } from '../../lib/async/span.ts'
import { createLog } from '../../lib/log.ts'
import { recordedSpan } from '../../../test/support/recorded-span.ts'
import { createSharedLimits } from './shared-limiter.ts'

describe('a call to the store of shared limits', () => {
  it('belongs to no request, each of which has the time that it waited', async () => {
    const { span, names, ends } = recordedSpan()
    const seen: (Span | undefined)[] = []
    const { limiter } = createSharedLimits({
      store: {
        consume: async (requests) => {
          seen.push(currentSpan())
          return requests.map(({ count }) => ({ used: count, granted: count, remainingMs: 60_000 }))
        },
      },
      breaker: createBreaker({ faults: 5, openMs: 1_000, now: () => performance.now() }),
      keyOf: (scope, client) => `${scope} ${client}`,
      deadlineMs: 60_000,
      log: createLog(() => {}),
    })
    const { take } = limiter({ scope: 'asset', limit: 10, windowSeconds: 60 })
    const quotas = await Promise.all(['a', 'b'].map(async (client) => withSpan(span, () => take(client))))
    assert.ok(quotas.every(({ allowed }) => allowed))
    assert.deepEqual([seen, names, ends()], [[undefined], ['quota', 'quota'], 2])
  })
})
