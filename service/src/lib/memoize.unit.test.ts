import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoize, memoizeLast } from './memoize.ts'

describe('a memoized function', () => {
  it('runs once per object, by identity', () => {
    let runs = 0
    const count = memoize((_input: object) => (runs += 1), { max: 10 })
    const [one, other] = [{}, {}]
    assert.deepEqual([count(one), count(other), count(one)], [1, 2, 1])
  })

  it('compares inputs by their key', () => {
    let runs = 0
    const count = memoize((_bytes: Uint8Array) => (runs += 1), { max: 10, keyOf: (bytes) => bytes.join() })
    assert.equal(count(Uint8Array.of(1, 2)), count(Uint8Array.of(1, 2)))
    assert.equal(runs, 1)
  })

  it('forgets the least recently used result', () => {
    const made: string[] = []
    const note = memoize((text: string) => `${made.push(text)}`, { max: 2 })
    for (const text of ['a', 'b', 'a', 'c', 'a', 'b']) note(text)
    assert.deepEqual(made, ['a', 'b', 'c', 'b'])
  })

  it('keeps texts of so many characters together, and none that is longer alone', () => {
    const made: string[] = []
    const note = memoize((text: string) => `${made.push(text)}`, { max: 10, maxLength: 5 })
    for (const text of ['aa', 'bb', 'aa', 'cc', 'bb', 'dddddd', 'dddddd', '']) note(text)
    assert.deepEqual(made, ['aa', 'bb', 'cc', 'bb', 'dddddd', 'dddddd', ''])
  })

  it('does not keep an exception', () => {
    let runs = 0
    const fragile = memoize(
      (_input: string) => {
        if ((runs += 1) === 1) throw new Error('at first')
        return runs
      },
      { max: 2 },
    )
    assert.throws(() => fragile('a'), /at first/)
    assert.equal(fragile('a'), 2)
  })
})

describe('a function that keeps its last result', () => {
  it('runs again only for another input, undefined included', () => {
    const made: unknown[] = []
    const note = memoizeLast((input: unknown) => made.push(input))
    for (const input of [undefined, undefined, 'a', 'a', undefined]) note(input)
    assert.deepEqual(made, [undefined, 'a', undefined])
  })
})
