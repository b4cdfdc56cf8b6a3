import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { before, describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { publishedAddresses } from '../../domain/published-accounts.ts'
import { isChainUnavailable, ServiceError } from '../../lib/errors.ts'
import { useOpened } from '../../../test/support/opened.ts'
import { useProviders } from '../../../test/support/providers.ts'
import { cell, echo, sourceOver, wordOf } from '../../../test/support/rpc-anvil.ts'
import { quantity, nonCanonical, rangeTooWide } from './answer.ts'
import { type Block, mayHoldLogsOf } from './block.ts'

describe('an answer that is well formed and about something else', () => {
  const { anvil, first: proxy, urls } = useProviders(1)
  const source = useOpened(async () => sourceOver(urls(), { ticks: () => 0 }).source)
  let earlier: Block
  let head: Block
  before(async () => {
    await anvil.store(1)
    earlier = await source.head()
    await anvil.store(2)
    head = await source.head()
    await source.proof([], head)
  })

  /** Rejected with the provider's answer to one method, accepted unchanged. */
  async function rejects(
    read: () => Promise<unknown>,
    method: string,
    rewrite: (result: unknown) => unknown,
  ): Promise<void> {
    proxy.set({ rewrite: (asked, _params, result) => (asked === method ? rewrite(result) : result) })
    await assert.rejects(read(), ServiceError)
    proxy.set('none')
    await read()
  }

  it('is rejected for another block than the one asked for', async () => {
    const other = await anvil.rpc('eth_getBlockByHash', [earlier.hash, false])
    await rejects(
      () => source.block(head.hash),
      'eth_getBlockByHash',
      () => other,
    )
    await rejects(
      () => source.blocksAt([head.number]),
      'eth_getBlockByNumber',
      () => other,
    )
  })

  it('is rejected for logs of another block, or outside of the range', async () => {
    const [log] = (await anvil.rpc('eth_getLogs', [{ address: cell, blockHash: earlier.hash }])) as object[]
    const moved = { ...log, blockHash: head.hash }
    for (const logs of [[log], [moved]]) {
      await rejects(
        () => source.logs(head),
        'eth_getLogs',
        () => logs,
      )
    }
    await rejects(
      () => source.logsBetween(head.number, head.number),
      'eth_getLogs',
      () => [log],
    )
    await rejects(
      () => source.logsBetween(0n, earlier.number - 1n),
      'eth_getLogs',
      () => [log],
    )
  })

  it('is rejected for a proof of fewer slots, or without its words', async () => {
    const slots = [wordOf(0), wordOf(1)]
    const changes = [{ storageProof: [] }, { codeHash: '0x' }, { storageHash: null }, { accountProof: ['0xzz'] }]
    for (const change of changes) {
      await rejects(
        () => source.proof(slots, head),
        'eth_getProof',
        (proof) => ({ ...(proof as object), ...change }),
      )
    }
  })
})

describe('an empty list of logs of a block whose header has the bits of the contract', () => {
  const { anvil, first: lagging, urls, sourceOver: over } = useProviders(2)
  type Filter = { address?: string; blockHash?: string; fromBlock?: string }
  const filterOf = (params: readonly unknown[]) => (params[0] ?? {}) as Filter

  /** Answers requests for logs that are meant with an empty list. */
  const lacking = (isMeant: (filter: Filter) => boolean) => ({
    rewrite: (method: string, params: readonly unknown[], result: unknown) =>
      method === 'eth_getLogs' && isMeant(filterOf(params)) ? [] : result,
  })

  async function stored(value: number): Promise<Block> {
    await anvil.store(value)
    return over([anvil.url]).source.head()
  }

  /** A block with logs of one contract only, which set the bits of another one, whose source this returns. */
  async function misleading(providers = urls().slice(0, 1)) {
    await anvil.automine(false)
    const from = publishedAddresses[0] as Hex
    for (const value of [5527, 414, 146])
      await anvil.rpc('eth_sendTransaction', [{ from, to: cell, data: wordOf(value), gas: '0x186a0' }])
    await anvil.mine()
    await anvil.automine(true)
    const { source } = over(providers, { contract: echo })
    const head = await source.head()
    assert.equal(mayHoldLogsOf(echo)(head), true)
    assert.deepEqual(await anvil.rpc('eth_getLogs', [{ address: echo, blockHash: head.hash }]), [])
    return { source, head }
  }

  it('is not accepted where the same provider has the logs by now', async () => {
    const head = await stored(1)
    lagging.set(lacking(({ address }) => address !== undefined))
    const logs = await over(urls().slice(0, 1)).source.logs(head)
    assert.ok(logs !== nonCanonical)
    assert.deepEqual(
      logs.map(({ address, topics }) => [address, ...topics]),
      [[cell, wordOf(1)]],
    )
  })

  it('is a failure of its provider, and another one answers', async () => {
    const head = await stored(2)
    lagging.set(lacking(() => true))
    await assert.rejects(over(urls().slice(0, 1)).source.logs(head), isChainUnavailable)
    const { source } = over(urls())
    const logs = await source.logs(head)
    assert.deepEqual([logs !== nonCanonical && logs.length, source.stats().faults], [1, 0])
  })

  it('is accepted where the logs of the whole block explain the bits, and is not asked for where it has none', async () => {
    const { source, head } = await misleading()
    await source.logs(head)
    const asked = lagging.count('eth_getLogs')
    assert.deepEqual(await source.logs(head), [])
    assert.equal(lagging.count('eth_getLogs'), asked + 2)
    await anvil.mine()
    assert.deepEqual(await source.logs(await source.head()), [])
    assert.equal(lagging.count('eth_getLogs'), asked + 3)
  })

  it('is explained by receipts where a provider gives logs of one address only', async () => {
    const { source, head } = await misleading()
    const isWhole = (method: string, params: readonly unknown[]) =>
      method === 'eth_getLogs' && filterOf(params).address === undefined
    lagging.set({ name: 'rpc-error', when: isWhole })
    assert.deepEqual(await source.logs(head), [])
    lagging.set({
      name: 'rpc-error',
      when: (method, params) => isWhole(method, params) || method === 'eth_getBlockReceipts',
    })
    await assert.rejects(source.logs(head), isChainUnavailable)
  })

  it('is asked for again and accepted where anyone has made the block too large to explain', async () => {
    const { source, head } = await misleading()
    const isWhole = (method: string, params: readonly unknown[]) =>
      method === 'eth_getBlockReceipts' || (method === 'eth_getLogs' && filterOf(params).address === undefined)
    const answer = async (large: (result: unknown) => unknown) => {
      const asked = lagging.count('eth_getLogs')
      lagging.set({ rewrite: (method, params, result) => (isWhole(method, params) ? large(result) : result) })
      assert.deepEqual(await source.logs(head), [])
      assert.ok(lagging.count('eth_getLogs') >= asked + 3)
    }
    await source.logs(head)
    await answer(() => 'x'.repeat(8 * 1024 * 1024))
    const topics = () => Array.from({ length: 4 }, () => `0x${randomBytes(32).toString('hex')}`)
    await answer((logs) =>
      Array.from({ length: 2_001 }, (_, at) => ({
        ...(logs as object[])[0],
        topics: topics(),
        logIndex: quantity(BigInt(at)),
      })),
    )
  })

  it('is accepted where the header cannot be checked', async () => {
    const head = await stored(3)
    const { logsBloom: _, ...header } = head.header
    lagging.set(lacking(() => true))
    assert.deepEqual(await over(urls().slice(0, 1)).source.logs({ ...head, header }), [])
  })

  it('shows that the list of a range ends before its last block', async () => {
    const head = await stored(4)
    const { source } = over(urls().slice(0, 1))
    const range = () => source.logsBetween(head.number - 1n, head.number)
    lagging.set(lacking(({ fromBlock }) => fromBlock !== undefined))
    await assert.rejects(range(), isChainUnavailable)
    lagging.set('none')
    const asked = lagging.count('eth_getLogs')
    const logs = await range()
    assert.deepEqual([logs !== rangeTooWide && logs.length, lagging.count('eth_getLogs')], [2, asked + 1])
    // Logs of other events than those asked for are no sign of a short list.
    assert.deepEqual(await source.logsBetween(head.number, head.number, { events: [wordOf(99)] }), [])
  })
})
