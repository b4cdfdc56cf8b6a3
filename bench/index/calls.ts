/**
 * The life of the products of `bench:index`, block by block, as calls of the registry. A product takes one step of its life in
 * each block. Lives are long, so that products are few: anvil hashes all of the state for every block.
 */
import type { Hex } from '@touchstone/verdict'
import { encodeFunctionData, keccak256, maxUint64, toHex } from 'viem'
import { assetRegistryAbi } from '../../service/src/domain/registry-abi.ts'

const abi = assetRegistryAbi
const lost = 1
const someone = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8'
const noHash: Hex = `0x${'0'.repeat(64)}`

type Step = { readonly events: number; readonly call: (id: bigint) => Hex }

/** All that a product does after its mint, with the events of which an index keeps rows. */
const bind: Step = {
  events: 2,
  call: (id) => encodeFunctionData({ abi, functionName: 'bindTag', args: [id, hashOf('tag', id)] }),
}
const activate: Step = {
  events: 1,
  call: (id) => encodeFunctionData({ abi, functionName: 'activate', args: [id] }),
}
const offer: Step = {
  events: 1,
  call: (id) => encodeFunctionData({ abi, functionName: 'initiateTransfer', args: [id, someone, maxUint64, noHash] }),
}
const withdraw: Step = {
  events: 1,
  call: (id) => encodeFunctionData({ abi, functionName: 'cancelTransfer', args: [id] }),
}
const report: Step = {
  events: 2,
  call: (id) => encodeFunctionData({ abi, functionName: 'flag', args: [id, lost, noHash] }),
}
const resolve: Step = {
  events: 2,
  call: (id) => encodeFunctionData({ abi, functionName: 'resolve', args: [id, lost, noHash] }),
}
const steps = [bind, activate, ...times(10, offer, withdraw), ...times(6, report, resolve)]

const eventsOfMint = 3
export const eventsPerProduct = eventsOfMint + steps.reduce((sum, { events }) => sum + events, 0)
export const productsPerBlock = 2
/** Blocks from a product's mint to its last step. */
export const lifeInBlocks = steps.length

/** The calls of one block, which `owner` makes. Products are minted, and all that are on their way take the next step. */
export function callsOfBlock(block: number, products: number, owner: Hex): Hex[] {
  const minted = productsOf(block, products)
  const metadata = minted.map((id) => hashOf('product', id))
  const mint = encodeFunctionData({ abi, functionName: 'mintBatch', args: [owner, metadata] })
  const further = steps.flatMap(({ call }, index) => productsOf(block - 1 - index, products).map(call))
  return minted.length === 0 ? further : [mint, ...further]
}

/** A call of one event that an index keeps: another metadata hash. */
export function callOfOneEvent(index: number, products: number): Hex {
  const id = BigInt((index % products) + 1)
  return encodeFunctionData({
    abi,
    functionName: 'setMetadataHash',
    args: [id, hashOf('further metadata', BigInt(index))],
  })
}

/** The token ids that a block mints. */
function productsOf(block: number, products: number): bigint[] {
  const first = block * productsPerBlock
  const count = block < 0 ? 0 : Math.max(0, Math.min(products - first, productsPerBlock))
  return Array.from({ length: count }, (_, index) => BigInt(first + index + 1))
}

function times(count: number, ...some: readonly Step[]): Step[] {
  return Array.from({ length: count }, () => some).flat()
}

function hashOf(kind: string, id: bigint): Hex {
  return keccak256(toHex(`${kind} ${id}`))
}
