import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { parseRequestTarget } from './request-target.ts'

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
