/** A contract that is not ours: the existing public deployment's reads, without getAssets, with Multicall3 (spec §1, §2.5, §4.1). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Hex, recheck, type Verdict } from '@touchstone/verdict'
import { encodeFunctionData, toHex } from 'viem'
import foreign from '../../../../contracts/artifacts/ForeignCore.json' with { type: 'json' }
import { publishedAddresses } from '../../../src/domain/published-accounts.ts'
import { transact } from '../../../src/chain/devchain/transact.ts'
import { createRpcClient, type RpcClient } from '../../../src/chain/rpc/client.ts'
import { graphqlOf } from '../../support/graphql/client.ts'
import { commandsOf } from '../../support/processes/cli.ts'
import { useOpened } from '../../support/opened.ts'
import { until } from '../../support/wait.ts'
import { startWorld } from '../../support/world.ts'

const core = '0x00000000000000000000000000000000f0e1d2c3'
const [account = '0x'] = publishedAddresses

describe('a foreign contract', () => {
  const world = useOpened(() =>
    startWorld({ env: { CHAIN_CONTRACT: core, CHAIN_INTERFACE: 'auto' }, rpcUrl: deployForeign }),
  )

  it('is read through Multicall3, many tokens in few calls, and its verdicts recheck', async () => {
    const ask = async (id: number) => (await (await world.get(`/api/asset/${id}`)).json()) as Verdict
    const [minted, bound, stolen] = (await Promise.all([ask(1), ask(2), ask(3)])) as [Verdict, Verdict, Verdict]
    assert.deepEqual([minted.state, bound.state, stolen.state], ['MINTED', 'BOUND', 'FLAGGED'])
    assert.deepEqual([stolen.flagged, stolen.authentic, 'untrusted' in minted], [true, false, false])
    assert.ok((await recheck(stolen, { rpcUrl: world.chainUrl, contract: stolen.chainRef.contract })).ok)
    assert.equal((await world.get('/api/asset/4')).status, 404)
  })

  it('shows a change with the next block, although it came without an event', async () => {
    await call(world.rpc, 'setAsset', [1n, account, 2n, 6, 0, 0])
    const verdict = async () => (await (await world.get('/api/asset/1')).json()) as Verdict
    await until(async () => (await verdict()).state === 'RECYCLED') // the head is cached for at most 1 s
    assert.equal((await verdict()).authentic, false)
  })

  it('shows the reports of the chain also in GraphQL and in exports, at the block that they name', async () => {
    const { ask } = await graphqlOf(world)
    type Product = Pick<Verdict, 'authentic' | 'flagged'> & { readonly verified: boolean; readonly chainRef: ChainRef }
    const productOf = async () => {
      const { product } = await ask<{ product: Product | null }>(
        '{ product(id: "2") { verified authentic flagged chainRef { blockNumber blockHash } } }',
      )
      return product
    }
    await until(async () => (await productOf()) !== null)
    await world.components.database.query('update asset set tapped_at = now() where token_id = 2')
    const before = await productOf()
    assert.deepEqual([before?.verified, before?.authentic, before?.flagged], [true, true, false])

    await call(world.rpc, 'setFlags', [2n, 0x02])
    await until(async () => (await productOf())?.flagged === true)
    const after = await productOf()
    assert.deepEqual([after?.verified, after?.authentic], [false, false])
    const { products } = await ask<{ products: { edges: { node: { id: string; verified: boolean } }[] } }>(
      '{ products(first: 10) { edges { node { id verified } } } }',
    )
    assert.deepEqual(
      products.edges.map(({ node }) => [node.id, node.verified]),
      ['3', '2', '1'].map((id) => [id, false]),
    )
    const block = await world.rpc('eth_getBlockByNumber', [toHex(after?.chainRef.blockNumber ?? 0), false])
    assert.equal((block as { hash: Hex }).hash, after?.chainRef.blockHash)
    const { out } = await commandsOf(world)('export', 'products', '--json')
    const exported = out.split('\n').map((line) => JSON.parse(line) as Record<string, unknown>)
    const second = exported.find(({ id }) => id === '2')
    assert.deepEqual([second?.['flagged'], second?.['verified']], [true, false])
  })

  it('refuses what the index cannot know: filters by reports, their number, and earlier states', async () => {
    const { ask } = await graphqlOf(world)
    const refusals = [
      '{ products(filter: { verified: true }) { totalCount } }',
      '{ products(filter: { or: [{ not: { flagged: true } }, { report: STOLEN }] }) { edges { node { id } } } }',
      '{ productStats(groupBy: FLAG) { edges { node { key count } } } }',
      '{ product(id: "1", block: { number: 3 }) { id } }',
    ]
    for (const query of refusals)
      await assert.rejects(ask(query), /changes reports without an event.*BAD_USER_INPUT/, query)
    const { products } = await ask<{ products: { totalCount: number } }>(
      '{ products(filter: { tagged: true }) { totalCount } }',
    )
    assert.equal(products.totalCount, 1)
  })

  it('is not answered for from the index of another contract', async () => {
    const { database, history, classes, minters } = world.components
    const { ask } = await graphqlOf(world)
    const moveIndexTo = (contract: string) =>
      database.query("update index_cursor set contract = decode($1, 'hex')", [contract.slice(2)])
    await moveIndexTo(account)
    const queries = [
      'product(id: "2") { id }',
      'products { totalCount }',
      'transfers { totalCount }',
      '_meta { hasErrors }',
    ]
    for (const query of queries) await until(async () => ask(`{ ${query} }`).then(() => false, isUnavailable))
    await until(async () => !(await history(2n)).available)
    await assert.rejects(classes.itemsOfClass('09520123456788'), isUnavailable)
    await assert.rejects(minters([2n], []), isUnavailable)
    const exported = await commandsOf(world)('export', 'products')
    assert.equal(exported.exit, 1)
    await moveIndexTo(core)
    await until(async () =>
      ask('{ product(id: "2") { id } }').then(
        () => true,
        () => false,
      ),
    )
  })
})

function isUnavailable(error: unknown): boolean {
  return error instanceof Error && /DATABASE_UNAVAILABLE|database does not answer/.test(error.message)
}

type ChainRef = Readonly<{ blockNumber: number; blockHash: Hex }>

async function deployForeign(url: string): Promise<string> {
  const rpc = createRpcClient({ url, timeoutMs: 60_000 })
  await rpc('anvil_setCode', [core, foreign.deployedBytecode])
  for (const id of [1n, 2n, 3n]) await call(rpc, 'mint', [account, id, `0x${'12'.repeat(32)}`])
  await call(rpc, 'bindTag', [2n, `0x${'34'.repeat(32)}`])
  await call(rpc, 'setAsset', [3n, account, 1n, 5, 0x02, 4])
  return url
}

function call(rpc: RpcClient, functionName: string, args: readonly unknown[]): Promise<void> {
  const data = encodeFunctionData({ abi: foreign.abi, functionName, args })
  return transact(rpc, functionName, { from: account, to: core, data })
}
