import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createLatency } from './provider.ts'

describe('the latency of a provider', () => {
  it('is 0 before the first answer', () => assert.equal(createLatency().p95(), 0))

  it('is the 95th percentile of what it took', () => {
    const latency = createLatency()
    for (let ms = 60; ms >= 1; ms--) latency.add(ms)
    assert.equal(latency.p95(), 57)
  })

  it('forgets what is longer ago than 64 answers', () => {
    const latency = createLatency()
    for (let at = 0; at < 64; at++) latency.add(1000)
    assert.equal(latency.p95(), 1000)
    for (let at = 0; at < 64; at++) latency.add(5)
    assert.equal(latency.p95(), 5)
  })

  it('is not moved by a stall in fifty', () => {
    const latency = createLatency()
    for (let at = 0; at < 64; at++) latency.add(at % 50 === 0 ? 600 : 20)
    assert.equal(latency.p95(), 20)
  })
})
