import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { ServiceError } from '../../lib/errors.ts'
import { useProviders } from '../../../test/support/providers.ts'
import { cell, sourceOver, wordOf } from '../../../test/support/rpc-anvil.ts'
import type { RpcChainSource } from './source.ts'
import type { Block } from './block.ts'

describe('an answer that is well formed and about something else', () => {
  const { anvil, first: proxy, urls } = useProviders(1)
  let source: RpcChainSource
  let earlier: Block
  let head: Block
  before(async () => {
    source = sourceOver(urls(), { ticks: () => 0 }).source
    await anvil.store(1)
    earlier = await source.head()
    await anvil.store(2)
    head = await source.head()
    await source.proof([], head)
  })
  after(() => source.close())

  /** Rejected with the provider's answer, accepted unchanged. */
  async function rejects(read: () => Promise<unknown>, rewrite: (result: unknown) => unknown): Promise<void> {
    proxy.set({ rewrite: (_method, _params, result) => rewrite(result) })
    await assert.rejects(read(), ServiceError)
    proxy.set('none')
    await read()
  }

  it('is rejected for another block than the one asked for', async () => {
    const other = await anvil.rpc('eth_getBlockByHash', [earlier.hash, false])
    await rejects(
      () => source.block(head.hash),
      () => other,
    )
  })

  it('is rejected for logs of another block, or outside of the range', async () => {
    const [log] = (await anvil.rpc('eth_getLogs', [{ address: cell, blockHash: earlier.hash }])) as object[]
    const moved = { ...log, blockHash: head.hash }
    for (const logs of [[log], [moved]]) {
      await rejects(
        () => source.logs(head),
        () => logs,
      )
    }
    await rejects(
      () => source.logsBetween(head.number, head.number),
      () => [log],
    )
    await rejects(
      () => source.logsBetween(0n, earlier.number - 1n),
      () => [log],
    )
  })

  it('is rejected for a proof of fewer slots, or without its words', async () => {
    const slots = [wordOf(0), wordOf(1)]
    const changes = [{ storageProof: [] }, { codeHash: '0x' }, { storageHash: null }, { accountProof: ['0xzz'] }]
    for (const change of changes) {
      await rejects(
        () => source.proof(slots, head),
        (proof) => ({ ...(proof as object), ...change }),
      )
    }
  })
})
