/** A provider that hides logs, on a real chain: it must be caught within the heads of one audit (spec §2.2). */
import assert from 'node:assert/strict'
import { encodeWord } from '../../../lib/words.ts'
import { before, describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { createLog } from '../../../lib/log.ts'
import { readerOver, startRegistry } from '../../../../test/support/reader/anvil.ts'
import { useOpened } from '../../../../test/support/opened.ts'
import { until } from '../../../../test/support/wait.ts'
import { startFaultRpc, withoutFilter } from '../../../../test/support/fault-rpc.ts'

const every = 5
/** The clock of the tests goes further than the first at each head: logs must be read within that time. */
const patience = { headMaxAgeMs: 15_000, auditMs: 200_000 }
const tagOf = (tokenId: bigint): Hex => `0x${encodeWord(tokenId + 0xabc0000n)}`

describe('the audit of the cache by events', () => {
  const chain = useOpened(startRegistry)
  const proxy = useOpened(() => startFaultRpc({ target: chain.url }))
  let nextToken = 1n

  before(() => chain.mintMany(200))

  async function bindNext(): Promise<void> {
    const token = nextToken++
    await chain.write('bindTag', [token, tagOf(token)])
  }

  /** Sends no log that names this token, and headers that cannot show that one is missing. */
  function hiding(tokenId: bigint) {
    const topic: Hex = `0x${encodeWord(tokenId)}`
    return (method: string, _params: unknown, result: unknown) =>
      method === 'eth_getLogs'
        ? (result as { topics: Hex[] }[]).filter(({ topics }) => !topics.includes(topic))
        : withoutFilter(method, result)
  }

  async function watched() {
    let heads = 0
    const clock = { ms: 0 }
    const lines: string[] = []
    const log = createLog((line) => lines.push(line))
    const reader = readerOver(chain, { urls: [proxy.url], ...patience, auditEvery: every, now: () => clock.ms, log })
    /** A new head for the reader, and all that it does about it in the background. */
    async function nextHead(write: () => Promise<void>): Promise<void> {
      await write()
      clock.ms += 20_000
      const { audits } = reader.stats()
      await reader.read(200n)
      heads++
      if (heads % every === 1) await until(() => reader.stats().audits > audits)
    }
    await nextHead(chain.mine)
    return { reader, lines, nextHead }
  }

  for (const [name, others, reason] of [
    ['on a quiet chain, by the storage root', false, 'the storage of the contract changed without a log'],
    ['among logs of other tokens in every block, by reading again', true, 'a record changed without a log'],
  ] as const) {
    it(`catches a hidden log ${name}`, async () => {
      const token = nextToken++
      proxy.set({ rewrite: hiding(token) })
      const { reader, lines, nextHead } = await watched()
      const quiet = () =>
        others ? chain.write('bindTag', [100n + nextToken, tagOf(100n + nextToken++)]) : chain.mine()
      await nextHead(quiet)
      const { asset } = await reader.read(token)
      await nextHead(quiet)
      await nextHead(async () => {
        await chain.send('bindTag', [token, tagOf(token)])
        await quiet()
      })
      // The hidden log works at first: this must not last.
      assert.deepEqual([asset.current, asset.record.state, reader.stats().auditFailures], [true, 1, 0])
      let heads = 0
      while (reader.stats().auditFailures === 0 && heads++ < every) await nextHead(quiet)
      assert.deepEqual([reader.stats().auditFailures, reader.stats().mode, asset.current], [1, 'head', false])
      assert.ok(lines.some((line) => line.includes('"level":"error"') && line.includes(reason)))
      assert.equal((await reader.read(token)).asset.record.state, 2)
      // It stays off, so the next hidden change shows too.
      await nextHead(() => chain.write('activate', [token]))
      assert.equal((await reader.read(token)).asset.record.state, 3)
    })
  }

  it('is not what shows a change whose log the header names and the provider lacks', async () => {
    const token = nextToken++
    proxy.set('none')
    const { reader, nextHead } = await watched()
    const { asset } = await reader.read(token)
    await nextHead(chain.mine)
    assert.equal(asset.current, true)
    proxy.set({ name: 'hide-logs', methods: ['eth_getLogs'] })
    await nextHead(() => chain.write('bindTag', [token, tagOf(token)]))
    assert.deepEqual([asset.current, (await reader.read(token)).asset.record.state], [false, 2])
    assert.deepEqual([reader.stats().auditFailures, reader.stats().mode], [0, 'events'])
  })

  it('raises no alarm on an honest chain that changes all the time', async () => {
    proxy.set('none')
    const { reader, nextHead } = await watched()
    for (let head = 0; head < 4 * every; head++) {
      await reader.read(nextToken)
      await nextHead(head % 3 === 0 ? chain.mine : bindNext)
    }
    const { mode, auditFailures, audits } = reader.stats()
    assert.deepEqual([mode, auditFailures, audits], ['events', 0, 5])
  })

  it('reads again before it raises an alarm', async () => {
    proxy.set('none')
    const { reader, nextHead } = await watched()
    const { asset } = await reader.read(nextToken)
    await nextHead(chain.mine)
    const forged = new Set<string>()
    proxy.set({
      rewrite: (method, _params, result) => {
        if (forged.has(method) || !['eth_getProof', 'eth_call'].includes(method)) return result
        forged.add(method)
        if (method === 'eth_getProof') return { ...(result as object), storageHash: tagOf(1n) }
        // Another flag in the first record, which is the fourth word.
        const flag = 2 + 3 * 64 + 5
        return `${String(result).slice(0, flag)}2${String(result).slice(flag + 1)}`
      },
    })
    for (let head = 0; head < 2 * every; head++) await nextHead(chain.mine)
    assert.equal(forged.size, 2)
    assert.deepEqual([reader.stats().auditFailures, reader.stats().mode, asset.current], [0, 'events', true])
  })

  it('keeps assets for their head only once the code of the contract has changed', async () => {
    proxy.set('none')
    const { reader, lines, nextHead } = await watched()
    const { asset } = await reader.read(nextToken)
    const code = String(await chain.rpc('eth_getCode', [chain.contract, 'latest']))
    await chain.rpc('anvil_setCode', [chain.contract, `${code}00`])
    for (let head = 0; head <= every; head++) await nextHead(chain.mine)
    assert.deepEqual([reader.stats().mode, asset.current], ['head', false])
    assert.ok(
      lines.some((line) => line.includes('"level":"error"') && line.includes('the code of the contract changed')),
    )
    await chain.rpc('anvil_setCode', [chain.contract, code])
  })

  it('does not let assets outlive their head where the provider proves nothing', async () => {
    proxy.set({ rewrite: (method, _params, result) => (method === 'eth_getProof' ? null : result) })
    const clock = { ms: 0 }
    const reader = readerOver(chain, { urls: [proxy.url], ...patience, auditEvery: 1, now: () => clock.ms })
    for (let head = 0; head < 3; head++) {
      const { asset } = await reader.read(200n)
      await chain.mine()
      clock.ms += 20_000
      await reader.read(199n)
      assert.deepEqual([asset.current, reader.stats().mode], [false, 'head'])
    }
  })
})
