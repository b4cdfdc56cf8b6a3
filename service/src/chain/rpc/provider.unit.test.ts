import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { serve } from '../../../test/support/http.ts'
import { RpcError } from './answer.ts'
import { createLog } from '../../lib/log.ts'
import { createLatency, createProvider, newCounts } from './provider.ts'

const unused = () => {}
const log = createLog(unused)
const ofNothing = { index: 0, chainId: 84532, contract: '0x', counts: newCounts(), log, onFault: unused } as const

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
    const provider = createProvider({ ...ofNothing, url, attemptTimeoutMs: 60_000, ticks: () => clock.ms })
    const send = () => provider.attempt(({ ask }) => ask('eth_sendRawTransaction', []))
    await send()
    isRefusing = true
    clock.ms = 10_000
    await assert.rejects(send(), (error) => error instanceof RpcError && error.kind === 'busy' && !error.answered)
    await provider.close()
    await close()
  })
})

describe('the batches of a provider', () => {
  /** A provider that answers a request of so many calls unless `isLimited`; `sizes` has the calls of each request. */
  async function limiting(isLimited: (size: number) => boolean) {
    const sizes: number[] = []
    const served = await serve((request, response) => {
      request.setEncoding('utf8').on('data', (body: string) => {
        const calls = [JSON.parse(body)].flat() as { id: number; method: string }[]
        const answers = calls.map(({ id }) => ({ jsonrpc: '2.0', id, result: '0x14a34' }))
        if (calls[0]?.method === 'eth_chainId') return void response.end(JSON.stringify(answers[0]))
        sizes.push(calls.length)
        if (isLimited(calls.length)) response.writeHead(429)
        response.end(JSON.stringify(body.startsWith('[') ? answers : answers[0]))
      })
    })
    const provider = createProvider({ ...ofNothing, url: served.url, attemptTimeoutMs: 60_000, ticks: () => 0 })
    const askTwo = async () => {
      sizes.length = 0
      await provider.attempt(({ askAll }) => askAll([call, call]))
      return [...sizes]
    }
    return {
      askTwo,
      async [Symbol.asyncDispose]() {
        await provider.close()
        await served.close()
      },
    }
  }
  const call = ['eth_call', []] as const

  it('get smaller where a part passes at once, because the limit is one of the size', async () => {
    await using provider = await limiting((size) => size > 1)
    assert.deepEqual(await provider.askTwo(), [2, 2, 2, 1, 1])
    assert.deepEqual(await provider.askTwo(), [1, 1])
  })

  it('stay as large as they are where a part has to wait too, because the limit is one of the rate', async () => {
    let limits = 4
    await using provider = await limiting(() => limits-- > 0)
    assert.deepEqual(await provider.askTwo(), [2, 2, 2, 1, 1, 1])
    assert.deepEqual(await provider.askTwo(), [2])
  })
})

describe('a provider that is closed', () => {
  it('ends the pause after a limit', async () => {
    const { url, close } = await serve((_request, response) => response.writeHead(429, { 'retry-after': '30' }).end())
    const provider = createProvider({
      ...ofNothing,
      url,
      attemptTimeoutMs: 60_000,
      ticks: () => 0,
      log: createLog(() => void provider.close(), 'debug'),
    })
    await assert.rejects(
      provider.attempt(({ ask }) => ask('eth_call', [])),
      /closed/,
    )
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
