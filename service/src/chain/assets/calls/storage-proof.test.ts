/** Trust `proof` on a real chain: trust `rpc` returns a forged answer, `proof` rejects it or asks another provider (spec §2.2). */
import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { EthProof, Hex } from '@touchstone/verdict'
import { metadataOf, readerOver, silentLog, startRegistry } from '../../../../test/support/reader/anvil.ts'
import { startFaultRpc } from '../../../../test/support/fault-rpc.ts'
import { useOpened } from '../../../../test/support/opened.ts'
import { createAssetReader, type AssetReaderOptions } from '../reader.ts'
import { selectors } from './abi.ts'

const reason: Hex = `0x${'00'.repeat(32)}`
import { encodeWord } from '../../../lib/words.ts'
const tag: Hex = `0x${'5a'.repeat(32)}`
const stolen = 1n

describe('trust proof', () => {
  const chain = useOpened(startRegistry)
  const proxy = useOpened(() => startFaultRpc({ target: chain.url }))

  before(async () => {
    await chain.mintMany(250)
    await chain.write('bindTag', [stolen, tag])
    await chain.write('flag', [stolen, 0x08, reason])
  })

  function reader(options: Parameters<typeof readerOver>[1]) {
    return readerOver(chain, { urls: [proxy.url], ...options })
  }

  /** Forges every record to be minted and not flagged. */
  function whitewash(method: string, params: readonly unknown[], result: unknown): unknown {
    const call = params[0] as { data?: string } | undefined
    if (method !== 'eth_call' || !call?.data?.startsWith(selectors.getAssetsWithMetadata)) return result
    const [first, second, length, , ...rest] = String(result).slice(2).match(/.{64}/g) ?? []
    return `0x${[first, second, length, encodeWord(1n << 224n), ...rest].join('')}`
  }

  const withProof =
    (change: (proof: EthProof) => EthProof) =>
    (method: string, _params: unknown, result: unknown): unknown =>
      method === 'eth_getProof' ? change(result as EthProof) : result

  const whitewashed = withProof((proof) => ({
    ...proof,
    storageProof: proof.storageProof.map((slot) => ({ ...slot, value: `0x${(1n << 224n).toString(16)}` as Hex })),
  }))
  const emptied = withProof((proof) => ({
    ...proof,
    storageProof: proof.storageProof.map(({ key }) => ({ key, value: '0x0' as Hex, proof: [] })),
  }))

  it('reads the right state where trust rpc returns a forged one', async () => {
    proxy.set({ rewrite: whitewash })
    assert.equal((await reader({ trust: 'rpc', cache: 'off' }).read(stolen)).asset.record.state, 1)
    const proven = reader({ trust: 'proof' })
    const { asset } = await proven.read(stolen)
    assert.deepEqual([asset.record.state, asset.record.flags, asset.metadataHash], [5, 8, metadataOf(1)])
    assert.equal((await proven.read(999n)).asset.record.state, 0)
    const tagged = await proven.readByTag(tag)
    assert.deepEqual([tagged.tokenId, tagged.asset?.record.state], [stolen, 5])
    assert.equal((await proven.readByTag(reason)).tokenId, null)
  })

  for (const [name, rewrite] of [
    ['with other values', whitewashed],
    ['of empty slots', emptied],
  ] as const) {
    it(`rejects proofs ${name}`, async () => {
      proxy.set({ rewrite })
      const proven = reader({ trust: 'proof' })
      await assert.rejects(proven.read(stolen), { code: 'CHAIN_UNAVAILABLE' })
      await assert.rejects(proven.readByTag(tag), { code: 'CHAIN_UNAVAILABLE' })
    })
  }

  it('takes the answer of an honest second provider', async () => {
    proxy.set({ rewrite: whitewashed })
    const proven = reader({ trust: 'proof', urls: [proxy.url, chain.url] })
    assert.equal((await proven.read(stolen)).asset.record.state, 5)
  })

  it('rejects another code than the configured one', async () => {
    proxy.set('none')
    const proven = reader({ trust: 'proof', codeHash: `0x${'11'.repeat(32)}` })
    await assert.rejects(proven.read(stolen), { code: 'CHAIN_UNAVAILABLE' })
  })

  it('proves many tokens with one call for a hundred', async () => {
    proxy.set('none')
    const proven = reader({ trust: 'proof', cache: 'head' })
    const ids = Array.from({ length: 250 }, (_, index) => BigInt(index + 1))
    const answers = await Promise.all(ids.map(proven.read))
    const hashes = ids.map((id) => metadataOf(Number(id)))
    assert.deepEqual(
      answers.map(({ asset }) => asset.metadataHash),
      hashes,
    )
    assert.deepEqual([proven.stats().proofs, proven.stats().calls], [3, 0])
  })

  it('keeps assets as long as the proven storage root is the same, even without logs', async () => {
    proxy.set({ rewrite: (method, _params, result) => (method === 'eth_getLogs' ? [] : result) })
    const clock = { ms: 0 }
    const proven = reader({ trust: 'proof', now: () => clock.ms, headMaxAgeMs: 15_000 })
    const { asset } = await proven.read(2n)
    for (const blocks of [1, 100]) {
      await chain.mine(blocks)
      clock.ms += 20_000
      const again = await proven.read(2n)
      assert.deepEqual([again.asset === asset, asset.current, again.block.hash], [true, true, await chain.blockHash()])
    }
    await chain.write('bindTag', [2n, `0x${'02'.repeat(32)}`])
    clock.ms += 20_000
    assert.equal((await proven.read(2n)).asset.record.state, 2)
    assert.equal(asset.current, false)
    assert.equal(proven.stats().logs, 0)
  })

  it('keeps nothing at a head whose storage root is not proven', async () => {
    proxy.set('none')
    const clock = { ms: 0 }
    const proven = reader({ trust: 'proof', now: () => clock.ms, headMaxAgeMs: 15_000 })
    const { asset } = await proven.read(3n)
    proxy.set({
      rewrite: withProof((proof) => (proof.storageProof.length === 0 ? { ...proof, accountProof: [] } : proof)),
    })
    await chain.mine()
    clock.ms += 20_000
    const again = await proven.read(3n)
    assert.deepEqual(
      [asset.current, again.asset.record, again.block.hash],
      [false, asset.record, await chain.blockHash()],
    )
  })

  it('does not start without the code hash', () => {
    const options: Partial<AssetReaderOptions> = { trust: 'proof', cache: 'off', cacheEntries: 0, log: silentLog }
    const { source } = reader({})
    const start = () =>
      createAssetReader({ ...options, source, contract: chain.contract, interface: 'registry' } as AssetReaderOptions)
    assert.throws(start, /code hash/)
  })
})
