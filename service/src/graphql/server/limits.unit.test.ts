/** The limits of operations (spec §8), by literals, variables and fragments alike. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertLinear } from '../../../../verdict/test/_linear.ts'
import {
  getIntrospectionQuery,
  getNamedType,
  getNullableType,
  isInputObjectType,
  isObjectType,
  isRequiredArgument,
} from 'graphql'
import { createLog } from '../../lib/log.ts'
import { createFormatError } from '../errors.ts'
import { createPrepareOperation } from './prepare.ts'
import { graphqlSchema } from '../schema.ts'

const schema = graphqlSchema()
const prepare = createPrepareOperation({ schema })

/** `ok`, or the code and message of the first error. */
function outcome(query: string, variables?: Readonly<Record<string, unknown>> | null, operationName?: string): string {
  const prepared = prepare({ query, variables, operationName })
  if (prepared.ok) return 'ok'
  const [error] = prepared.errors
  const code = error?.extensions['code']
  return `${typeof code === 'string' ? code : 'BAD_USER_INPUT'} ${error?.message}`
}
/** Eight fields deep with `type` as the leaf. */
const deep = (leaf: string) =>
  `{ transfers(first: 1) { edges { node { product { history(first: 1) { edges { node { ${leaf} } } } } } } } }`

describe('the limits of an operation', () => {
  it('2,000 tokens', () => {
    assert.equal(outcome(`{ ${'product { id } '.repeat(30)} }`).startsWith('TOO'), false)
    assert.match(outcome(`{ ${'__typename '.repeat(2_000)} }`), /^TOO_COMPLEX .*2000 tokens/)
    assert.match(outcome(`{ a${'[[[['.repeat(5_000)}`), /^(TOO_COMPLEX|BAD_USER_INPUT)/)
  })

  it('eight fields deep, fragments counted where they are spread', () => {
    assert.equal(outcome(deep('type')), 'ok')
    assert.match(outcome(deep('actor { address }')), /^TOO_COMPLEX .*deeper than 8/)
    assert.match(outcome(deep('... { ... { actor { address } } }')), /^TOO_COMPLEX .*deeper than 8/)
    const fragment = 'fragment F on HistoryEvent { actor { address } }'
    const shallow = `{ product(id: 1) { history(first: 1) { edges { node { ...F } } } } }`
    assert.equal(outcome(`${shallow} ${fragment}`), 'ok')
    assert.match(outcome(`${deep('...F')} ${fragment}`), /^TOO_COMPLEX .*deeper than 8/)
  })

  it('thirty aliases, fragments counted where they are spread', () => {
    const aliases = (n: number) => Array.from({ length: n }, (_, index) => `a${index}: __typename`).join(' ')
    assert.equal(outcome(`{ ${aliases(30)} }`), 'ok')
    assert.match(outcome(`{ ${aliases(31)} }`), /^TOO_COMPLEX .*30 aliases/)
    const fragment = `fragment F on Product { ${Array.from({ length: 10 }, (_, index) => `n${index}: name`).join(' ')} }`
    const products = (n: number) => Array.from({ length: n }, () => 'product(id: 1) { ...F }').join(' ')
    assert.equal(outcome(`{ ${products(3)} } ${fragment}`), 'ok')
    assert.match(outcome(`{ ${products(4)} } ${fragment}`), /^TOO_COMPLEX .*30 aliases/)
  })

  it('cost 1,000: what is asked for, times what is asked of each', () => {
    const page = (first: string, inner: string) => `{ products(first: ${first}) { edges { node { ${inner} } } } }`
    assert.equal(outcome(page('100', 'id name currentOwner { address } metadata { origin }')), 'ok')
    assert.equal(outcome(page('50', 'metadata { origin } transfers { id }')), 'ok')
    assert.match(outcome(page('100', 'transfers { id }')), /^TOO_COMPLEX .*costs more than 1000/)
    assert.match(outcome(page('10', 'history(first: 100) { edges { node { type } } }')), /^TOO_COMPLEX/)
    assert.match(
      outcome(`{ ${page('100', 'id transfers { id } ...F').slice(1, -1)} } fragment F on Product { name }`),
      /^TOO_COMPLEX/,
    )
    assert.match(outcome('{ products(last: 100) { edges { node { transfers { id } } } } }'), /^TOO_COMPLEX/)
  })

  it('cost counts a total once for its list, not once for each item', () => {
    const products = (first: number, inner: string) =>
      `{ products(first: ${first}) { ${inner} edges { node { id } } } }`
    assert.equal(outcome(products(100, 'totalCount pageInfo { hasNextPage }')), 'ok')
    assert.equal(outcome(`${products(100, '...C')} fragment C on ProductConnection { totalCount }`), 'ok')
    assert.equal(outcome('{ transfers(first: 100) { totalCount edges { node { id product { id } } } } }'), 'ok')
    const histories = (first: number) =>
      `{ products(first: ${first}) { edges { node { history(first: 1) { totalCount edges { node { type } } } } } } }`
    assert.equal(outcome(histories(80)), 'ok')
    assert.match(outcome(histories(100)), /^TOO_COMPLEX/, 'one total for each of a hundred lists')
    assert.match(
      outcome(
        '{ products(first: 100) { ...F } } fragment F on ProductConnection { edges { node { transfers { id } } } }',
      ),
      /^TOO_COMPLEX/,
    )
  })

  it('cost of large texts, each time one is selected, because an answer repeats it for every alias', () => {
    const aliases = (n: number, field: string) => Array.from({ length: n }, (_, i) => `a${i}: ${field}`).join(' ')
    const transfers = (inner: string) => `{ transfers(first: 100) { totalCount edges { node { ${inner} } } } }`
    assert.equal(outcome(transfers('id message product { id metadata { description customFields } }')), 'ok')
    assert.match(outcome(transfers(aliases(30, 'message'))), /^TOO_COMPLEX .*it costs 3110/)
    assert.match(outcome(`${transfers('...F')} fragment F on Transfer { ${aliases(9, 'message')} }`), /^TOO_COMPLEX/)
    const products = (first: number, inner: string) => `{ products(first: ${first}) { edges { node { ${inner} } } } }`
    assert.equal(outcome(products(40, 'transfers { message }')), 'ok')
    assert.match(outcome(products(90, 'transfers { message }')), /^TOO_COMPLEX/)
    for (const field of ['description', 'customFields'])
      assert.match(outcome(products(100, `metadata { ${aliases(30, field)} }`)), /^TOO_COMPLEX .*it costs 3200/)
    assert.match(
      outcome(`{ events(first: 100) { edges { node { transfer { ${aliases(9, 'message')} } } } } }`),
      /^TOO_COMPLEX .*it costs 1100/,
    )
  })

  it('cost of each field under an alias, because an answer repeats its text', () => {
    const names = Array.from({ length: 30 }, (_, i) => `a${i}: name`).join(' ')
    assert.match(
      outcome(`{ events(first: 20) { edges { node { product { transfers { product { ${names} } } } } } } }`),
      /^TOO_COMPLEX .*it costs 6440/,
    )
    assert.equal(outcome('{ products(first: 100) { edges { node { id title: name maker: brand } } } }'), 'ok')
    assert.match(
      outcome(`{ products(first: 100) { edges { ...E } } } fragment E on ProductEdge { node { ${names} } }`),
      /^TOO_COMPLEX .*it costs 3100/,
    )
    const page = 'id tagId name brand serialNumber state metadata { description origin imageUrl customFields }'
    assert.equal(outcome(`{ products(first: 100) { totalCount edges { node { ${page} } } } }`), 'ok')
  })

  it('cost of a filter: ten for each condition after the first, and for each condition of a count', () => {
    const cost = (query: string, variables?: Readonly<Record<string, unknown>>): number => {
      const prepared = prepare({ query, variables })
      assert.ok(prepared.ok, query)
      return prepared.cost
    }
    const page = '{ products(first: 1, filter: { brand: "A" }) { edges { node { id } } } }'
    assert.equal(cost(page), 1)
    assert.equal(cost('{ products(first: 1, filter: { brand: "A" }) { totalCount edges { node { id } } } }'), 11)
    const query = 'query ($f: ProductFilter) { products(first: 1, filter: $f) { totalCount edges { node { id } } } }'
    const ids = { ids: ['1', '2', '3'], states: ['MINTED', 'BOUND'] }
    assert.equal(cost(query, { f: ids }), 1 + 10 + 20)
    const nested = { and: [{ not: { nameContains: 'abc' } }, { or: [{ brand: 'A' }, { brand: 'B', tagId: null }] }] }
    assert.equal(cost(query, { f: nested }), 1 + 20 + 30)
    assert.equal(cost(query, { f: {} }), cost(query, { f: null }))
    assert.equal(
      cost('query ($n: String) { products(first: 1, filter: { brand: $n, tagged: true }) { edges { cursor } } }', {
        n: 'A',
      }),
      10,
    )
    const f = { and: Array.from({ length: 19 }, (_, i) => ({ not: { nameContains: `zq${i}x` } })) }
    const counts = Array.from({ length: 30 }, (_, i) => `p${i}: products(first: 0, filter: $f) { totalCount }`).join(
      ' ',
    )
    assert.match(outcome(`query ($f: ProductFilter) { ${counts} }`, { f }), /^TOO_COMPLEX .*it costs 11100/)
    assert.equal(
      cost('{ transfers(first: 1, filter: { party: "0x1", initiatedAfter: "2026-01-01T00:00:00Z" }) { totalCount } }'),
      30,
    )
  })

  it('cost of an earlier block: of all products, of their number, and of one product', () => {
    const past = (n: number, field: string) =>
      `{ ${Array.from({ length: n }, (_, i) => `a${i}: ${field.replace('%', String(i))}`).join(' ')} }`
    assert.equal(outcome(past(4, 'products(first: 1, block: { number: % }) { edges { node { id } } }')), 'ok')
    assert.match(outcome(past(5, 'products(first: 1, block: { number: % }) { edges { node { id } } }')), /^TOO_COMPLEX/)
    assert.match(outcome(past(3, 'products(first: 0, block: { number: % }) { totalCount }')), /^TOO_COMPLEX/)
    assert.equal(outcome('{ products(first: 100, block: { number: 1 }) { totalCount edges { node { id } } } }'), 'ok')
    assert.equal(outcome(past(30, 'product(id: 1, block: { number: % }) { id }')), 'ok')
    const query = `query ($block: BlockInput) ${past(5, 'products(first: 1, block: $block) { edges { node { id } } }')}`
    assert.equal(outcome(query), 'ok')
    assert.match(outcome(query, { block: { number: 7 } }), /^TOO_COMPLEX/)
  })

  it('cost of what fragments select on a node', () => {
    const nodes = (n: number, inner: string) =>
      `{ ${Array.from({ length: n }, (_, i) => `a${i}: node(id: ${i}) { ... on Product { history(first: 50) { edges { node { ${inner} } } } } }`).join(' ')} }`
    assert.equal(outcome(nodes(19, 'type')), 'ok')
    assert.match(outcome(nodes(20, 'type')), /^TOO_COMPLEX/)
  })

  it('cost by variables, their defaults, and fragments', () => {
    const query = `query ($n: Int = 100) { products(first: $n) { edges { ...E } } }
      fragment E on ProductEdge { node { transfers { id } } }`
    assert.equal(outcome(query, { n: 10 }), 'ok')
    assert.match(outcome(query, { n: 100 }), /^TOO_COMPLEX/)
    assert.match(outcome(query, {}), /^TOO_COMPLEX/)
    assert.equal(outcome(query, { n: 10 }), 'ok', 'the kept document is asked anew for its cost')
    assert.equal(outcome(query, { n: null }), 'ok', 'null is the default of twenty')
    assert.match(outcome(query, { n: 'many' }), /^BAD_USER_INPUT/)
  })

  const costOf = (query: string): number => {
    const prepared = prepare({ query })
    assert.ok(prepared.ok, query)
    return prepared.cost
  }

  it('one for a single object that is read by its id or alone', () => {
    const fields = Object.values(schema.getQueryType()?.getFields() ?? {}).filter(
      ({ type, args }) =>
        !getNamedType(type).name.endsWith('Connection') &&
        !args.some((argument) => isInputObjectType(getNullableType(argument.type)) && isRequiredArgument(argument)),
    )
    assert.ok(fields.length >= 5)
    for (const { name, args, type } of fields) {
      const given = args.filter(isRequiredArgument).map((argument) => `${argument.name}: 1`)
      const query = `{ ${name}${given.length === 0 ? '' : `(${given.join()})`} { __typename } }`
      assert.equal(costOf(query), 1, `Query.${name} is free: name ${String(type)} in \`read\` of prepare.ts`)
    }
  })

  it('one for each item, whatever list of the schema has it', () => {
    const objects = Object.values(schema.getTypeMap()).filter(isObjectType)
    const fields = objects.flatMap((parent) => Object.values(parent.getFields()).map((field) => ({ parent, field })))
    const lists = fields.filter(({ field }) => getNamedType(field.type).name.endsWith('Connection'))
    assert.ok(lists.length >= 9)
    for (const { parent, field } of lists) {
      const required = field.args.filter(isRequiredArgument).map(({ name }) => `${name}: BRAND`)
      const list = (first: number) =>
        `${field.name}(${[`first: ${first}`, ...required].join(', ')}) { edges { node { __typename } } }`
      const query = (first: number) =>
        parent.name === 'Query' ? `{ ${list(first)} }` : `{ node(id: 1) { ... on ${parent.name} { ${list(first)} } } }`
      assert.equal(
        costOf(query(100)) - costOf(query(1)),
        99,
        `name the items of ${parent.name}.${field.name} in \`read\` of prepare.ts`,
      )
    }
  })

  it('twenty mutations at once', () => {
    const steps = (n: number) =>
      `mutation { ${Array.from({ length: n }, (_, i) => `a${i}: activateProduct(input: {productId: ${i}}) { success }`).join(' ')} }`
    assert.equal(outcome(steps(19)), 'ok')
    assert.match(outcome(steps(21)), /^TOO_COMPLEX/)
  })

  it('fragments that spread each other many times over, or in a circle, end at once', () => {
    const doubling = Array.from(
      { length: 25 },
      (_, i) =>
        `fragment F${i} on Product { a: transfers { product { ...F${i + 1} } } b: transfers { product { ...F${i + 1} } } }`,
    )
    assert.match(
      outcome(`{ product(id: 1) { ...F0 } } ${doubling.join(' ')} fragment F25 on Product { id }`),
      /^TOO_COMPLEX/,
    )
    const flat = Array.from({ length: 25 }, (_, i) => `fragment F${i} on Product { ...F${i + 1} ...F${i + 1} }`)
    assert.match(
      outcome(`{ product(id: 1) { ...F0 } } ${flat.join(' ')} fragment F25 on Product { id }`),
      /^TOO_COMPLEX/,
    )
    assert.match(
      outcome('{ product(id: 1) { ...A } } fragment A on Product { ...B } fragment B on Product { ...A }'),
      /^BAD_USER_INPUT Cannot spread/,
    )
  })

  it('the same fields again and again, whose comparison grows with the square of their number', () => {
    for (const field of ['__typename', 'product(id: 1) { id name }', '__schema { queryType { name } }'])
      assert.match(outcome(`{ ${`${field} `.repeat(150)} }`), /^TOO_COMPLEX .*same fields/)
    const spread = (count: number) => {
      const names = Array.from({ length: count }, (_, i) => `F${i}`)
      const fragments = names.map((name) => `fragment ${name} on Query { __schema { types { fields { name } } } }`)
      return outcome(`{ ${names.map((name) => `...${name}`).join(' ')} } ${fragments.join(' ')}`)
    }
    assert.match(spread(80), /^TOO_COMPLEX .*lists of the schema/)
    assertLinear(spread, 80)
  })

  it('variables nested beyond reason are refused, not recursed into', () => {
    const deep = JSON.parse(`${'{"not":'.repeat(8_000)}{}${'}'.repeat(8_000)}`) as Record<string, unknown>
    assert.match(
      outcome('query ($f: ProductFilter) { products(filter: $f) { totalCount } }', { f: deep }),
      /^BAD_USER_INPUT .*nested too deeply/,
    )
  })

  it('1,000 objects in variables, because each is compared with every field of its type', () => {
    const query = 'query ($f: ProductFilter) { products(filter: $f) { totalCount } }'
    const parts = (n: number) => ({ f: { or: Array.from({ length: n }, () => ({})) } })
    assert.equal(outcome(query, parts(998)), 'ok')
    assert.match(outcome(query, parts(999)), /^TOO_COMPLEX .*1000 objects/)
    const register = 'mutation ($i: RegisterProductInput!) { registerProduct(input: $i) { success } }'
    const customFields = { numbers: Array.from({ length: 7_000 }, () => 1) }
    assert.equal(outcome(register, { i: { tagId: 'a', name: 'a', metadata: { customFields } } }), 'ok')
  })

  it('few and short errors, although each repeats the variable that it is about', () => {
    const query = 'query ($f: ProductFilter) { products(filter: $f) { totalCount } }'
    const f = Object.fromEntries(Array.from({ length: 6_000 }, (_, at) => [`stat${at}`, 1]))
    const prepared = prepare({ query, variables: { f } })
    assert.ok(!prepared.ok)
    const format = createFormatError(createLog(() => {}))
    const answer = JSON.stringify({ errors: prepared.errors.map((error) => format(error, 'request')) })
    assert.match(answer, /Variable \\"\$f\\" got invalid value \{ stat0: 1/)
    assert.ok(answer.length < 10_000, `${answer.length} characters`)
  })

  it('introspection is free of depth and cost, and can be switched off', () => {
    const query = getIntrospectionQuery({ inputValueDeprecation: true, specifiedByUrl: true, oneOf: true })
    assert.equal(outcome(query), 'ok')
    const closed = createPrepareOperation({ schema, introspection: false })
    assert.equal(closed({ query }).ok, false)
    assert.equal(closed({ query: '{ __typename }' }).ok, true)
  })

  it('introspection that multiplies is refused', () => {
    const lists = 'types { fields { type { fields { type { fields { type { fields { name } } } } } } } }'
    assert.match(outcome(`{ __schema { ${lists} } }`), /^BAD_USER_INPUT .*introspection depth/i)
  })

  it('introspection that asks for the same lists again and again is refused', () => {
    const aliased = (n: number, fields: string) => Array.from({ length: n }, (_, at) => `a${at}: ${fields}`).join(' ')
    const types = aliased(10, '__schema { types { fields { type { fields { name } } } } }')
    assert.match(outcome(`{ ${types} }`), /^TOO_COMPLEX .*20 lists of the schema/)
    const fields = `{ __schema { types { ...F } } } fragment F on __Type { ${aliased(20, 'fields { name }')} }`
    assert.match(outcome(fields), /^TOO_COMPLEX .*20 lists of the schema/)
    assert.equal(outcome(`{ __type(name: "Product") { ${aliased(20, 'fields { name }')} } }`), 'ok')
  })

  it('a document of several operations needs a name', () => {
    const two = 'query A { __typename } query B { __typename }'
    assert.match(outcome(two), /^BAD_USER_INPUT Name the operation/)
    assert.equal(outcome(two, null, 'B'), 'ok')
    assert.match(outcome(two, null, 'C'), /^BAD_USER_INPUT/)
  })
})
