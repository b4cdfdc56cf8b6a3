import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { hasKeys, isObject, isSameJson } from './json.ts'

describe('isObject', () => {
  it('is neither null nor a list nor a plain value', () => {
    assert.deepEqual([isObject({}), isObject({ a: 1 })], [true, true])
    for (const value of [null, [], [1], 'x', 1, true, undefined, () => 1]) assert.equal(isObject(value), false)
  })
})

describe('hasKeys', () => {
  it('wants each key, and no other than the optional ones', () => {
    assert.equal(hasKeys({ b: undefined, a: 1 }, ['a', 'b']), true)
    assert.equal(hasKeys({ a: 1, c: 1 }, ['a'], ['c', 'd']), true)
    assert.equal(hasKeys({ a: 1 }, ['a', 'b']), false)
    assert.equal(hasKeys({ a: 1, b: 1 }, ['a']), false)
    assert.equal(hasKeys({ a: 1 }, ['a', 'toString']), false)
    assert.equal(hasKeys({}, []), true)
  })
})

describe('isSameJson', () => {
  const same: unknown[] = [0, '', null, true, [], {}, [1, [2]], { a: [{ b: null }] }]
  it('is the same type, value, length and keys', () => {
    for (const value of same) assert.equal(isSameJson(structuredClone(value), value), true, JSON.stringify(value))
    assert.equal(isSameJson({ b: 2, a: 1 }, { a: 1, b: 2 }), true)
  })

  it('is nothing else', () => {
    for (const [value, expected] of [
      [1, '1'],
      [[1], 1],
      [[], {}],
      [{}, []],
      [null, {}],
      [{}, null],
      [null, []],
      [undefined, []],
      [[1], [1, 2]],
      [[1, 2], [1]],
      [
        [1, 3],
        [1, 2],
      ],
      [
        [3, 2],
        [1, 2],
      ],
      [{ length: 1, 0: 1 }, [1]],
      ['x', ['x']],
      [{ a: 1 }, { a: 2 }],
      [{ a: 1 }, { a: 1, b: 1 }],
      [{ a: 1, b: 1 }, { a: 1 }],
      [
        { a: 1, b: 3 },
        { a: 1, b: 2 },
      ],
      [
        { a: 3, b: 2 },
        { a: 1, b: 2 },
      ],
      [{ a: [1] }, { a: [2] }],
      ['x', {}],
    ])
      assert.equal(isSameJson(value, expected), false, JSON.stringify([value, expected]))
  })
})
