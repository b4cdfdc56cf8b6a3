import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { hasKeys, isObject, isSameJson, parseUniqueJson } from './json.ts'

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

describe('a JSON text', () => {
  it('is rejected where readers disagree about it: an object names a member twice', () => {
    const twice = [
      '{"flagged":false,"flagged":true}',
      '{"a":{"b":[{"c":1,"d":2,"c":1}]}}',
      '{"a":1, "\\u0061" :1}',
      '{"__proto__":1,"__proto__":1}',
      '{"":1,"":2}',
    ]
    for (const text of [...twice, '{', '']) assert.equal(parseUniqueJson(text), undefined, text.slice(0, 40))
    const once = ['{"a":{"a":1},"b":"{\\"a\\":1,\\"a\\":1}"}', '{"a\\"":1,"a":"a:\\\\"}', '["a","a"]', 'null', '" : "']
    for (const text of once) assert.deepEqual(parseUniqueJson(text), JSON.parse(text))
    fc.assert(fc.property(fc.json(), (text) => assert.deepEqual(parseUniqueJson(text), JSON.parse(text))))
  })

  it('is rejected where it is nested over 100 deep', () => {
    const nested = (depth: number) => `${'[{"[":'.repeat(depth / 2)}1${'}]'.repeat(depth / 2)}`
    assert.equal(parseUniqueJson(nested(102)), undefined)
    assert.equal(parseUniqueJson('['.repeat(100_000) + ']'.repeat(100_000)), undefined)
    assert.deepEqual(parseUniqueJson(nested(100)), JSON.parse(nested(100)))
    assert.equal(parseUniqueJson('['.repeat(101) + ']'.repeat(101)), undefined)
  })

  it('may be as wide as it likes, with any brackets in its texts', () => {
    const [list, object, brackets] = [Array(101).fill([]), Array(101).fill({}), '[{'.repeat(101)]
    for (const value of [
      list,
      object,
      [brackets],
      ['', brackets],
      [`a\nb${brackets}`],
      [`\n\n${brackets}`],
      [`"${brackets}`],
    ])
      assert.deepEqual(parseUniqueJson(JSON.stringify(value)), value)
  })
})
