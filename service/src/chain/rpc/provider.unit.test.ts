import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { serve } from '../../../test/support/http.ts'
import { RpcError } from './answer.ts'
import { createLatency, createProvider } from './provider.ts'

describe('the chain id of a provider', () => {
  it('that is refused leaves open what became of the call beside it', async () => {
    const clock = { ms: 0 }
    let isRefusing = false
    const { url, close } = await serve((request, response) => {
      request.setEncoding('utf8').on('data', (body: string) => {
        const { id, method } = JSON.parse(body) as { id: number; method: string }
        const isRefused = isRefusing && method === 'eth_chainId'
        const answer = isRefused ? { error: { code: -32005, message: 'limit exceeded' } } : { result: '0x14a34' }
        response.end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
      })
    })
    const unused = () => {}
    const provider = createProvider({
      index: 0,
      url,
      chainId: 84532,
      contract: '0x',
      attemptTimeoutMs: 60_000,
      ticks: () => clock.ms,
      onCalls: unused,
      onFault: unused,
    })
    const send = () => provider.attempt(({ ask }) => ask('eth_sendRawTransaction', []))
    await send()
    isRefusing = true
    clock.ms = 10_000
    await assert.rejects(send(), (error) => error instanceof RpcError && error.kind === 'busy' && !error.answered)
    await provider.close()
    await close()
  })
})

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
