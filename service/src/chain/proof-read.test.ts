/** Trust `proof` on a real chain: a provider that lies is believed by `rpc`, and caught or overruled by `proof` (spec §2.2). */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, it } from 'node:test'
import type { EthProof, Hex } from '@touchstone/verdict'
import { metadataOf, readerOver, silentLog, startRegistry } from './asset-reader-anvil.ts'
import type { TestRegistry } from './asset-reader-anvil.ts'
import { startProxy } from './asset-reader-proxy.ts'
import type { LyingProxy, RpcCall } from './asset-reader-proxy.ts'
import { createAssetReader } from './asset-reader.ts'
import type { AssetReaderOptions } from './asset-reader-plan.ts'
import { selectors, wordText } from './read-calls.ts'

const reason: Hex = `0x${'00'.repeat(32)}`
const tag: Hex = `0x${'5a'.repeat(32)}`
const stolen = 1n

describe('trust proof', () => {
  let chain: TestRegistry
  let proxy: LyingProxy
  const open: (() => void)[] = []

  before(async () => {
    chain = await startRegistry()
    proxy = await startProxy(chain.url)
    await chain.mintMany(250)
    await chain.write('bindTag', [stolen, tag])
    await chain.write('flag', [stolen, 0x08, reason])
  })
  afterEach(() => {
    for (const close of open.splice(0)) close()
  })
  after(async () => {
    proxy?.close()
    await chain?.close()
  })

  function reader(options: Parameters<typeof readerOver>[1]) {
    const made = readerOver(chain, { urls: [proxy.url], ...options })
    open.push(made.close)
    return made
  }

  /** Every record says that it is minted and not flagged. */
  function whitewash({ method, params }: RpcCall, result: unknown): unknown {
    const call = params[0] as { data?: string } | undefined
    if (method !== 'eth_call' || !call?.data?.startsWith(selectors.getAssetsWithMetadata)) return result
    const [first, second, length, , ...rest] = String(result).slice(2).match(/.{64}/g) ?? []
    return `0x${[first, second, length, wordText(1n << 224n), ...rest].join('')}`
  }

  const withProof =
    (change: (proof: EthProof) => EthProof) =>
    ({ method }: RpcCall, result: unknown): unknown =>
      method === 'eth_getProof' ? change(result as EthProof) : result

  const whitewashed = withProof((proof) => ({
    ...proof,
    storageProof: proof.storageProof.map((slot) => ({ ...slot, value: `0x${(1n << 224n).toString(16)}` as Hex })),
  }))
  const emptied = withProof((proof) => ({
    ...proof,
    storageProof: proof.storageProof.map(({ key }) => ({ key, value: '0x0' as Hex, proof: [] })),
  }))

  it('reads the truth where rpc believes a lie', async () => {
    proxy.tell(whitewash)
    assert.equal((await reader({ trust: 'rpc', cache: 'off' }).read(stolen)).asset.record.state, 1)
    const proven = reader({ trust: 'proof' })
    const { asset } = await proven.read(stolen)
    assert.deepEqual([asset.record.state, asset.record.flags, asset.metadataHash], [5, 8, metadataOf(1)])
    assert.equal((await proven.read(999n)).asset.record.state, 0)
    const tagged = await proven.readByTag(tag)
    assert.deepEqual([tagged.tokenId, tagged.asset?.record.state], [stolen, 5])
    assert.equal((await proven.readByTag(reason)).tokenId, null)
  })

  for (const [name, lie] of [
    ['with other values', whitewashed],
    ['that say that nothing is there', emptied],
  ] as const) {
    it(`refuses proofs ${name}`, async () => {
      proxy.tell(lie)
      const proven = reader({ trust: 'proof' })
      await assert.rejects(proven.read(stolen), { code: 'CHAIN_UNAVAILABLE' })
      await assert.rejects(proven.readByTag(tag), { code: 'CHAIN_UNAVAILABLE' })
    })
  }

  it('takes the answer of an honest second provider', async () => {
    proxy.tell(whitewashed)
    const proven = reader({ trust: 'proof', urls: [proxy.url, chain.url] })
    assert.equal((await proven.read(stolen)).asset.record.state, 5)
  })

  it('refuses another code than the one it was told', async () => {
    proxy.tell((_call, result) => result)
    const proven = reader({ trust: 'proof', codeHash: `0x${'11'.repeat(32)}` })
    await assert.rejects(proven.read(stolen), { code: 'CHAIN_UNAVAILABLE' })
  })

  it('proves many tokens with one call for a hundred', async () => {
    proxy.tell((_call, result) => result)
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

  it('keeps assets as long as the proven storage root is the same, whatever the logs say', async () => {
    proxy.tell(({ method }, result) => (method === 'eth_getLogs' ? [] : result))
    const clock = { ms: 0 }
    const proven = reader({ trust: 'proof', now: () => clock.ms })
    const { asset } = await proven.read(2n)
    for (const blocks of [1, 100]) {
      await chain.mine(blocks)
      clock.ms += 2000
      const again = await proven.read(2n)
      assert.deepEqual([again.asset === asset, asset.live, again.block.hash], [true, true, await chain.blockHash()])
    }
    await chain.write('bindTag', [2n, `0x${'02'.repeat(32)}`])
    clock.ms += 2000
    assert.equal((await proven.read(2n)).asset.record.state, 2)
    assert.equal(asset.live, false)
    assert.equal(proven.stats().logs, 0)
  })

  it('keeps nothing at a head whose storage root is not proven', async () => {
    proxy.tell((_call, result) => result)
    const clock = { ms: 0 }
    const proven = reader({ trust: 'proof', now: () => clock.ms })
    const { asset } = await proven.read(3n)
    proxy.tell(withProof((proof) => (proof.storageProof.length === 0 ? { ...proof, accountProof: [] } : proof)))
    await chain.mine()
    clock.ms += 2000
    const again = await proven.read(3n)
    assert.deepEqual([asset.live, again.asset.record, again.block.hash], [false, asset.record, await chain.blockHash()])
  })

  it('does not start without the code hash, or without the slots of a foreign contract', () => {
    const options: Partial<AssetReaderOptions> = { trust: 'proof', cache: 'off', cacheEntries: 0, log: silentLog }
    const { source } = reader({})
    const start = (more: Partial<AssetReaderOptions>) =>
      createAssetReader({
        ...options,
        source,
        contract: chain.contract,
        interface: 'registry',
        ...more,
      } as AssetReaderOptions)
    const codeHash = chain.codeHash
    assert.throws(() => start({}), /code hash/)
    assert.throws(() => start({ codeHash, interface: 'foreign' }), /slots/)
    assert.throws(() => start({ codeHash, interface: 'foreign', recordsSlot: 0n, metadataSlot: 1n }), /slots/)
    assert.doesNotThrow(() =>
      start({ codeHash, interface: 'foreign', recordsSlot: 0n, metadataSlot: 1n, tagsSlot: 2n }),
    )
  })
})
