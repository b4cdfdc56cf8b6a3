/** The schema against the text of the specification (§2.9, §4.9): its tables are read, not copied. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { isEnumType, isInputObjectType, isObjectType, isScalarType } from 'graphql'
import { createPrepareOperation } from './server/prepare.ts'
import { graphqlSchema } from './schema.ts'

const spec = readFileSync(new URL('../../../SPEC.md', import.meta.url), 'utf8')
const section = (from: string, to: string) => spec.slice(spec.indexOf(from), spec.indexOf(to))
const types = section('### 2.9', '## 3.')
const operations = section('### 4.9', '## 5.')
const schema = graphqlSchema()

/** Field and type, as the specification writes them. */
function fieldsOf(name: string): string[] {
  const type = schema.getType(name)
  assert.ok(isObjectType(type) || isInputObjectType(type), `there is no type ${name}`)
  return Object.values(type.getFields()).map((field) => `${field.name} ${String(field.type)}`)
}

describe('the schema', () => {
  for (const name of ['Product', 'Owner', 'Transfer', 'ProductMetadata'])
    it(`has ${name} with the fields of the specification, in their order`, () => {
      const [, row = ''] = new RegExp(`^\\| ${name} \\| (.*) \\|$`, 'm').exec(types) ?? []
      const wanted = row.split(', ')
      assert.ok(wanted.length >= 3)
      assert.deepEqual(fieldsOf(name).slice(0, wanted.length), wanted)
    })

  it('has the statuses of a transfer', () => {
    const [, row = ''] = /^\| TransferStatus \(enum\) \| (.*) \|$/m.exec(types) ?? []
    const type = schema.getType('TransferStatus')
    assert.ok(isEnumType(type))
    assert.deepEqual(
      type.getValues().map(({ name }) => name),
      row.split(', '),
    )
  })

  it('has connections with edges, pageInfo and totalCount', () => {
    for (const name of ['Product', 'Transfer']) {
      assert.deepEqual(fieldsOf(`${name}Connection`), [`edges [${name}Edge!]!`, 'pageInfo PageInfo!', 'totalCount Int'])
      assert.deepEqual(fieldsOf(`${name}Edge`), [`node ${name}!`, 'cursor String!'])
    }
    for (const field of ['hasNextPage Boolean!', 'endCursor String']) assert.ok(fieldsOf('PageInfo').includes(field))
  })

  it('has the operations of the specification with their arguments', () => {
    const rows = [...operations.matchAll(/^\| (\w+) \| (query|mutation) \| (.*?) \| (.*) \|$/gm)]
    assert.equal(rows.length, 5)
    for (const [, name = '', kind = '', given = ''] of rows) {
      const root = kind === 'query' ? schema.getQueryType() : schema.getMutationType()
      const field = root?.getFields()[name]
      assert.ok(field, `${kind} ${name}`)
      const found = field.args.map((argument) => `${argument.name} ${String(argument.type)}`)
      for (const argument of given.split(', '))
        assert.ok(found.includes(argument), `${name}: ${argument} in ${found.join(', ')}`)
    }
  })

  it('has the inputs and payloads of the specification', () => {
    assert.deepEqual(fieldsOf('MutationError'), ['field String!', 'message String!'])
    for (const payload of ['RegisterProductPayload', 'TransferPayload', 'ProductPayload']) {
      const fields = fieldsOf(payload)
      assert.ok(fields.includes('success Boolean!') && fields.includes('errors [MutationError!]!'), payload)
    }
    assert.ok(['product Product', 'txHash String'].every((field) => fieldsOf('RegisterProductPayload').includes(field)))
    assert.ok(fieldsOf('TransferPayload').includes('transfer Transfer'))
    assert.deepEqual(fieldsOf('RegisterProductInput'), [
      'tagId String!',
      'name String!',
      'brand String',
      'serialNumber String',
      'gtin String',
      'metadata ProductMetadataInput',
      'idempotencyKey String',
    ])
    assert.deepEqual(fieldsOf('TransferInput'), [
      'productId ID!',
      'toAddress String!',
      'message String',
      'signature String',
      'deadline DateTime',
    ])
    assert.deepEqual(fieldsOf('ProductFilter').slice(0, 8), [
      'brand String',
      'verified Boolean',
      'nameContains String',
      'owner String',
      'state LifecycleState',
      'tagId String',
      'createdAfter DateTime',
      'createdBefore DateTime',
    ])
    for (const field of ['and [ProductFilter!]', 'or [ProductFilter!]', 'not ProductFilter'])
      assert.ok(fieldsOf('ProductFilter').includes(field), field)
  })

  it('lets every operation of the specification pass: queries, mutations, subscriptions', () => {
    const prepare = createPrepareOperation({ schema })
    const documents = [
      'query ($id: ID!) { product(id: $id) { id tagId name brand serialNumber verified createdAt currentOwner { address displayName } transfers { id from { address } to { address } timestamp txHash status } metadata { description imageUrl manufactureDate origin customFields } } }',
      'query ($filter: ProductFilter, $first: Int, $after: String) { products(filter: $filter, first: $first, after: $after) { edges { node { id name } cursor } pageInfo { hasNextPage endCursor } totalCount } }',
      'query ($productId: ID, $status: TransferStatus, $first: Int) { transfers(productId: $productId, status: $status, first: $first) { edges { node { id product { id name } status } } totalCount } }',
      'mutation ($input: RegisterProductInput!) { registerProduct(input: $input) { product { id } txHash success errors { field message } } }',
      'mutation ($input: TransferInput!) { initiateTransfer(input: $input) { transfer { id status } success errors { field message } } }',
      'subscription ($productId: ID!) { productTransferred(productId: $productId) { transfer { id from { address } to { address } timestamp status } product { id name currentOwner { address } } } }',
      'subscription { productVerified { product { id tagId name verified } verifiedAt verifiedBy { address } } }',
    ]
    const variables = {
      id: '1',
      productId: '1',
      filter: { brand: 'Acme', verified: true },
      first: 10,
      status: 'PENDING',
    }
    for (const query of documents) {
      const input = query.includes('TransferInput')
        ? { productId: '1', toAddress: '0x1' }
        : { tagId: 'a', name: 'b', metadata: { manufactureDate: '2026-01-01' } }
      const prepared = prepare({ query, variables: { ...variables, input } })
      assert.ok(prepared.ok, prepared.ok ? '' : prepared.errors[0]?.message)
    }
  })

  it('reads an id from text and safe numbers, and from no number whose digits JSON has lost', () => {
    const prepare = createPrepareOperation({ schema })
    const operation = (id: string) => `{ product(id: ${id}) { id } products(filter: { ids: [${id}] }) { totalCount } }`
    const query = `query ($id: ID!) ${operation('$id')}`
    const filtered = 'query ($filter: ProductFilter) { products(filter: $filter) { totalCount } }'
    const mutation = 'mutation ($input: RecycleProductInput!) { recycleProduct(input: $input) { success } }'
    const subscription = 'subscription ($id: ID!) { productTransferred(productId: $id) { product { id } } }'
    const requests = (json: string) =>
      [
        ...[query, filtered, mutation, subscription].map((text) => ({
          query: text,
          variables: JSON.parse(
            `{ "id": ${json}, "filter": { "ids": [${json}] }, "input": { "productId": ${json} } }`,
          ) as Record<string, unknown>,
        })),
        { query: operation(json) },
      ].map((request) => prepare(request))
    for (const right of ['"9007199254740993"', '9007199254740991', '7'])
      for (const prepared of requests(right)) assert.ok(prepared.ok, right)
    for (const wrong of ['9007199254740993', '-9007199254740993', '7.5', 'true'])
      for (const prepared of requests(wrong))
        assert.match(prepared.ok ? '' : (prepared.errors[0]?.message ?? ''), /An id is text/, wrong)
  })

  it('names the specifications of its scalars', () => {
    for (const name of ['DateTime', 'Date', 'JSON']) {
      const type = schema.getType(name)
      assert.ok(isScalarType(type) && type.specifiedByURL?.startsWith('https://'), name)
    }
  })

  it('explains its types, fields of its own and inputs', () => {
    for (const name of ['ProductFilter', 'ProductMetadata', 'HistoryEvent', 'TransferTypedDataInput'])
      assert.ok((schema.getType(name)?.description ?? '').length > 20, name)
    for (const root of [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()])
      for (const field of Object.values(root?.getFields() ?? {})) assert.ok(field.description, field.name)
  })
})
