/** The index as processes of a fleet keep it, on one PostgreSQL: killed in the middle, two at once, a reorganised chain (spec §4.9). */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { touchstone, type Running } from '../../support/processes/cli.ts'
import { openOwnDatabase, testDatabases } from '../../support/database/databases.ts'
import { eventually } from '../../support/wait.ts'
import { startFaultRpc, type FaultRpc } from '../../support/fault-rpc.ts'
import { keys, operator, startWriterWorld, type WriterWorld } from '../../support/index/writer-world.ts'
import { createRpcClient } from '../../../src/chain/rpc/client.ts'
import { migrate } from '../../../src/db/migrate.ts'
import { operationStore } from '../../../src/chain/transactions/operations.ts'

const skip = testDatabases()[1]?.skip ?? false
const noMetadata = `0x${'0'.repeat(64)}` as const

describe('the index of several processes', { skip }, () => {
  let chain: WriterWorld
  let database: Awaited<ReturnType<typeof openOwnDatabase>>
  let folder: string
  let minted = 0
  const running: Running[] = []
  let rpc: FaultRpc
  before(async () => {
    chain = await startWriterWorld()
    rpc = await startFaultRpc({ target: chain.url })
    database = await openOwnDatabase()
    await migrate(database)
    folder = await mkdtemp(join(tmpdir(), 'touchstone-index-'))
    await mint(30)
  })
  after(async () => {
    for (const { child } of running) child.kill('SIGKILL')
    await Promise.all(running.map(({ ended }) => ended))
    await database.close()
    await rpc.close()
    await chain.close()
    await rm(folder, { recursive: true, force: true })
  })

  /** Batches of 200 tokens, each in a block of its own with empty ones after it: the last 64 blocks are written in one step. */
  async function mint(batches: number): Promise<void> {
    const writer = chain.writerOver(operationStore(database), { keys })
    for (let batch = 0; batch < batches; batch += 1) {
      const result = await writer.write(
        { kind: 'mintBatch', to: operator.address, metadataHashes: Array.from({ length: 200 }, () => noMetadata) },
        { idempotencyKey: `batch-${(minted += 1)}` },
      )
      assert.ok(
        result.ok,
        JSON.stringify(result, (_key, value: unknown) => String(value)),
      )
      await chain.mine(9)
    }
    await writer.close()
  }

  const env = (name: string) => ({
    DATA_DIR: join(folder, name),
    DATABASE_URL: database.url,
    CHAIN_RPC_URLS: rpc.url,
    CHAIN_CONTRACT: chain.contract,
    CHAIN_INTERFACE: 'registry',
    CHAIN_MAX_HEAD_AGE_SECONDS: '0',
    INDEX_POLL_MS: '25',
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
  const slowRpc = (method: string, params: readonly unknown[]) =>
    createRpcClient({ url: chain.url, timeoutMs: 60_000 })(method, params)
  const head = async () => BigInt((await chain.rpc('eth_blockNumber')) as string)
  const atTheHead = () => eventually(async () => (await indexedTo()) === (await head()))

  async function agrees(): Promise<void> {
    assert.ok(await atTheHead(), `the index is at ${await indexedTo()}, the head at ${await head()}`)
    const { exit, out, err } = await touchstone(['index', 'verify'], env('cli')).ended
    assert.equal(exit, 0, out + err)
    assert.match(out, new RegExp(`^${minted * 200} of ${minted * 200} assets compared at block \\d+: all agree`))
  }

  it('goes on where it was after a SIGKILL in the middle of old blocks', async () => {
    let halfway = 0
    rpc.set({ methods: ['eth_getLogs'], delayMs: 400 })
    for (let kills = 0; kills < 3; kills += 1) {
      if (kills > 0) await mint(8)
      const before = await indexedTo()
      const indexer = startIndexer('a')
      assert.ok(await eventually(async () => (await indexedTo()) > before))
      indexer.child.kill('SIGKILL')
      await indexer.ended
      if ((await indexedTo()) < (await head())) halfway += 1
    }
    assert.ok(halfway > 0, 'no kill came before the head')
    rpc.set('none')
    startIndexer('a')
    await agrees()
  })

  it('has one leader of two; the other takes over after its SIGKILL', async () => {
    const second = startIndexer('b')
    const [first] = running.filter(({ child }) => child.exitCode === null && child.signalCode === null)
    assert.ok(first)
    await eventually(() => second.said().includes('leader') || second.said().length > 0)
    await mint(2)
    await agrees()
    first.child.kill('SIGKILL')
    await first.ended
    await mint(1)
    await agrees()
  })

  it('follows the chain through reorganisations of depth 1, 5 and 50', async () => {
    for (const depth of [1, 5, 50]) {
      await chain.mine(depth)
      await mint(1)
      assert.ok(await atTheHead())
      // The batch of the last block goes with it.
      await slowRpc('anvil_reorg', [depth, []])
      minted -= depth > 0 ? 1 : 0
      await chain.mine(1)
      await agreesAfterReorg()
    }
  })

  async function agreesAfterReorg(): Promise<void> {
    assert.ok(await atTheHead())
    const { exit, out, err } = await touchstone(['index', 'verify'], env('cli')).ended
    assert.equal(exit, 0, out + err)
    assert.match(out, /all agree with the chain/)
  }
})
