import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { recorded } from '../test/_recorded.ts'
import { createClient } from './client.ts'

const { verdict } = recorded

/** A client whose service answers with this. */
function clientOf(
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
  baseUrl = 'https://verify.example',
) {
  const requests: [url: unknown, init: RequestInit | undefined][] = []
  const client = createClient({
    baseUrl,
    fetch: async (url, init) => {
      requests.push([url, init])
      return Response.json(body, { status, headers })
    },
  })
  return { client, requests }
}

const bad = (status: number) => ({
  name: 'VerdictError',
  code: 'BAD_ANSWER',
  message: `The answer (HTTP ${status}) is neither a verdict nor an error body.`,
})

describe('createClient', () => {
  it('asks for JSON at the address of the token', async () => {
    for (const baseUrl of ['https://verify.example', 'https://verify.example/']) {
      const { client, requests } = clientOf(200, verdict, {}, baseUrl)
      assert.deepEqual(await client.verdict('006'), verdict)
      assert.deepEqual(await client.verdict(6n), verdict)
      assert.deepEqual(
        requests.map(([url]) => url),
        Array(2).fill('https://verify.example/api/asset/6'),
      )
      assert.deepEqual(requests[0]?.[1]?.headers, { accept: 'application/json' })
    }
    const { requests, client } = clientOf(200, verdict, {}, 'https://verify.example/a/b')
    await client.verdict(6n)
    assert.equal(requests[0]?.[0], 'https://verify.example/a/b/api/asset/6')
  })

  it('answers itself for a text that is no token id', async () => {
    const { client, requests } = clientOf(200, verdict)
    for (const text of ['', '0x6', '-6', String(2n ** 256n)])
      assert.deepEqual(await client.verdict(text), {
        version: '1',
        error: {
          code: 'INVALID_TOKEN_ID',
          message: 'The token id is not a decimal integer from 0 to 2^256 - 1.',
        },
      })
    assert.deepEqual(requests, [])
  })

  it('does not take the verdict on another token, a changed one, or one of another status', async () => {
    await assert.rejects(clientOf(200, verdict).client.verdict(7n), bad(200))
    await assert.rejects(clientOf(200, { ...verdict, flagged: true }).client.verdict(6n), bad(200))
    await assert.rejects(clientOf(201, verdict).client.verdict(6n), bad(201))
  })

  for (const code of ['INVALID_TOKEN_ID', 'ASSET_NOT_FOUND', 'RATE_LIMITED', 'CHAIN_UNAVAILABLE', 'INTERNAL'])
    it(`returns the error body of ${code}, with the seconds to wait where they are readable`, async () => {
      const error = { code, message: 'why' }
      const of = (seconds?: string) =>
        clientOf(
          503,
          { version: '2', error: { ...error, more: 1 } },
          seconds === undefined ? {} : { 'retry-after': seconds },
        ).client.verdict(6n)
      assert.deepEqual(await of(), { version: '1', error })
      for (const [text, retryAfter] of [
        ['0', 0],
        ['17', 17],
        ['999999999', 999_999_999],
      ] as const)
        assert.deepEqual(await of(text), { version: '1', error, retryAfter })
      for (const text of ['', '1.5', '-1', '17x', 'x17', '1000000000', 'Wed, 21 Oct 2015 07:28:00 GMT'])
        assert.deepEqual(await of(text), { version: '1', error })
    })

  it('returns an error whose message is no text without it', async () => {
    for (const message of [undefined, null, 7, ['why'], { toString: null }])
      assert.deepEqual(await clientOf(404, { error: { code: 'ASSET_NOT_FOUND', message } }).client.verdict(6n), {
        version: '1',
        error: { code: 'ASSET_NOT_FOUND', message: '' },
      })
  })

  it('does not take another body for an error', async () => {
    const bodies: unknown[] = [null, [], 'x', 7, {}, { error: null }, { error: 'x' }, { error: [] }, { error: {} }]
    for (const body of [...bodies, { error: { code: 'TEAPOT', message: '' } }, { error: { code: 'NOT_A_CODE' } }])
      await assert.rejects(clientOf(500, body).client.verdict(6n), bad(500))
    const error = { code: 'ASSET_NOT_FOUND', message: 'No such asset.' }
    await assert.rejects(clientOf(200, { version: '1', error }).client.verdict(6n), bad(200))
  })

  it('says that the service did not answer, with the reason as the cause', async () => {
    const fault = new Error('connection refused')
    const client = createClient({ baseUrl: 'https://verify.example', fetch: () => Promise.reject(fault) })
    await assert.rejects(client.verdict(6n), {
      name: 'VerdictError',
      code: 'SERVICE_UNAVAILABLE',
      message: 'The verification service did not answer.',
      cause: fault,
    })
  })
})
