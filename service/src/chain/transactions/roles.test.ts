/** The holders of roles, over a provider that serves few blocks at once. */
import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { startFaultRpc } from '../../../test/support/fault-rpc.ts'
import { startIndexChain } from '../../../test/support/index/world.ts'
import { useOpened } from '../../../test/support/opened.ts'
import { readRoles } from './roles.ts'

describe('the holders of roles', () => {
  const chain = useOpened(startIndexChain)
  const proxy = useOpened(() => startFaultRpc({ target: chain.url }))
  before(() => chain.mine(1_500))

  const widthOf = ([filter]: readonly unknown[]) => {
    const { fromBlock = '0x0', toBlock = '0x0' } = filter as { fromBlock?: string; toBlock?: string }
    return Number(toBlock) - Number(fromBlock) + 1
  }

  async function read(startBlock: bigint | null) {
    const source = chain.source({}, proxy.url)
    try {
      const { roles, fully } = await readRoles({ source, contract: chain.contract, startBlock, accounts: [] })
      return { fully, holders: roles.map(({ holders }) => holders) }
    } finally {
      await source.close()
    }
  }

  it('are read from all blocks, however few a provider serves at once, and none is guessed', async () => {
    proxy.set('none')
    const all = await read(0n)
    assert.ok(all.fully && all.holders.every((holders) => holders.length > 0))
    proxy.set({ name: 'too-wide', methods: ['eth_getLogs'], when: (_method, params) => widthOf(params) > 700 })
    assert.deepEqual(await read(0n), all)
    assert.ok(proxy.struck() > 0)
    const none = { fully: false, holders: all.holders.map(() => []) }
    proxy.set({ name: 'too-wide', methods: ['eth_getLogs'] })
    assert.deepEqual(await read(0n), none)
    proxy.set({ name: 'rpc-error', methods: ['eth_getLogs'] })
    await assert.rejects(read(0n), { code: 'CHAIN_UNAVAILABLE' })
    assert.deepEqual(await read(null), none)
  })

  it('are not asked for in fewer blocks where a provider limits its rate', async () => {
    const widths = new Set<number>()
    const isLogs = (method: string, params: readonly unknown[]) => {
      if (method === 'eth_getLogs') widths.add(widthOf(params))
      return method === 'eth_getLogs'
    }
    proxy.set({ name: 'rate-limit', when: isLogs })
    await assert.rejects(read(0n), { code: 'CHAIN_UNAVAILABLE' })
    assert.equal(widths.size, 1)
  })
})
