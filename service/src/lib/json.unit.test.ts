import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { isObject, parseJson, parseJsonObject, parseUniqueJson } from './json.ts'

describe('a JSON object', () => {
  it('is neither null nor an array', () => {
    assert.ok(isObject({}) && isObject(Object.create(null)))
    for (const other of [null, [], undefined, 'a', 1, 1n, true, () => {}]) assert.equal(isObject(other), false)
  })
})

describe('a JSON text', () => {
  it('is parsed, and null is a value', () => {
    assert.deepEqual(parseJson('{"a":[1]}'), { a: [1] })
    assert.equal(parseJson('null'), null)
    assert.equal(parseJson('{"a":'), undefined)
    fc.assert(fc.property(fc.json(), (text) => assert.deepEqual(parseJson(text), JSON.parse(text))))
  })

  it('is rejected as an object unless it is one', () => {
    assert.deepEqual(parseJsonObject('{"a":1}'), { a: 1 })
    for (const text of ['[]', 'null', '1', '"{}"', '', '{']) assert.equal(parseJsonObject(text), null)
  })

  it('is rejected where readers disagree about it: an object names a member twice', () => {
    const twice = [
      '{"flagged":false,"flagged":true}',
      '{"a":{"b":[{"c":1,"d":2,"c":1}]}}',
      '{"a":1, "\\u0061" :1}',
      '{"__proto__":1,"__proto__":1}',
      '{"":1,"":2}',
    ]
    for (const text of [...twice, '{', '', '['.repeat(100_000) + ']'.repeat(100_000)])
      assert.equal(parseUniqueJson(text), undefined, text.slice(0, 40))
    const once = ['{"a":{"a":1},"b":"{\\"a\\":1,\\"a\\":1}"}', '{"a\\"":1,"a":"a:\\\\"}', '["a","a"]', 'null', '" : "']
    for (const text of once) assert.deepEqual(parseUniqueJson(text), JSON.parse(text))
    fc.assert(fc.property(fc.json(), (text) => assert.deepEqual(parseUniqueJson(text), JSON.parse(text))))
  })
})
