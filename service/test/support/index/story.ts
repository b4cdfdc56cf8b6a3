/** For tests of the index: stories of random writes to the registry, which read nothing from the index. */
import assert from 'node:assert/strict'
import type { Hex } from '@touchstone/verdict'
import { alice, bob, hash, operator, type IndexChain } from './world.ts'

/** A step of the story: a number chooses the token, the other what is done to it. */
type Act = readonly [token: number, choice: number]

/** Every kind of event, deeper than the story's reorganisations reach. */
export async function wholeLife(chain: IndexChain, tag: Hex): Promise<void> {
  const by = async (account: typeof alice, functionName: string, ...args: readonly unknown[]) =>
    assert.ok(await chain.send(account.address, functionName, args), functionName)
  await by(operator, 'mint', alice.address, hash(1))
  const id = (await chain.events()).at(-1)?.args['tokenId']
  await by(operator, 'setMetadataHash', id, hash(2))
  await by(operator, 'bindTag', id, tag)
  await by(operator, 'activate', id)
  await by(alice, 'initiateTransfer', id, bob.address, 2n ** 40n, hash(3))
  await by(alice, 'cancelTransfer', id)
  assert.ok(await chain.claim(BigInt(id ?? 0), bob), 'claim')
  await by(bob, 'initiateTransfer', id, alice.address, 2n ** 40n, hash(4))
  await by(alice, 'acceptTransfer', id)
  await by(operator, 'flag', id, 1, hash(5))
  await by(operator, 'resolve', id, 1, hash(6))
  if (chain.version === 2) {
    await by(alice, 'initiateTransfer', id, bob.address, 2n ** 40n, hash(7))
    await by(operator, 'flag', id, 4, hash(8))
    await by(alice, 'cancelTransfer', id)
    await by(operator, 'announceRecycle', id)
    await by(operator, 'resolve', id, 4, hash(9))
    await by(alice, 'initiateTransfer', id, bob.address, 2n ** 40n, hash(10))
    await by(alice, 'invalidateNonce', id)
  }
  await chain.mine(6)
}

type Deed = (id: bigint, n: number) => Promise<unknown>

/**
 * Does what the state of a token allows, or something to the chain; reads nothing from the index. `tokens` are minted before anything else,
 * and `reorgs` are short.
 */
export function createStory(
  chain: IndexChain,
  nextHash: () => Hex,
  { tokens = 6, reorgs = true }: Readonly<{ tokens?: number; reorgs?: boolean }> = {},
) {
  let count = 0
  const people = [operator, alice, bob]
  const personAt = (address: unknown) => people.find((one) => one.address === address) ?? operator

  const asOwner = async (id: bigint, functionName: string, args: readonly unknown[] = []) => {
    const [owner] = await chain.read('getAsset', id)
    return chain.send(personAt(owner).address, functionName, [id, ...args])
  }
  const mint: Deed = async (_id, n) => {
    const hashes = Array.from({ length: (n % 3) + 1 }, () => (n % 5 === 0 ? hash(0) : nextHash()))
    if (await chain.send(operator.address, 'mintBatch', [people[n % 3]?.address, hashes])) count += hashes.length
  }
  const offer: Deed = async (id, n) => {
    const { timestamp } = (await chain.rpc('eth_getBlockByNumber', ['latest', false])) as { timestamp: Hex }
    const expiry = [BigInt(timestamp) + 3n, 2n ** 64n - 1n, BigInt(timestamp) + 100_000n][n % 3]
    await asOwner(id, 'initiateTransfer', [people[n % 2]?.address, expiry, n % 2 ? hash(n) : hash(0)])
  }
  const accept: Deed = async (id) => {
    const [to] = await chain.read('pendingTransfer', id)
    await chain.send(personAt(to).address, 'acceptTransfer', [id])
  }
  const flag: Deed = (id, n) => chain.send(operator.address, 'flag', [id, 1 << (n % 5), hash(n)])
  const recycle: Deed = (id) => chain.send(operator.address, 'recycle', [id])
  const transfers: readonly Deed[] = [offer, accept, accept, (id) => asOwner(id, 'cancelTransfer')]

  const deedsOf: Readonly<Record<number, readonly Deed[]>> = {
    1: [
      ...transfers,
      ...Array<Deed>(3).fill((id) => chain.send(operator.address, 'bindTag', [id, nextHash()])),
      (id, n) => chain.send(operator.address, 'setMetadataHash', [id, n % 3 ? nextHash() : hash(0)]),
    ],
    2: [...transfers, flag, ...Array<Deed>(3).fill((id) => chain.send(operator.address, 'activate', [id]))],
    3: [...transfers, flag, ...Array<Deed>(3).fill((id, n) => chain.claim(id, people[n % 3] ?? alice))],
    4: [...transfers, flag, (id) => asOwner(id, 'restock'), (id) => asOwner(id, 'recycle')],
    5: [recycle, ...Array<Deed>(3).fill((id) => resolveAll(id))],
  }
  const resolveAll = async (id: bigint) => {
    const [, , , flags] = await chain.read('getAsset', id)
    await chain.send(operator.address, 'resolve', [id, flags, hash(9)])
  }
  const worldly: readonly Deed[] = [
    mint,
    (_id, n) => chain.mine((n % 4) + 1),
    async (_id, n) => {
      await chain.rpc('evm_increaseTime', [n % 10])
      await chain.mine(1)
    },
    (_id, n) => (reorgs ? chain.reorg((n % 6) + 1) : chain.mine(1)),
  ]

  return async ([token, choice]: Act): Promise<void> => {
    const id = BigInt((token % Math.max(1, count)) + 1)
    const [, , state] = await chain.read('getAsset', id)
    if (state === 0) count = Math.min(count, Number(id) - 1) // a reorganisation took it away
    const deeds = count < tokens ? [mint] : choice % 6 === 0 ? worldly : (deedsOf[Number(state)] ?? worldly)
    const n = Math.floor(choice / 6)
    await deeds[n % deeds.length]?.(id, Math.floor(n / deeds.length))
  }
}
