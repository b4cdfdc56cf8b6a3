/** For tests: a real anvil with three tiny hand-written contracts. */
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Hex } from '@touchstone/verdict'
import { createLog, type Log } from '../../src/lib/log.ts'
import { createRpcClient } from '../../src/chain/rpc/client.ts'
import { type ChainSourceOptions, createChainSource, type RpcChainSource } from '../../src/chain/rpc/source.ts'

/** Called without data it returns slot 0. Called with a word it stores the word there and logs it as a topic. */
export const cell: Hex = '0x00000000000000000000000000000000000000c0'
/** Returns the word it is given. */
export const echo: Hex = '0x00000000000000000000000000000000000000c1'
export const reverting: Hex = '0x00000000000000000000000000000000000000c2'
export const nothing: Hex = '0x00000000000000000000000000000000000000c3'

const codes: readonly (readonly [Hex, Hex])[] = [
  // calldatasize jumpi(13) · mstore(0, sload(0)) return(0, 32) · 13: sstore(0, word) log1(0, 0, word)
  [cell, '0x36600d575f545f5260205ff3fe5b5f35805f555f5fa100'],
  // mstore(0, calldataload(0)) return(0, 32)
  [echo, '0x5f355f5260205ff3'],
  // revert(0, 0)
  [reverting, '0x5f5ffd'],
]

export type TestAnvil = Readonly<{
  url: string
  rpc: (method: string, ...params: unknown[]) => Promise<unknown>
  /** Stores a number in the cell, in a block of its own. */
  store: (value: number) => Promise<void>
  close: () => Promise<void>
}>

export async function startTestAnvil(): Promise<TestAnvil> {
  const platform = `${process.platform}-${process.arch === 'x64' ? 'amd64' : process.arch}`
  const binary = createRequire(import.meta.url).resolve(`@foundry-rs/anvil-${platform}/bin/anvil`)
  const flags = '--chain-id 84532 --port 0 --prune-history 256 --slots-in-an-epoch 1'
  // Else each start leaves a folder in the home folder.
  const spill = await mkdtemp(join(tmpdir(), 'rpc-anvil-'))
  const child = spawn(binary, [...flags.split(' '), '--cache-path', spill], { stdio: ['ignore', 'pipe', 'ignore'] })
  const stop = () => child.kill('SIGTERM')
  process.once('exit', stop) // for a run that ends before it closes what it opened
  const url = await new Promise<string>((resolve, reject) => {
    child.once('exit', () => reject(new Error('anvil did not start')))
    createInterface(child.stdout).on('line', (line) => {
      const listening = /^Listening on (\S+)/.exec(line)
      if (listening) resolve(`http://${listening[1]}`)
    })
  })

  const client = createRpcClient({ url, timeoutMs: 60_000 })
  const rpc = (method: string, ...params: unknown[]) => client(method, params)
  const [sender] = (await rpc('eth_accounts')) as string[]
  for (const [address, code] of codes) await rpc('anvil_setCode', address, code)
  return {
    url,
    rpc,
    async store(value) {
      // The plain form answers before the block is made.
      await rpc('eth_sendTransactionSync', { from: sender, to: cell, data: wordOf(value), gas: '0x30d40' })
    },
    async close() {
      const exit = new Promise((resolve) => child.once('exit', resolve))
      stop()
      await exit
      process.off('exit', stop)
      await rm(spill, { recursive: true, force: true })
    },
  }
}

export function wordOf(value: number): Hex {
  return `0x${value.toString(16).padStart(64, '0')}`
}

/** A source over `rpcUrls` that has time on a busy machine, and the lines of its log. */
export function sourceOver(
  rpcUrls: readonly string[],
  options: Partial<ChainSourceOptions> = {},
): { source: RpcChainSource; lines: string[] } {
  const lines: string[] = []
  const log: Log = createLog((line) => lines.push(line), 'debug')
  const source = createChainSource({
    rpcUrls,
    contract: cell,
    chainId: 84532,
    blockTag: 'latest',
    trust: 'rpc',
    quorum: 2,
    maxHeadAgeSeconds: 0,
    log,
    attemptTimeoutMs: 60_000,
    readTimeoutMs: 120_000,
    ...options,
  })
  return { source, lines }
}
