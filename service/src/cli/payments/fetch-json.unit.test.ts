import assert from 'node:assert/strict'
import type { RequestListener } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { serve, type Served } from '../../../test/support/http.ts'
import { fetchJson } from './fetch-json.ts'

describe('fetchJson', () => {
  const closed: string[] = []
  const answers: Readonly<Record<string, RequestListener>> = {
    '/verdict': (_, response) => response.writeHead(404).end('{"error":{"code":"ASSET_NOT_FOUND"}}'),
    '/large': (_, response) => response.end(JSON.stringify('a'.repeat(65_534))),
    '/larger': (_, response) => response.end(JSON.stringify('a'.repeat(65_535))),
    '/page': (_, response) => response.end('<html>'),
    '/twice': (_, response) => response.end('{"flagged":false,"flagged":true}'),
    '/endless': (_, response) => {
      const more = () => response.destroyed || (response.write('x'.repeat(16_384)), setImmediate(more))
      more()
      response.on('close', () => closed.push('endless'))
    },
    '/dripping': (_, response) => {
      const drip = setInterval(() => response.write(' '), 20)
      response.on('close', () => clearInterval(drip))
    },
    '/silent': () => {},
    '/broken': (_, response) => {
      response.write('{"version":')
      setTimeout(() => response.destroy(), 20)
    },
  }
  let server: Served
  let origin: string
  before(async () => {
    server = await serve((request, response) => answers[request.url ?? '']?.(request, response))
    origin = server.url
  })
  const ask = (path: string, options: { timeoutMs?: number } = {}) =>
    fetchJson(new URL(path, origin), { maxBytes: 65_536, ...options })
  const answer = async (path: string) => {
    const { status, body } = await ask(path)
    return { status, body }
  }
  after(() => server.close())

  it('gives status and body, and null for what is no JSON or can be read in two ways', async () => {
    assert.deepEqual(await answer('/verdict'), { status: 404, body: { error: { code: 'ASSET_NOT_FOUND' } } })
    for (const path of ['/page', '/twice']) assert.deepEqual(await answer(path), { status: 200, body: null })
  })

  it('reads 64 kB and not one byte more, even of a body that never ends', async () => {
    assert.equal(String((await ask('/large')).body).length, 65_534)
    for (const path of ['/larger', '/endless'])
      await assert.rejects(
        ask(path),
        new Error(`${origin} answered with more than 64 kB: give the address of a Touchstone service.`),
      )
    while (closed.length === 0) await new Promise((resolve) => setTimeout(resolve, 10))
  })

  it('gives up at its deadline, before the headers and in the middle of a body', async () => {
    for (const path of ['/silent', '/dripping'])
      await assert.rejects(ask(path, { timeoutMs: 200 }), new Error(`${origin} did not answer in full within 0.2 s.`))
  })

  it('says that a response was broken off, and that a host cannot be reached', async () => {
    await assert.rejects(ask('/broken'), new Error(`${origin} broke off its answer.`))
    await assert.rejects(fetchJson(new URL('http://127.0.0.1:9/')), new Error('http://127.0.0.1:9 cannot be reached.'))
  })
})
