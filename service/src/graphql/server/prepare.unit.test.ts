import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { getOperationAST, parse } from 'graphql'
import { isListing } from './prepare.ts'

describe('an operation that only lists', () => {
  const cases: readonly (readonly [string, boolean])[] = [
    ['{ products { totalCount } }', true],
    ['{ a: transfers { totalCount } __typename ... on Query { products { totalCount } } }', true],
    ['query { ...lists } fragment lists on Query { products { totalCount } }', true],
    ['{ product(id: "1") { id } }', false],
    ['{ products { totalCount } product(id: "1") { id } }', false],
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
