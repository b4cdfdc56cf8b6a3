import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Fetch, fetchJson, type FetchOptions } from './fetch-json.ts'

const url = 'https://rpc.example'
const bytes = (text: string) => new TextEncoder().encode(text)

/** A `fetch` that answers with these parts. `state` shows what became of its signal. */
function answering(parts: readonly Uint8Array<ArrayBuffer>[]) {
  const state: { signal: AbortSignal | null | undefined; init: RequestInit | undefined } = { signal: null, init: {} }
  const fetch: Fetch = async (_, init) => {
    state.signal = init?.signal
    state.init = init
    return new Response(ReadableStream.from(parts), { status: 418, headers: { 'retry-after': '7' } })
  }
  return { fetch, state }
}

const read = async (parts: readonly Uint8Array<ArrayBuffer>[], more: FetchOptions = {}) =>
  (await fetchJson(url, {}, { fetch: answering(parts).fetch, ...more })).body

/** JSON text of so many bytes. */
const text = (length: number) => bytes(`"${'x'.repeat(length - 2)}"`)
const most = 8 * 1024 * 1024

describe('fetchJson', () => {
  it('returns status, headers and parsed body, and ends its request', async () => {
    const { fetch, state } = answering([bytes('{"a":'), bytes('1}')])
    const { status, headers, body } = await fetchJson(url, { method: 'POST' }, { fetch })
    assert.deepEqual([status, headers.get('retry-after'), body], [418, '7', { a: 1 }])
    assert.equal(state.init?.method, 'POST')
    assert.equal(state.signal?.aborted, true)
  })

  it('reads a character that two parts of the body share', async () => {
    const whole = bytes('"é…"')
    for (const at of whole.keys()) assert.equal(await read([whole.slice(0, at), whole.slice(at)]), 'é…')
  })

  it('rejects what is not JSON in UTF-8', async () => {
    const broken = Uint8Array.of(0x22, 0xff, 0x22)
    const cut = Uint8Array.of(0x31, 0xc3)
    for (const parts of [[bytes('<html>')], [], [broken], [cut]]) await assert.rejects(read(parts))
    await assert.rejects(fetchJson(url, {}, { fetch: async () => new Response(null, { status: 204 }) }), SyntaxError)
  })

  it('reads 8 MiB and no byte more', async () => {
    assert.equal(String(await read([text(most)])).length, most - 2)
    const half = text(most).slice(0, most / 2)
    assert.equal(String(await read([half, text(most).slice(most / 2)])).length, most - 2)
    const { fetch, state } = answering([text(most), bytes(' '), bytes(' ')])
    await assert.rejects(fetchJson(url, {}, { fetch }), { message: 'the answer is over 8388608 bytes' })
    assert.equal(state.signal?.aborted, true)
    await assert.rejects(read([text(most + 1)]), /over 8388608 bytes/)
  })

  it('ends a request at its deadline, even where the signal is ignored; by default after ten seconds', async () => {
    let signal: AbortSignal | null | undefined
    const silent: Fetch = (_, init) => {
      signal = init?.signal
      return new Promise(() => {})
    }
    await assert.rejects(fetchJson(url, {}, { fetch: silent, timeoutMs: 1 }), {
      message: 'no complete answer within 1 ms',
    })
    assert.equal(signal?.aborted, true)
    const { setTimeout: real } = globalThis
    globalThis.setTimeout = ((run: () => void, ms?: number) => real(run, ms === 10_000 ? 0 : ms)) as typeof setTimeout
    try {
      await assert.rejects(fetchJson(url, {}, { fetch: silent }), { message: 'no complete answer within 10000 ms' })
    } finally {
      globalThis.setTimeout = real
    }
  })

  it('clears the timer of its deadline, which would keep a process alive', async () => {
    const { setTimeout: realSet, clearTimeout: realClear } = globalThis
    const timers: unknown[] = []
    const cleared: unknown[] = []
    globalThis.setTimeout = ((run: () => void, ms?: number) => {
      const timer = realSet(run, ms)
      if (ms === 54_321) timers.push(timer)
      return timer
    }) as typeof setTimeout
    globalThis.clearTimeout = ((timer: NodeJS.Timeout) => {
      cleared.push(timer)
      realClear(timer)
    }) as typeof clearTimeout
    try {
      await read([bytes('1')], { timeoutMs: 54_321 })
      await assert.rejects(read([bytes('x')], { timeoutMs: 54_321 }))
    } finally {
      Object.assign(globalThis, { setTimeout: realSet, clearTimeout: realClear })
    }
    assert.equal(timers.length, 2)
    assert.ok(timers.every((timer) => cleared.includes(timer)))
  })

  it('passes on what the connection fails with', async () => {
    const fault = new TypeError('fetch failed')
    await assert.rejects(fetchJson(url, {}, { fetch: () => Promise.reject(fault) }), fault)
  })
})
