/** Supplier text in GraphQL is cleaned as everywhere (spec §2.3), custom fields and filters included. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseProductMetadata } from './metadata.ts'
import { parseFilter, type ProductFilter } from './filter.ts'

const hostile = 'A\u001b[31mred\u202eevil\u{e0041}\u0000 text'
const clean = 'Aredevil text'

describe('the metadata of a product', () => {
  const of = (value: unknown) => parseProductMetadata(JSON.stringify(value))

  it('loses what hides, reorders or commands', () => {
    const { description, origin } = of({ description: hostile, origin: hostile })
    assert.deepEqual([description, origin], [clean, clean])
    assert.equal(of({ image: 'javascript:alert(1)' }).imageUrl, null)
    assert.equal(of({ image: 'https://x.example/a.png' }).imageUrl, 'https://x.example/a.png')
  })

  it('has custom fields whose keys and values are cleaned, at any depth', () => {
    const { customFields } = of({ customFields: { [hostile]: { list: [hostile, 1, true, null] } } })
    assert.deepEqual(customFields, { [clean]: { list: [clean, 1, true, null] } })
  })

  it('has custom fields of four levels, 16 kB and no prototype', () => {
    assert.deepEqual(of({ customFields: { a: { b: { c: { d: { e: 1 } }, x: [[1]] } } } }).customFields, {
      a: { b: { c: {}, x: [] } },
    })
    assert.equal(
      of({ customFields: Object.fromEntries(Array.from({ length: 9 }, (_, n) => [n, 'é'.repeat(1_000)])) })
        .customFields,
      null,
    )
    const { customFields } = parseProductMetadata('{"customFields":{"__proto__":{"admin":true},"ok":1}}')
    assert.deepEqual(Object.entries(customFields ?? {}), [['ok', 1]])
  })

  it('leaves out what is of another kind', () => {
    const nothing = { description: null, imageUrl: null, manufactureDate: null, origin: null, customFields: null }
    for (const text of [
      '',
      '[]',
      'null',
      '"x"',
      '{"description": 7, "manufactureDate": "soon", "customFields": []}',
      '{',
    ])
      assert.deepEqual(parseProductMetadata(text), nothing, text)
  })

  it('ends for texts nested beyond reason', () => {
    const deep = parseProductMetadata(`${'{"customFields":'.repeat(5_000)}{}${'}'.repeat(5_000)}`)
    assert.ok(JSON.stringify(deep.customFields).length < 100)
  })
})

describe('a filter', () => {
  const nested = (depth: number): ProductFilter => (depth === 1 ? { brand: 'x' } : { not: nested(depth - 1) })
  const wide = (n: number): ProductFilter => ({ or: Array.from({ length: n }, (_, i) => ({ tagId: `t${i}` })) })
  const code = (filter: ProductFilter) => {
    try {
      parseFilter(filter)
      return 'ok'
    } catch (error) {
      return (error as { extensions?: { code?: string } }).extensions?.code
    }
  }

  it('nests four deep', () => {
    assert.equal(code(nested(4)), 'ok')
    assert.equal(code(nested(5)), 'TOO_COMPLEX')
    assert.equal(code({ and: [{ or: [{ and: [{ and: [{}] }] }] }] }), 'TOO_COMPLEX')
  })

  it('has twenty conditions', () => {
    assert.equal(code(wide(20)), 'ok')
    assert.equal(code(wide(21)), 'TOO_COMPLEX')
    assert.equal(code({ ...wide(19), brand: 'x', verified: true }), 'TOO_COMPLEX')
  })
})
