import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startFaultRpc } from '../../test/_fault-rpc.ts'
import type { FaultRpc } from '../../test/_fault-rpc.ts'
import { ServiceError } from '../errors.ts'
import { cell, sourceOver, startTestAnvil, wordOf } from './_rpc-anvil.ts'
import type { TestAnvil } from './_rpc-anvil.ts'
import type { Block, RpcChainSource } from './source.ts'

describe('an answer that is well formed and about something else', () => {
  let anvil: TestAnvil
  let proxy: FaultRpc
  let source: RpcChainSource
  let earlier: Block
  let head: Block
  before(async () => {
    anvil = await startTestAnvil()
    proxy = await startFaultRpc({ target: anvil.url })
    source = sourceOver([proxy.url], { ticks: () => 0 }).source
    await anvil.store(1)
    earlier = await source.head()
    await anvil.store(2)
    head = await source.head()
    await source.proof([], head)
  })
  after(async () => {
    await source.close()
    await proxy.close()
    await anvil.close()
  })

  /** Refused with the provider's answer, taken when it is left as it is. */
  async function refuses(read: () => Promise<unknown>, rewrite: (result: unknown) => unknown): Promise<void> {
    proxy.set({ rewrite: (_method, _params, result) => rewrite(result) })
    await assert.rejects(read(), ServiceError)
    proxy.set('none')
    await read()
  }

  it('is refused for another block than the one asked for', async () => {
    const other = await anvil.rpc('eth_getBlockByHash', earlier.hash, false)
    await refuses(
      () => source.block(head.hash),
      () => other,
    )
  })

  it('is refused for logs of another block, or outside of the range', async () => {
    const [log] = (await anvil.rpc('eth_getLogs', { address: cell, blockHash: earlier.hash })) as object[]
    const moved = { ...log, blockHash: head.hash }
    for (const logs of [[log], [moved]]) {
      await refuses(
        () => source.logs(head),
        () => logs,
      )
    }
    await refuses(
      () => source.logsBetween(head.number, head.number),
      () => [log],
    )
    await refuses(
      () => source.logsBetween(0n, earlier.number - 1n),
      () => [log],
    )
  })

  it('is refused for a proof of fewer slots, or without its words', async () => {
    const slots = [wordOf(0), wordOf(1)]
    const changes = [{ storageProof: [] }, { codeHash: '0x' }, { storageHash: null }, { accountProof: ['0xzz'] }]
    for (const change of changes) {
      await refuses(
        () => source.proof(slots, head),
        (proof) => ({ ...(proof as object), ...change }),
      )
    }
  })
})
