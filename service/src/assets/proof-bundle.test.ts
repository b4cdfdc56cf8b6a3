import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import type { Fault, FaultName } from '../../test/support/fault-rpc.ts'
import { useProviders } from '../../test/support/providers.ts'
import { cell, wordOf } from '../../test/support/rpc-anvil.ts'
import type { ChainSourceOptions, RpcChainSource } from '../chain/rpc/source.ts'
import { reasonOf, ServiceError } from '../lib/errors.ts'
import { createProofBundles } from './proof-bundle.ts'

const { anvil, first, second, urls, sourceOver } = useProviders(2, [5])

/** A header without one of its members, as of a thin provider, cannot be hashed. */
const thin: Fault = {
  rewrite(method, _params, result) {
    if (!method.startsWith('eth_getBlock')) return result
    const { parentBeaconBlockRoot: _left, ...rest } = result as Record<string, unknown>
    return rest
  },
}

async function codeHash(): Promise<Hex> {
  return ((await anvil.rpc('eth_getProof', [cell, [], 'latest'])) as { codeHash: Hex }).codeHash
}

/** Asks for as many bundles at once as faults open a breaker, and returns the reasons of their failures. */
async function failedBundles(source: RpcChainSource, code: Hex): Promise<readonly string[]> {
  const bundles = createProofBundles({ source, contract: cell, codeHash: code, recordsSlot: 3n })
  const asked = await Promise.allSettled(Array.from({ length: 5 }, (_, id) => bundles(BigInt(id))))
  return asked.map((outcome) => {
    assert.ok(outcome.status === 'rejected' && outcome.reason instanceof ServiceError)
    assert.equal(outcome.reason.code, 'CHAIN_UNAVAILABLE')
    return reasonOf(outcome.reason.cause)
  })
}

async function assertOpen(source: RpcChainSource): Promise<void> {
  assert.deepEqual(
    source.stats().providers.map(({ breaker }) => breaker),
    ['closed', 'closed'],
  )
  assert.equal(await source.call(cell, '0x', await source.head()), wordOf(5))
}

describe('a bundle', () => {
  it('is read until the servers behind one URL have its block', async () => {
    const { source } = sourceOver([first.url])
    let lacking = 3
    const isLacking = (): FaultName => (lacking-- > 0 ? 'not-canonical' : 'none')
    const apart = { ...source, proof: read }
    async function read(...args: Parameters<RpcChainSource['proof']>) {
      first.set({ name: isLacking(), methods: ['eth_getProof'] })
      return source.proof(...args)
    }
    const options = { contract: cell, codeHash: await codeHash(), recordsSlot: 3n }
    assert.equal(await createProofBundles({ source: apart, ...options })(1n), null)
    lacking = Infinity
    await assert.rejects(createProofBundles({ source: apart, ...options, pausesMs: [0] })(1n), (error) =>
      /no longer canonical/.test(reasonOf(error)),
    )
  })
})

describe('bundles that cannot be proven', () => {
  for (const trust of ['rpc', 'quorum'] satisfies ChainSourceOptions['trust'][])
    it(`leave verdicts alone in ${trust} trust, where the code hash of the setting is another`, async () => {
      const { source } = sourceOver(urls(), { trust })
      for (const reason of await failedBundles(source, wordOf(1))) assert.match(reason, /the code hash is 0x/)
      await assertOpen(source)
    })

  it('ask for no proof where the header of the block cannot be hashed', async () => {
    for (const provider of [first, second]) provider.set(thin) // the second is asked too when the first is slow
    const { source } = sourceOver(urls())
    const asked = first.count('eth_getProof') + second.count('eth_getProof')
    for (const reason of await failedBundles(source, await codeHash()))
      assert.match(reason, /^the header has missing, malformed or unknown members/)
    assert.equal(first.count('eth_getProof') + second.count('eth_getProof'), asked)
    await assertOpen(source)
  })

  it('count as faults in proof trust, where each verdict depends on the same check', async () => {
    const { source } = sourceOver(urls(), { trust: 'proof' })
    await failedBundles(source, wordOf(1))
    assert.deepEqual(
      source.stats().providers.map(({ breaker }) => breaker),
      ['open', 'open'],
    )
  })
})
