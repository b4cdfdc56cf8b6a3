/**
 * The index as processes of a fleet keep it, on one PostgreSQL. They are killed in the middle, two at once, a reorganised chain (spec
 * §4.9).
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { testFolder } from '../../support/folder.ts'
import { touchstone, type Running } from '../../support/processes/cli.ts'
import { envOf } from '../../support/processes/env.ts'
import { openOwnDatabase, noPostgres } from '../../support/database/databases.ts'
import { useOpened } from '../../support/opened.ts'
import { until } from '../../support/wait.ts'
import { startFaultRpc } from '../../support/fault-rpc.ts'
import { assertIndexIsChain, hash, operator, startIndexChain } from '../../support/index/world.ts'

describe('the index of several processes', { skip: noPostgres }, () => {
  const folder = testFolder()
  const running: Running[] = []
  after(() => {
    for (const { child } of running) child.kill('SIGKILL')
    return Promise.all(running.map(({ ended }) => ended))
  })
  const database = useOpened(() => openOwnDatabase('migrated'))
  const chain = useOpened(startIndexChain)
  const rpc = useOpened(() => startFaultRpc({ target: chain.url }))
  before(() => mint(12))

  /** Batches of 20 tokens, each in a block of its own with empty ones before it. The last 64 blocks are written in one step. */
  async function mint(batches: number): Promise<void> {
    for (let batch = 0; batch < batches; batch += 1) {
      await chain.mine(19)
      assert.ok(await chain.send(operator.address, 'mintBatch', [operator.address, Array(20).fill(hash(0))]))
    }
  }

  const env = (name: string) => ({
    ...envOf({ dataDir: join(folder, name), database, chain: { ...chain, url: rpc.url } }),
    INDEX_POLL_MS: '25',
    METRICS_PORT: '0',
  })

  function startIndexer(name: string): Running {
    const process = touchstone(['serve', '--only', 'indexer'], env(name))
    running.push(process)
    return process
  }

  async function indexedTo(): Promise<bigint> {
    const [row] = await database.query<{ number: bigint }>('select number from index_cursor')
    return row?.number ?? -1n
  }

  async function agrees(): Promise<void> {
    await until(async () => (await indexedTo()) === (await chain.head()))
    await assertIndexIsChain(chain, database)
  }

  it('goes on where it was after a SIGKILL in the middle of old blocks', async () => {
    for (const last of [60n, 120n]) {
      // The provider has no logs of later blocks yet.
      const isLater = (_method: string, [filter]: readonly unknown[]) =>
        BigInt((filter as { toBlock?: string }).toBlock ?? 0) > last
      rpc.set({ name: 'too-wide', methods: ['eth_getLogs'], when: isLater })
      const before = await indexedTo()
      const indexer = startIndexer('a')
      await until(async () => (await indexedTo()) > before)
      indexer.child.kill('SIGKILL')
      await indexer.ended
      assert.ok((await indexedTo()) <= last, 'the kill came before the head')
    }
    rpc.set('none')
    startIndexer('a')
    await agrees()
    const { exit, out, err } = await touchstone(['index', 'verify'], env('cli')).ended
    assert.equal(exit, 0, out + err)
    assert.match(out, /^240 of 240 assets compared at block \d+: all agree/)
  })

  it('has one leader of two; the other takes over after its SIGKILL', async () => {
    const second = startIndexer('b')
    const [first] = running.filter(({ child }) => child.exitCode === null && child.signalCode === null)
    assert.ok(first)
    await until(() => second.said().includes('metrics listen'))
    await mint(2)
    await agrees()
    first.child.kill('SIGKILL')
    await first.ended
    await mint(1)
    await agrees()
  })

  it('follows announcements of the provider that CHAIN_WS_URLS names', async () => {
    const urls = { CHAIN_WS_URLS: chain.url.replace(/^http/, 'ws') }
    const process = touchstone(['serve', '--only', 'indexer'], { ...env('c'), ...urls })
    running.push(process)
    await until(async () => {
      await chain.mine(1)
      return process.said().includes('new blocks are announced')
    })
    process.child.kill('SIGTERM')
    assert.equal((await process.ended).exit, 0)
  })

  it('follows the chain through reorganisations of depth 1, 5 and 50', async () => {
    for (const depth of [1, 5, 50]) {
      await chain.mine(depth)
      await mint(1)
      await agrees()
      // The batch of the last block goes with it.
      await chain.reorg(depth)
      await chain.mine(1)
      await agrees()
    }
  })
})
