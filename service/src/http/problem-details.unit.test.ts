import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { asProblem, wantsProblem } from './problem-details.ts'
import { uncachedJson } from './responses.ts'

const docs = 'https://verify.example.com/docs/error-codes'

describe('problem details (RFC 9457)', () => {
  it('are only for a client that names the type', () => {
    for (const accept of ['application/problem+json', 'application/json, Application/Problem+JSON;q=0.5'])
      assert.equal(wantsProblem(accept), true, accept)
    for (const accept of [
      undefined,
      '*/*',
      'application/*',
      'application/json',
      'application/problem+json;q=0',
      'application/problem+json; q=0.000',
      'application/x-problem+json',
    ])
      assert.equal(wantsProblem(accept), false, accept)
  })

  it('hold the fixed body of the keyless read, with a title for its code', async () => {
    const body = { version: '1', error: { code: 'ASSET_NOT_FOUND', message: 'No asset has this token id.' } }
    const problem = await asProblem(uncachedJson(404, body, { 'X-RateLimit-Limit': '60' }), docs)
    assert.equal(problem.status, 404)
    assert.deepEqual(
      ['content-type', 'vary', 'cache-control', 'x-ratelimit-limit', 'access-control-allow-origin'].map((name) =>
        problem.headers.get(name),
      ),
      ['application/problem+json', 'Accept', 'no-store', '60', '*'],
    )
    assert.deepEqual(await problem.json(), {
      type: `${docs}#asset_not_found`,
      title: 'Asset not found',
      status: 404,
      detail: 'No asset has this token id.',
      ...body,
    })
  })

  it('name Accept in Vary once', async () => {
    for (const [given, wanted] of [
      ['accept', 'accept'],
      ['Origin', 'Origin, Accept'],
      ['Accept-Encoding', 'Accept-Encoding, Accept'],
    ] as const) {
      const problem = await asProblem(uncachedJson(400, { error: 'Wrong.' }, { Vary: given }), docs)
      assert.equal(problem.headers.get('vary'), wanted)
    }
  })

  it('hold the general body, named by the status alone', async () => {
    const problem = await asProblem(uncachedJson(503, { error: 'This verifier holds no tag keys yet.' }), docs)
    assert.deepEqual(await problem.json(), {
      type: 'about:blank',
      title: 'Service Unavailable',
      status: 503,
      detail: 'This verifier holds no tag keys yet.',
      error: 'This verifier holds no tag keys yet.',
    })
  })

  it('leave the answer to a HEAD request its status and headers', async () => {
    const { status, headers } = uncachedJson(429, { error: 'Too many requests.' }, { 'Retry-After': '7' })
    const problem = await asProblem(new Response(null, { status, headers }), docs)
    assert.deepEqual([problem.status, problem.headers.get('retry-after'), await problem.text()], [429, '7', ''])
  })

  it('leave everything else as it is', async () => {
    for (const answer of [new Response('{}', { headers: { 'Content-Type': 'application/json' } }), html()])
      assert.equal(await asProblem(answer, docs), answer)
  })
})

function html(): Response {
  return new Response('<p>', { status: 404, headers: { 'Content-Type': 'text/html; charset=utf-8' } })
}
