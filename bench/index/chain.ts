/**
 * The chain of `bench:index`: anvil with the registry and about a hundred events in every block. All are made in one transaction through
 * Multicall3, which holds the roles and owns the products.
 */
import type { Hex } from '@touchstone/verdict'
import { encodeFunctionData, parseAbi } from 'viem'
import { assetRegistryAbi } from '../../service/src/domain/registry-abi.ts'
import { eventTopics } from '../../service/src/domain/registry-event.ts'
import { anvilBinary } from '../../service/src/chain/devchain/anvil.ts'
import { deployLocal } from '../../service/src/chain/devchain/deploy.ts'
import { createRpcClient, type RpcClient } from '../../service/src/chain/rpc/client.ts'
import { callOfOneEvent, callsOfBlock, eventsPerProduct, lifeInBlocks, productsPerBlock } from './calls.ts'
import { run } from '../lib/program.ts'

export type BenchChain = {
  readonly url: string
  readonly contract: Hex
  /** The last block, and how many events an index keeps of all up to it. */
  readonly head: () => { readonly number: number; readonly events: number }
  /** Mines a block with one event in it, and returns the moment (`performance.now()`) at which anvil was asked to. */
  readonly mineOneEvent: () => Promise<number>
  readonly stop: () => Promise<void>
}

const operator = '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266'
const multicall = '0xca11bde05977b3631167028862be2a173976ca11'
const multicallAbi = parseAbi([
  'struct Call { address target; bool allowFailure; bytes callData; }',
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3(Call[] calls) payable returns (Result[])',
])

/** Starts anvil and makes at least `events` events, fifty for each product. */
export async function startBenchChain(events: number): Promise<BenchChain> {
  const products = Math.ceil(events / eventsPerProduct)
  const blocks = Math.ceil(products / productsPerBlock) + lifeInBlocks
  // Blocks are a second apart however fast they are made. This chain begins in the past and its last block is a while ago.
  const began = Math.floor(Date.now() / 1000) - blocks - 3_600
  const flags = `--chain-id 84532 --host 127.0.0.1 --port 0 --timestamp ${began} --prune-history --slots-in-an-epoch 1 --accounts 2`
  const anvil = run({ command: anvilBinary(), args: `${flags} --gas-limit 100000000`.split(' '), core: 1 })
  try {
    const [, port] = await anvil.line(/^Listening on 127\.0\.0\.1:(\d+)$/m, 30_000)
    const url = `http://127.0.0.1:${port}`
    const rpc = createRpcClient({ url, timeoutMs: 60_000, maxBytes: 2 ** 28 })
    await rpc('anvil_setLoggingEnabled', [false])
    const { contract } = await deployLocal({ rpcUrl: url })
    await rpc('anvil_setAutomine', [false])
    await grantRoles(rpc, contract)
    for (let block = 0; block < blocks; block += 1) await mine(rpc, contract, callsOfBlock(block, products, multicall))
    let head = { number: Number(await rpc('eth_blockNumber', [])), events: products * eventsPerProduct }
    const counted = await countEvents(rpc, contract, head.number)
    if (counted !== head.events) throw new Error(`The chain holds ${counted} events instead of ${head.events}.`)
    let further = 0
    const mineOneEvent = async () => {
      const at = await mine(rpc, contract, [callOfOneEvent(further++, products)])
      head = { number: head.number + 1, events: head.events + 1 }
      return at
    }
    return { url, contract, head: () => head, mineOneEvent, stop: anvil.stop }
  } catch (error) {
    await anvil.stop()
    throw error
  }
}

async function grantRoles(rpc: RpcClient, contract: Hex): Promise<void> {
  const abi = assetRegistryAbi
  for (const functionName of ['ISSUER_ROLE', 'BINDER_ROLE', 'QA_ROLE', 'GUARDIAN_ROLE'] as const) {
    const role = (await rpc('eth_call', [{ to: contract, data: encodeFunctionData({ abi, functionName }) }])) as Hex
    await send(rpc, contract, encodeFunctionData({ abi, functionName: 'grantRole', args: [role, multicall] }))
  }
  await rpc('evm_mine', [])
}

async function mine(rpc: RpcClient, contract: Hex, datas: readonly Hex[]): Promise<number> {
  const calls = datas.map((callData) => ({ target: contract, allowFailure: false, callData }))
  await send(rpc, multicall, encodeFunctionData({ abi: multicallAbi, functionName: 'aggregate3', args: [calls] }))
  const at = performance.now()
  await rpc('evm_mine', [])
  return at
}

async function send(rpc: RpcClient, to: Hex, data: Hex): Promise<void> {
  await rpc('eth_sendTransaction', [{ from: operator, to, data, gas: '0x3000000' }])
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
