/**
 * The chain of `bench:index`: anvil with the registry and about a hundred events in every block. All are made in one transaction through
 * Multicall3, which holds the roles and owns the products.
 */
import type { Hex } from '@touchstone/verdict'
import type { RpcClient } from '../../service/src/chain/rpc/client.ts'
import { multicallAddress } from '../../service/src/domain/chain.ts'
import { eventTopics } from '../../service/src/domain/registry-event.ts'
import { callOfOneEvent, callsOfBlock, eventsPerProduct, lifeInBlocks, productsPerBlock } from './calls.ts'
import { grantToMulticall, multicallOf, send, startRegistryChain } from '../lib/registry-chain.ts'

export type BenchChain = {
  readonly url: string
  readonly contract: Hex
  /** The last block, and how many events an index keeps of all up to it. */
  readonly head: () => { readonly number: number; readonly events: number }
  /** Mines a block with one event in it, and returns the moment (`performance.now()`) at which anvil was asked to. */
  readonly mineOneEvent: () => Promise<number>
  readonly stop: () => Promise<void>
}

/** Starts anvil and makes at least `events` events, fifty for each product. */
export async function startBenchChain(events: number): Promise<BenchChain> {
  const products = Math.ceil(events / eventsPerProduct)
  const blocks = Math.ceil(products / productsPerBlock) + lifeInBlocks
  // Blocks are a second apart however fast they are made. This chain begins in the past and its last block is a while ago.
  const began = Math.floor(Date.now() / 1000) - blocks - 3_600
  const options = { flags: `--gas-limit 100000000 --timestamp ${began}`, maxBytes: 2 ** 28 }
  return startRegistryChain(options, async ({ rpc, contract }) => {
    await grantToMulticall(rpc, contract, ['ISSUER_ROLE', 'BINDER_ROLE', 'QA_ROLE', 'GUARDIAN_ROLE'])
    for (let block = 0; block < blocks; block += 1)
      await mine(rpc, contract, callsOfBlock(block, products, multicallAddress))
    let head = { number: Number(await rpc('eth_blockNumber', [])), events: products * eventsPerProduct }
    const counted = await countEvents(rpc, contract, head.number)
    if (counted !== head.events) throw new Error(`The chain holds ${counted} events instead of ${head.events}.`)
    let further = 0
    const mineOneEvent = async () => {
      const at = await mine(rpc, contract, [callOfOneEvent(further++, products)])
      head = { number: head.number + 1, events: head.events + 1 }
      return at
    }
    return { head: () => head, mineOneEvent }
  })
}

async function mine(rpc: RpcClient, contract: Hex, datas: readonly Hex[]): Promise<number> {
  await send(rpc, multicallAddress, multicallOf(contract, datas), '0x3000000')
  const at = performance.now()
  await rpc('evm_mine', [])
  return at
}

/** A failed transaction leaves no event behind, so a right count says that all of them went through. */
async function countEvents(rpc: RpcClient, contract: Hex, last: number): Promise<number> {
  let count = 0
  for (let from = 0; from <= last; from += 200) {
    const range = { fromBlock: `0x${from.toString(16)}`, toBlock: `0x${Math.min(last, from + 199).toString(16)}` }
    count += ((await rpc('eth_getLogs', [{ address: contract, topics: [eventTopics], ...range }])) as unknown[]).length
  }
  return count
}
