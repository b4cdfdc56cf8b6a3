/** For tests: a real anvil with three tiny hand-written contracts. */
import type { Hex } from '@touchstone/verdict'
import { publishedAddresses } from '../../src/domain/published-accounts.ts'
import { createLog, type Log } from '../../src/lib/log.ts'
import { type ChainSourceOptions, createChainSource, type RpcChainSource } from '../../src/chain/rpc/source.ts'
import { startTestChain } from './test-chain.ts'

const [sender] = publishedAddresses as [Hex]

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

export type TestAnvil = Awaited<ReturnType<typeof startTestAnvil>>

export async function startTestAnvil() {
  const chain = await startTestChain()
  for (const [address, code] of codes) await chain.rpc('anvil_setCode', [address, code])
  return {
    ...chain,
    /** Stores a number in the cell, in a block of its own. */
    store: (value: number) => chain.send({ from: sender, to: cell, data: wordOf(value) }),
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
