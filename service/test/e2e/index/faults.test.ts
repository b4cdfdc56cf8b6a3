/** The index while things go wrong (spec §2.5): providers that fail or lie, crashes. */
import { openEmptyPglite } from '../../support/database/pglite.ts'
import assert from 'node:assert/strict'
import { afterEach, before, beforeEach, describe, it } from 'node:test'
import type { IndexStore } from '../../../src/domain/chain-index.ts'
import type { Indexer, IndexStatus } from '../../../src/chain/indexer/indexer.ts'
import { verifyIndex } from '../../../src/chain/indexer/verify.ts'
import { createLog } from '../../../src/lib/log.ts'
import { readMeta } from '../../../src/index/queries/meta.ts'
import { indexStore, rebuildIndex } from '../../../src/index/store.ts'
import { tokenPages } from '../../../src/index/snapshot.ts'
import { hiddenLogs, startFaultRpc } from '../../support/fault-rpc.ts'
import {
  alice,
  assertIndexIsChain,
  bob,
  hash,
  indexerOver,
  operator,
  startIndexChain,
} from '../../support/index/world.ts'
import { quantity } from '../../../src/chain/rpc/answer.ts'
import { sourceOver } from '../../support/rpc-anvil.ts'
import { useOpened } from '../../support/opened.ts'
import { until } from '../../support/wait.ts'

type RangeFilter = { fromBlock?: string; toBlock?: string }
type WireLog = Record<string, unknown>

