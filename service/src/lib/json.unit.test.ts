import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { isObject, parseJson, parseJsonObject } from './json.ts'

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
})
