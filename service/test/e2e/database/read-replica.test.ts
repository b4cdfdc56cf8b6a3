/** GraphQL lists from a streaming replica (DATABASE_READ_URL): while it follows. Not when it lags or is away; and nothing but lists. */
import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { graphqlOf } from '../../support/graphql/client.ts'
import { eventually } from '../../support/wait.ts'
import { answerAs, atPort } from '../../support/database/proxy.ts'
import { freePort } from '../../support/free-port.ts'
import { clusterSkip, startClusters } from '../../support/database/postgres-cluster.ts'
import { useOpened } from '../../support/opened.ts'
import { startWorld } from '../../support/world.ts'
import { ConfigError, readConfig } from '../../../src/app/config/config.ts'
import { openDatabase } from '../../../src/db/database.ts'
import { createReadReplica } from '../../../src/db/replica.ts'
import { createLog } from '../../../src/lib/log.ts'

type Named = { readonly id: string; readonly name: string }

describe('a read replica', { skip: clusterSkip }, () => {
  const clusters = useOpened(startClusters)
  const urls = () => ({ DATABASE_URL: clusters.primary.url, DATABASE_READ_URL: clusters.replica.url })
  const world = useOpened(() => startWorld({ env: { ...urls(), METRICS_PORT: '0' } }))
  const graphql = useOpened(() => graphqlOf(world))
  const replica = useOpened(() => openDatabase({ url: clusters.replica.url, poolSize: 1 }))
  before(async () => {
    await mint('First')
    assert.ok(await eventually(isUsed), 'the replica is used')
    assert.ok(await eventually(async () => (await replica.query('select from asset')).length === 1))
  })

  const stats = () => world.components.lists.stats?.()
  const isUsed = () => stats()?.up === true
  const logged = (event: string) => world.lines.filter((line) => line.includes(`"${event}"`)).length
  async function mint(name: string): Promise<bigint> {
    const tokenId = await world.mint({ name })
    assert.ok(await world.components.indexer.until(BigInt((await world.rpc('eth_blockNumber', [])) as string), 600_000))
    return tokenId
  }
  async function listed(): Promise<string[]> {
    const { products } = await graphql.ask<{ products: { totalCount: number; edges: { node: Named }[] } }>(
      '{ products(first: 20, orderBy: { field: CREATED_AT, direction: ASC }) { totalCount edges { node { id name transfers { id } history(first: 1) { totalCount } } } } }',
    )
    assert.equal(products.totalCount, products.edges.length)
    return products.edges.map(({ node }) => node.name)
  }
  const named = async (id: bigint) =>
    (
      await graphql.ask<{ product: Named | null }>('query ($id: ID!) { product(id: $id) { id name } }', {
        id: String(id),
      })
    ).product?.name

  it('answers lists with their relations; a product by its id comes from the first database', async () => {
    await replica.query('select pg_wal_replay_pause()')
    // Neither the index nor an event moves by this, so that the replica does not count as late.
    await world.components.database.query(`update asset set name = 'Renamed' where token_id = 1`)
    const before_ = stats()?.reads.replica ?? 0
    assert.deepEqual(await listed(), ['First'])
    assert.ok((stats()?.reads.replica ?? 0) >= before_ + 3)
    assert.equal(await named(1n), 'Renamed')
    const both = await graphql.ask<{ product: Named; products: { edges: { node: Named }[] } }>(
      '{ product(id: "1") { id name } products { edges { node { id name } } } }',
    )
    assert.equal(both.products.edges[0]?.node.name, 'Renamed', 'one operation, one database')
  })

  it('is left out when it lags more than its bound, and comes back when it has followed', async () => {
    const port = await freePort()
    await using closing = new AsyncDisposableStack()
    closing.use(await answerAs([clusters.replica.url, clusters.primary.url], port))
    const balanced = createReadReplica({
      primary: world.components.database,
      open: (pool) => openDatabase({ url: atPort(clusters.replica.url, port), ...pool }),
      log: createLog(() => {}),
    })
    closing.defer(() => balanced.close())
    await mint('Second')
    balanced.start()
    assert.ok(await eventually(() => !isUsed()))
    assert.equal(balanced.stats().up, false, 'one of the servers behind the address is late')
    assert.deepEqual(await listed(), ['Renamed', 'Second'])
    await replica.query('select pg_wal_replay_resume()')
    assert.ok(await eventually(isUsed))
    const before_ = stats()?.reads.primary
    assert.deepEqual(await listed(), ['Renamed', 'Second'])
    assert.equal(stats()?.reads.primary, before_)
    assert.ok(await eventually(() => balanced.stats().up))
  })

  it('that is down fails no request, and is logged once', async () => {
    const before_ = logged('read replica left out')
    await clusters.replica.stop()
    for (let asked = 0; asked < 5; asked += 1) assert.deepEqual(await listed(), ['Renamed', 'Second'])
    assert.ok(!isUsed())
    await mint('Third')
    assert.deepEqual(await listed(), ['Renamed', 'Second', 'Third'])
    assert.equal(logged('read replica left out'), before_ + 1)
    await clusters.replica.start()
    assert.ok(await eventually(isUsed))
    const port = Number(/"metrics listen","port":(\d+)/.exec(world.lines.join('\n'))?.[1])
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    assert.match(metrics, /^touchstone_read_replica_up 1$/m)
    assert.match(metrics, /^touchstone_list_reads_total\{database="replica"\} [1-9]/m)
    assert.match(metrics, /^touchstone_list_reads_total\{database="primary"\} [1-9]/m)
  })
})

describe('DATABASE_READ_URL', () => {
  it('needs DATABASE_URL, and is shown by no message', () => {
    const url = 'postgres://touchstone:hidden@127.0.0.1/x'
    assert.throws(() => readConfig({ DATABASE_READ_URL: url }), {
      constructor: ConfigError,
      message: /set that as well/,
    })
    assert.throws(
      () => readConfig({ DATABASE_READ_URL: 'mysql://hidden' }),
      /DATABASE_READ_URL must be .*found something else/,
    )
  })
})
