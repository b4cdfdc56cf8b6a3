import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { getOperationAST, parse } from 'graphql'
import { createPrepareOperation, isListing } from './prepare.ts'
import { graphqlSchema } from '../schema.ts'

describe('documents that were valid', () => {
  const prepare = createPrepareOperation({ schema: graphqlSchema() })
  const documentOf = (name: string, padding: number) => {
    const prepared = prepare({ query: `query ${name} { __typename } #${'x'.repeat(padding)}` })
    assert.ok(prepared.ok)
    return prepared.args.document
  }
  const names = Array.from({ length: 400 }, (_, n) => `q${n}`)

  it('are kept, hundreds of small ones or some of the largest: their trees take a hundred times their text', () => {
    const small = names.map((name) => documentOf(name, 100))
    assert.ok(names.every((name, n) => documentOf(name, 100) === small[n]))
    const large = names.slice(0, 40).map((name) => documentOf(name, 8_000))
    assert.equal(documentOf('q39', 8_000), large[39])
    assert.notEqual(documentOf('q0', 8_000), large[0])
  })
})

describe('an operation that only lists', () => {
  const cases: readonly (readonly [string, boolean])[] = [
    ['{ products { totalCount } }', true],
    ['{ a: transfers { totalCount } __typename ... on Query { products { totalCount } } }', true],
    ['query { ...lists } fragment lists on Query { products { totalCount } }', true],
    ['{ product(id: "1") { id } }', false],
    ['{ products { totalCount } product(id: "1") { id } }', false],
    ['{ products { totalCount } _meta { hasErrors } }', false],
    ['query { ...one } fragment one on Query { transfer(id: "1-1") { id } }', false],
    ['query { ... { transferTypedData(input: {}) { success } } }', false],
    ['mutation { registerProduct(input: {}) { success } }', false],
    ['subscription { productVerified { verifiedAt } }', false],
  ]
  for (const [text, expected] of cases)
    it(`${expected ? 'is' : 'is not'} ${text}`, () => {
      const document = parse(text)
      const operation = getOperationAST(document)
      assert.ok(operation)
      assert.equal(isListing(document, operation), expected)
    })
})
