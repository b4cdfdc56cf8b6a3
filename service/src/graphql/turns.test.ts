/** The reads of one key: few at one time, identical ones once, and one history for several blocks. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { testDatabases } from '../../test/support/database/databases.ts'
import { startGraphql } from '../../test/support/graphql/host.ts'
import { hashOf, insertAsset, insertEvent, setCursor } from '../../test/support/index/rows.ts'
import type { Database, Sql } from '../db/database.ts'

const many = 30
const aliases = (fieldOf: (at: number) => string) =>
  `{ ${Array.from({ length: many }, (_, at) => `a${at}: ${fieldOf(at)}`).join(' ')} }`
const second = (at: number) => `2000-01-01T00:00:${String(at).padStart(2, '0')}Z`

for (const { name, open, skip } of testDatabases())
  describe(`the reads of a key on ${name}`, { skip }, () => {
    let opened: Database
    let graphql: Awaited<ReturnType<typeof startGraphql>>
    let statements: string[] = []
    /** Transactions, and statements besides, that run or wait for a connection. */
    let [running, most] = [0, 0]

    async function counted<T>(work: () => Promise<T>): Promise<T> {
      most = Math.max(most, (running += 1))
      return work().finally(() => (running -= 1))
    }
    const noting =
      (sql: Sql): Sql['query'] =>
      (text, values) => {
        statements.push(text)
        return sql.query(text, values)
      }

    before(async () => {
      opened = await open()
      const query = noting(opened)
      const database: Database = {
        ...opened,
        query: (...given) => (/api_key/.test(given[0]) ? opened.query(...given) : counted(() => query(...given))),
        transaction: (run, options) => counted(() => opened.transaction((sql) => run({ query: noting(sql) }), options)),
      }
      await insertAsset(opened, { tokenId: 1, name: 'Watch' })
      for (let block = 1; block <= 3; block += 1) await insertEvent(opened, { tokenId: 1, block })
      await setCursor(opened, { number: 100, at: '2026-01-06T00:00:00Z' })
      for (let block = 1; block <= many; block += 1)
        await opened.query(`insert into index_block (number, hash) values ($1, decode($2, 'hex'))`, [
          block,
          hashOf(block).slice(2),
        ])
      graphql = await startGraphql(database)
      await graphql.ask('{ __typename }') // the key is read
    })
    after(async () => {
      await graphql.end()
      await opened.close()
    })
    beforeEach(() => {
      statements = []
      most = 0
    })
    const asked = (pattern: RegExp) => statements.filter((text) => pattern.test(text)).length
    async function answers(query: string): Promise<unknown[]> {
      const { data, errors } = await graphql.ask(query)
      assert.deepEqual(errors, [])
      return Object.values(data ?? {})
    }

    it('run four at a time, whatever lists they count', async () => {
      const lists: Record<string, (at: number) => string> = {
        products: (at) => `products(first: 0, filter: { updatedAfter: "${second(at)}" }) { totalCount }`,
        transfers: (at) => `transfers(first: 0, filter: { initiatedAfter: "${second(at)}" }) { totalCount }`,
        stats: (at) => `productStats(groupBy: DAY, first: ${at}) { totalCount edges { cursor } }`,
      }
      for (const [list, fieldOf] of Object.entries(lists)) {
        most = 0
        await answers(aliases(fieldOf))
        assert.ok(most > 0 && most <= 4, `${most} reads of ${list} at one time`)
      }
    })

    it('of taps run four at a time', async () => {
      const { text } = await graphql.newKey(['read', 'taps'])
      await graphql.ask('{ __typename }', {}, text)
      most = 0
      const query = aliases((at) => `taps(first: 0, filter: { timeAfter: "${second(at)}" }) { totalCount }`)
      assert.deepEqual((await graphql.ask(query, {}, text)).errors, [])
      assert.ok(most > 0 && most <= 4, `${most} reads at one time`)
    })

    it('that are identical are done once for an operation', async () => {
      const filter = '{ and: [{ nameContains: "atch" }, { createdAfter: "2000-01-01T00:00:00Z" }] }'
      const totals = await answers(
        aliases(() => `products(first: 0, filter: ${filter}) { totalCount }`).replace('a29', 'b'),
      )
      assert.deepEqual([totals.length, new Set(totals.map((one) => JSON.stringify(one))).size], [many, 1])
      assert.equal(asked(/count\(\*\)/), 1)
    })

    it('at several blocks read the history of their products once', async () => {
      const products = await answers(aliases((at) => `product(id: "1", block: { number: ${at + 1} }) { id }`))
      assert.equal(products.length, many)
      assert.equal(asked(/from history\s+where token_id = any/), 1)
      assert.ok(most <= 4, `${most} reads at one time`)
      statements = []
      await answers(aliases((at) => `transfers(productId: "1", first: 1, block: { number: ${at + 1} }) { totalCount }`))
      assert.equal(asked(/from history\s+where token_id = any/), 1)
    })

    it(
      'of many conditions are refused where the embedded database would compare very many products',
      { skip: name !== 'PGlite' },
      async () => {
        await opened.query('insert into product_total (verified, n) values (false, 300000)')
        const two = '{ or: [{ nameContains: "zq0x" }, { nameContains: "zq1x" }] }'
        const more = '{ nameContains: "atc", updatedAfter: "2000-01-01T00:00:00Z" }'
        for (const list of [
          `products(filter: ${two}) { edges { cursor } }`,
          `products(first: 0, filter: ${more}) { totalCount }`,
        ]) {
          const { errors } = await graphql.ask(`{ ${list} }`)
          assert.equal(errors[0]?.extensions['code'], 'TOO_COMPLEX', list)
        }
        assert.equal(asked(/from asset/), 0)
        await answers('{ products(first: 0, filter: { nameContains: "atc" }) { totalCount } }')
      },
    )
  })
