import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { moduleUrl } from './module-url.ts'

describe('the URL of a module', () => {
  it('has the language of the module that asks', () => {
    assert.equal(moduleUrl('./worker', 'file:///a/b/token.ts').href, 'file:///a/b/worker.ts')
    assert.equal(moduleUrl('./worker', 'file:///a/b/token.js').href, 'file:///a/b/worker.js')
  })
})