describe('an index that is built while the provider fails', () => {
  const database = useOpened(openEmptyPglite)
  const chain = useOpened(startIndexChain)
  const proxy = useOpened(() => startFaultRpc({ target: chain.url }))
  before(async () => {
    for (let block = 0; block < 150; block += 1)
      await chain.send(operator.address, block % 3 ? 'mint' : 'mintBatch', [
        alice.address,
        block % 3 ? hash(block) : [hash(1), hash(2)],
      ])
    await chain.send(alice.address, 'initiateTransfer', [7n, bob.address, 2n ** 40n, hash(0)])
    await chain.send(bob.address, 'acceptTransfer', [7n])
    await chain.send(bob.address, 'initiateTransfer', [7n, alice.address, 2n ** 40n, hash(3)])
    await chain.send(bob.address, 'cancelTransfer', [7n])
    await chain.mine(3)
  })
  beforeEach(() => rebuildIndex(database))
  afterEach(async () => {
    proxy.set('none')
    await chain.endIndexers()
  })

  /** Gives up on a provider that hangs, as late as a busy machine needs for an answer. */
  const hasty = () => chain.source({ attemptTimeoutMs: 2_000, readTimeoutMs: 4_000 }, proxy.url)

  const over = (options = {}) =>
    indexerOver(chain, database, {
      source: chain.source({}, proxy.url),
      rangeLogs: 60,
      ...options,
    })

  const verifying = () =>
    ({ contract: chain.contract, interface: 'registry', pages: tokenPages(database), startBlock: 0n }) as const

  /** Runs until the head is reached, however often it fails on the way. */
  async function arrives(options = {}): Promise<void> {
    const indexer = over(options)
    indexer.start()
    assert.ok(await indexer.until(await chain.head(), 600_000))
    await indexer.close()
    await assertIndexIsChain(chain, database)
  }

  it('asks for fewer blocks where a provider serves no wide ranges', async () => {
    const limit = 7n
    const widths: bigint[] = []
    proxy.set({
      name: 'too-wide',
      methods: ['eth_getLogs'],
      when(_method, params) {
        const { fromBlock, toBlock } = params[0] as RangeFilter
        if (fromBlock === undefined || toBlock === undefined) return false
        widths.push(BigInt(toBlock) - BigInt(fromBlock) + 1n)
        return (widths.at(-1) ?? 0n) > limit
      },
    })
    await arrives()
    // A half of 64, 32, 16 and 8 blocks each: no range is tried again that was too wide.
    assert.deepEqual([widths.filter((width) => width > limit).length, widths.length > 20], [4, true])
  })

  for (const name of ['rpc-error', 'status500', 'vague-limit'] as const)
    it(`goes on with fewer blocks at once where wide ranges get ${name}`, async () => {
      proxy.set({
        name,
        methods: ['eth_getLogs'],
        when(_method, params) {
          const { fromBlock = '0x0', toBlock = '0x0' } = params[0] as RangeFilter
          return BigInt(toBlock) - BigInt(fromBlock) > 9n
        },
      })
      const lines: string[] = []
      await arrives({ log: createLog((line) => lines.push(line)) })
      assert.ok(proxy.struck() > 0)
      assert.deepEqual(
        lines.filter((line) => line.includes('index not brought up to date')),
        [],
      )
    })

  for (const name of ['status429', 'rate-limit'] as const)
    it(`arrives without a failed step where every second request gets ${name}`, async () => {
      proxy.set({ name, everyOther: true })
      const lines: string[] = []
      await arrives({ log: createLog((line) => lines.push(line)) })
      assert.ok(proxy.struck() > 0)
      assert.deepEqual(lines, [])
    })

  for (const name of ['rpc-error', 'hang', 'truncated', 'status429'] as const) {
    it(`goes on after a while of ${name}`, async () => {
      let asked = 0
      proxy.set({ name, methods: ['eth_getLogs'], when: () => (asked += 1) > 2 && asked < 6 })
      await arrives({ source: hasty() })
      assert.ok(asked > 6)
    })
  }

  for (const [how, name] of [
    ['HTTP 429', 'status429'],
    ['−32005', 'rate-limit'],
  ] as const)
    it(`goes on block by block where every tenth request for logs gets ${how}`, async () => {
      let asked = 0
      proxy.set({ name, methods: ['eth_getLogs'], when: () => (asked += 1) % 10 === 0 })
      const source = chain.source({}, proxy.url)
      await arrives({ source: { ...source, finalized: async () => null } })
      await source.close()
    })

  it('keeps the blocks before one whose logs cannot be read, and logs once that it goes on', async () => {
    const { hash: blockHash } = (await chain.rpc('eth_getBlockByNumber', ['0x32', false])) as { hash: string }
    proxy.set({
      name: 'rpc-error',
      when: (_, [filter]) => (filter as WireLog | undefined)?.['blockHash'] === blockHash,
    })
    const source = chain.source({}, proxy.url)
    const lines: string[] = []
    const log = createLog((line) => lines.push(line))
    const indexer = over({ source: { ...source, finalized: async () => null }, log })
    indexer.start()
    let status: IndexStatus | undefined
    await until(async () => {
      status = await indexer.status()
      return status.indexed?.number === 49n && status.fault !== null
    })
    const head = await chain.head()
    assert.deepEqual([status?.role, status?.head, status?.lagBlocks], ['leader', head, head - 49n])
    proxy.set('none')
    assert.ok(await indexer.until(await chain.head(), 600_000))
    const timesOf = (event: string) => lines.filter((line) => line.includes(event)).length
    await until(() => timesOf('index follows the chain again') > 0)
    await indexer.close()
    assert.deepEqual([timesOf('index not brought up to date'), timesOf('index follows the chain again')], [1, 1])
    await source.close()
  })

  it('asks for fewer blocks where a provider is too slow for many', async () => {
    proxy.set({
      name: 'hang',
      methods: ['eth_getLogs'],
      when(_method, params) {
        const { fromBlock = '0x0', toBlock = '0x0' } = params[0] as RangeFilter
        return BigInt(toBlock) - BigInt(fromBlock) > 20n
      },
    })
    await arrives({ source: hasty() })
  })

  const lies: Readonly<Record<string, (logs: WireLog[]) => WireLog[]>> = {
    'out of order': (logs) => logs.toReversed(),
    doubled: (logs) => [...logs, ...logs.slice(-1)],
    'taken back': (logs) => [...logs.slice(0, -1), { ...logs.at(-1), removed: true }],
    'of another branch': (logs) => {
      const last = logs.at(-1)?.['blockNumber']
      return logs.map((log) => (log['blockNumber'] === last ? { ...log, blockHash: hash(5) } : log))
    },
    'of another event': (logs) => logs.map((log) => ({ ...log, topics: [hash(3)] })),
    'of another shape': (logs) => logs.map((log) => ({ ...log, data: '0x12' })),
  }
  for (const [how, lie] of Object.entries(lies)) {
    it(`takes no logs that are ${how}`, async () => {
      proxy.set({
        methods: ['eth_getLogs'],
        rewrite: (method, _params, result) =>
          method === 'eth_getLogs' && (result as WireLog[]).length > 1 ? lie(result as WireLog[]) : result,
      })
      const indexer = over()
      indexer.start()
      await until(async () => /chain could not be read/i.test((await indexer.status()).fault ?? ''))
      assert.deepEqual(await database.query('select count(*)::int as n from history'), [{ n: 0 }])
      proxy.set('none')
      assert.ok(await indexer.until(await chain.head(), 600_000))
      await assertIndexIsChain(chain, database)
    })
  }

  for (const [how, finalized] of [
    ['block', null],
    ['range', undefined],
  ] as const)
    it(`takes no empty list of logs for a ${how} whose header has the bits of the contract`, async () => {
      const last = (await chain.head()) - 3n
      const { hash: lastHash } = (await chain.rpc('eth_getBlockByNumber', [quantity(last), false])) as { hash: string }
      const isLast = ({ blockHash, toBlock = '0x0' }: WireLog & RangeFilter) =>
        blockHash === lastHash || BigInt(toBlock) === last
      proxy.set({ name: 'hide-logs', when: (_, [filter]) => isLast((filter ?? {}) as WireLog) })
      const source = chain.source({}, proxy.url)
      const known = finalized === null ? null : last
      const indexer = over({ source: { ...source, finalized: async () => known } })
      indexer.start()
      await until(async () => /chain could not be read/i.test((await indexer.status()).fault ?? ''))
      assert.ok(Number((await indexer.status()).indexed?.number) < last)
      proxy.set('none')
      assert.ok(await indexer.until(await chain.head(), 600_000))
      await indexer.close()
      await source.close()
      await assertIndexIsChain(chain, database)
    })

  for (const [how, blockTimestamp] of [
    ['no time', undefined],
    ['the time zero', '0x0'],
    ['a time of another block', '0x1'],
  ] as const)
    it(`reads the times of blocks where a provider writes ${how} beside the logs`, async () => {
      proxy.set({
        methods: ['eth_getLogs'],
        rewrite: (method, _params, result) =>
          method === 'eth_getLogs' ? (result as WireLog[]).map((log) => ({ ...log, blockTimestamp })) : result,
      })
      await arrives()
      const wrong = 'created_at > now() or created_at < to_timestamp(1e9)'
      assert.deepEqual(await database.query(`select 1 from asset where ${wrong}`), [])
    })

  it('takes no times of one lying provider where a quorum is wanted', async () => {
    proxy.set({
      methods: ['eth_getLogs'],
      rewrite: (method, _params, result) =>
        method === 'eth_getLogs' ? (result as WireLog[]).map((log) => ({ ...log, blockTimestamp: '0x1' })) : result,
    })
    const { source } = sourceOver([proxy.url, chain.url], { contract: chain.contract, trust: 'quorum', quorum: 2 })
    await arrives({ source })
    await source.close()
    assert.deepEqual(await database.query('select 1 from history where ts < to_timestamp(1e9)'), [])
  })

  it('does without the finalized block, and without batches', async () => {
    proxy.set({
      name: 'batch-refused',
      rewrite: (_method, params, result) => (params[0] === 'finalized' ? null : result),
    })
    await arrives()
  })

  for (const name of ['status500', 'rpc-error'] as const)
    it(`does without the finalized block where each request for it gets ${name}`, async () => {
      proxy.set({ name, when: (_method, [tag]) => tag === 'finalized' })
      await arrives()
      assert.ok(proxy.struck() > 0)
    })

  it('goes on from the last whole step after a crash', async () => {
    const crashing = (after: number): IndexStore => {
      const store = indexStore(database)
      let steps = 0
      return {
        ...store,
        apply: (step) => ((steps += 1) > after ? Promise.reject(new Error('crash')) : store.apply(step)),
      }
    }
    for (const steps of [0, 1, 2]) {
      // The provider is well, and a busy machine must not be taken for a fault of it.
      const indexer = over({ store: crashing(steps), source: chain.source() })
      await assert.rejects(indexer.catchUp(), /crash/)
    }
    const [found] = await database.query<{ n: number }>('select count(*)::int as n from history')
    assert.ok(found !== undefined && found.n > 0)
    await arrives()
  })

  it('reports its progress to a command', async () => {
    const seen: [bigint, bigint][] = []
    const indexer = over({ source: chain.source() })
    await indexer.catchUp((indexed, head) => seen.push([indexed, head]))
    assert.ok(seen.length > 3)
    assert.deepEqual(seen.at(-1), [await chain.head(), await chain.head()])
  })

  it('stops where the command is interrupted, and goes on from there', async () => {
    const interrupted = new AbortController()
    const indexer = over({ source: chain.source() })
    const first = await indexer.catchUp(() => interrupted.abort(), interrupted.signal)
    assert.ok(first.led && first.indexed < (await chain.head()))
    assert.equal((await indexer.status()).indexed?.number, first.indexed)
    await arrives()
  })

  it('finds rows that are not as on the chain, and shows no address', async () => {
    await arrives()
    const address = `0x${'ab'.repeat(20)}`
    await database.query(`update asset set owner = decode($1, 'hex'), state = 4 where token_id = 3`, [address.slice(2)])
    await database.query('update asset set tag_hash = metadata_hash, metadata_hash = null where token_id = 5')
    const source = chain.source()
    const options = { ...verifying(), source }
    const found = await verifyIndex(options)
    assert.deepEqual(found?.differences, [
      { tokenId: 3n, fields: ['owner', 'state'] },
      { tokenId: 5n, fields: ['metadataHash', 'tagHash'] },
    ])
    assert.equal(found?.compared, 200)
    const some = await verifyIndex({ ...options, sample: 20 })
    assert.ok(some !== null && some.compared > 5 && some.compared <= 20)
    assert.deepEqual((await verifyIndex({ ...options, interface: 'foreign' }))?.differences, [
      { tokenId: 3n, fields: ['owner', 'state'] },
      { tokenId: 5n, fields: ['metadataHash', 'tagHash'] },
    ])
    await source.close()
  })

  it('finds deleted history and settled transfers, and deleted tokens', async () => {
    await arrives()
    await database.query('delete from transfer where settled_tx is not null')
    await database.query('delete from history where token_id = 9 or (token_id = 7 and kind = 8)')
    await database.query('delete from asset where token_id = 11')
    const source = chain.source()
    const found = await verifyIndex({ ...verifying(), source })
    assert.deepEqual(
      found?.differences.toSorted((a, b) => Number(a.tokenId - b.tokenId)),
      [
        { tokenId: 7n, fields: ['transfers', 'history'] },
        { tokenId: 9n, fields: ['history'] },
        { tokenId: 11n, fields: ['token'] },
      ],
    )
    await source.close()
  })

  it('has no fault once it follows', async () => {
    const { promise: follows, resolve } = Promise.withResolvers<null>()
    let asked = 0
    const indexer = over({ lock: async () => ((asked += 1) === 1 ? Promise.reject(new Error('no lock')) : follows) })
    indexer.start()
    await until(async () => (await indexer.status()).fault === 'no lock')
    resolve(null)
    await until(async () => (await indexer.status()).fault === null)
  })

  /** Compares all tokens again and again, so that a test need not wait for a minute. */
  const checked = () => over({ check: { ...verifying(), everyMs: 20, sample: 2_000 } })

  it('says that it differs while a provider hides all logs, and is right once it shows them', async () => {
    proxy.set(hiddenLogs)
    const indexer = checked()
    indexer.start()
    await until(async () => /differs from the chain/.test((await indexer.status()).fault ?? ''))
    const follower = over()
    await until(async () => /differs from the chain/.test((await follower.status()).fault ?? ''))
    proxy.set('none')
    await isRepaired(indexer)
    const { role, differences, fault } = await follower.status()
    assert.deepEqual([role, differences, fault], ['follower', 0, null])
    assert.ok((await readMeta(database)).comparedAt)
    await rebuildIndex(database)
    assert.equal((await follower.status()).differences, null)
    assert.equal((await readMeta(database)).comparedAt, null)
  })

  it('loses nothing where a provider hides the logs of what is stored already', async () => {
    await arrives()
    await database.query('delete from history where token_id = 9 and kind = 3')
    const before = await database.query('select * from history order by block_number, log_index')
    proxy.set(hiddenLogs)
    const asked = proxy.count('eth_getLogs') + 3
    const indexer = checked()
    indexer.start()
    await until(async () => /differs from the chain/.test((await indexer.status()).fault ?? ''))
    await until(() => proxy.count('eth_getLogs') > asked)
    assert.deepEqual(await database.query('select * from history order by block_number, log_index'), before)
    proxy.set('none')
    await isRepaired(indexer)
  })

  it('takes out an event that the chain never had', async () => {
    await arrives()
    await database.query(`insert into history (block_number, log_index, token_id, kind, from_addr, to_addr, block_hash, tx_hash, ts)
      select block_number, 99, token_id, 9, to_addr, decode(repeat('ab', 20), 'hex'), block_hash, tx_hash, ts
      from history where token_id = 9 and kind = 9`)
    await database.query(`update asset set owner = decode(repeat('ab', 20), 'hex') where token_id = 9`)
    const indexer = checked()
    indexer.start()
    await isRepaired(indexer)
  })

  it('repairs rows that were changed or deleted', async () => {
    await arrives()
    await database.query('delete from transfer where settled_tx is not null')
    await database.query('delete from history where token_id = 9')
    await database.query('delete from asset where token_id = 11')
    await database.query('update asset set state = 4 where token_id = 3')
    const indexer = checked()
    indexer.start()
    await isRepaired(indexer)
  })

  async function isRepaired(indexer: Indexer): Promise<void> {
    await until(async () => {
      const { differences, repairs, indexed } = await indexer.status()
      return differences === 0 && Number(repairs) > 0 && indexed?.number === (await chain.head())
    })
    await indexer.close()
    await assertIndexIsChain(chain, database)
  }
})
