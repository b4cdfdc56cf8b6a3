/** The stock urql client works as it comes, with the key as a header (spec §4.9, §5). */
import { openEmptyPglite } from '../../../test/support/database/pglite.ts'
import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { Client, fetchExchange, gql } from '@urql/core'
import { startGraphql } from '../../../test/support/graphql/host.ts'
import { insertAsset } from '../../../test/support/index/rows.ts'
import { useOpened } from '../../../test/support/opened.ts'

describe('a stock client', () => {
  const database = useOpened(openEmptyPglite)
  before(async () => {
    for (let n = 1; n <= 3; n += 1) await insertAsset(database, { tokenId: n, name: `Watch ${n}`, brand: 'Acme' })
  })
  const graphql = useOpened(() => startGraphql(database))

  const client = (key: string) =>
    new Client({
      url: `${graphql.url}/graphql`,
      exchanges: [fetchExchange],
      preferGetMethod: false,
      fetchOptions: { headers: { Authorization: `Bearer ${key}` } },
    })
  const products = gql`
    query Products($filter: ProductFilter, $first: Int, $after: String) {
      products(filter: $filter, first: $first, after: $after) {
        edges {
          node {
            id
            name
          }
          cursor
        }
        pageInfo {
          hasNextPage
          endCursor
        }
        totalCount
      }
    }
  `

  it('pages through products', async () => {
    const ask = (after: string | null) =>
      client(graphql.key)
        .query(products, { filter: { brand: 'Acme' }, first: 2, after })
        .toPromise()
    const one = await ask(null)
    assert.equal(one.error, undefined)
    assert.deepEqual([one.data.products.edges.length, one.data.products.totalCount], [2, 3])
    const two = await ask(one.data.products.pageInfo.endCursor)
    assert.deepEqual(
      two.data.products.edges.map(({ node }: { node: { name: string } }) => node.name),
      ['Watch 1'],
    )
    assert.equal(two.data.products.pageInfo.hasNextPage, false)
  })

  it('gets the errors of a wrong key and of a wrong query', async () => {
    const refused = await client('wrong').query(products, {}).toPromise()
    assert.equal(refused.error?.graphQLErrors[0]?.extensions['code'], 'UNAUTHENTICATED')
    const wrong = await client(graphql.key).query('{ products { nothing } }', {}).toPromise()
    assert.equal(wrong.error?.graphQLErrors[0]?.extensions['code'], 'BAD_USER_INPUT')
  })
})
