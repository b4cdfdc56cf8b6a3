import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { serve } from '../../test/support/http.ts'
import { getHeader, parseRequestTarget, requestIdFor } from './request.ts'

async function requestWith(...fields: readonly string[]): Promise<IncomingMessage> {
  const { server, port } = await serve()
  const socket = connect(port, '127.0.0.1')
  socket.write(['GET / HTTP/1.1', 'Host: a', 'Connection: close', ...fields, '', ''].join('\r\n'))
  const [request, response] = (await once(server, 'request')) as [IncomingMessage, ServerResponse]
  response.end()
  server.close()
  return request
}

describe('a header', () => {
  it('is found whatever the case of its name', async () => {
    const request = await requestWith('X-Request-ID: 7', 'if-none-match: "a"')
    assert.equal(getHeader(request, 'x-request-id'), '7')
    assert.equal(getHeader(request, 'if-none-match'), '"a"')
    assert.equal(getHeader(request, 'x-request'), undefined)
  })

  it('that was sent twice is joined by a comma', async () => {
    const request = await requestWith(
      'X-Forwarded-For: 1.1.1.1',
      'x-forwarded-for: 2.2.2.2',
      'Set-Cookie: a',
      'Set-Cookie: b',
    )
    assert.equal(getHeader(request, 'x-forwarded-for'), '1.1.1.1, 2.2.2.2')
    assert.equal(getHeader(request, 'set-cookie'), 'a, b')
  })

  it('that is no list keeps its first value', async () => {
    const request = await requestWith('Authorization: Bearer 1', 'Authorization: Bearer 2')
    assert.equal(getHeader(request, 'authorization'), 'Bearer 1')
  })

  it('is not the name of an object member', async () => {
    assert.equal(getHeader(await requestWith(), 'constructor'), undefined)
  })
})

describe('the id of a request', () => {
  it('is the client’s own when that is short and plain', () => {
    for (const given of ['a', '0af7651916cd43dd8448eb211c80319c', 'trace_1.2-3', 'x'.repeat(64)])
      assert.equal(requestIdFor(given), given)
  })

  it('is a new one for everything else, which stands in no header and no log', () => {
    for (const given of [undefined, '', 'x'.repeat(65), 'a b', 'a\nb', '<script>', 'ä', '$(id)', 'a, b'])
      assert.match(requestIdFor(given), /^[a-z0-9]+-[a-z0-9]+$/)
  })

  it('never comes twice', () => {
    const ids = Array.from({ length: 10_000 }, () => requestIdFor(undefined))
    assert.equal(new Set(ids).size, ids.length)
  })
})

describe('a request target', () => {
  for (const [target, path, query] of [
    ['/', '/', ''],
    ['/a/b?c=d', '/a/b', 'c=d'],
    ['/a?', '/a', ''],
    ['/a?b?c', '/a', 'b?c'],
    ['/../%2e/%41', '/../%2e/%41', ''],
    ['//host/a', '//host/a', ''],
    ['http://host:1/a?b', '/a', 'b'],
    ['HTTPS://host/a', '/a', ''],
    ['http://host?b', '/', 'b'],
    ['http://host', '/', ''],
    ['/a?to=http://x/y', '/a', 'to=http://x/y'],
    ['*', '*', ''],
    ['', '/', ''],
  ] as const)
    it(`«${target}» has the path «${path}» and the query «${query}»`, () =>
      assert.deepEqual(parseRequestTarget(target), { path, query }))

  it('in origin form loses nothing', () => {
    fc.assert(
      fc.property(fc.webPath(), fc.webQueryParameters(), (path, query) =>
        assert.deepEqual(parseRequestTarget(`/${path}?${query}`), { path: `/${path}`, query }),
      ),
    )
  })
})
