/** Settings of the chain: its providers, the contract, how an answer is trusted, and how long it is kept. */
import type { Hex } from '@touchstone/verdict'
import { z } from 'zod'
import { address, choice, isProviderUrl, isWebSocketUrl, list, mapped, optional, pattern, whole } from './parsers.ts'
import { secret, setting } from './setting.ts'

export const chainSettings = z.object({
  rpcUrls: secret('CHAIN_RPC_URLS', list('http or https URLs with a % of a password as %25', isProviderUrl)).describe(
    'JSON-RPC providers, best first. Two or more survive the fault of one, in reads, writes and payments.',
  ),
  wsUrls: secret('CHAIN_WS_URLS', list('ws or wss URLs without #', isWebSocketUrl)).describe(
    'WebSockets of providers that announce new blocks (eth_subscribe newHeads), so that the index follows at once. Nothing else is read there, and INDEX_POLL_MS still holds.',
  ),
  contract: setting('CHAIN_CONTRACT', optional(address())).describe('Address of the registry contract.'),
  interface: setting('CHAIN_INTERFACE', choice('auto', 'registry', 'foreign')).describe(
    'registry: CHAIN_CONTRACT is an AssetRegistry of this project; foreign: another contract with getAsset; auto: ask it (ERC-165).',
  ),
  blockTag: setting('CHAIN_BLOCK_TAG', choice('latest', 'safe', 'finalized')).describe(
    'The head block that verdicts are pinned to.',
  ),
  trust: setting('CHAIN_TRUST', choice('rpc', 'quorum', 'proof')).describe(
    'rpc accepts the answer of any healthy provider; quorum wants CHAIN_QUORUM of them to agree; proof checks Merkle proofs under blocks on which they agree.',
  ),
  quorum: setting('CHAIN_QUORUM', whole(2, 9, 2)).describe(
    'Providers that must agree: on everything in quorum mode; on blocks, logs and calls in proof mode, where CHAIN_RPC_URLS names several hosts.',
  ),
  codeHash: setting(
    'CHAIN_CODE_HASH',
    optional(mapped(pattern(/^0x[0-9a-f]{64}$/, '0x and 64 hex digits'), (text) => text as Hex)),
  ).describe('keccak256 of the deployed contract code; needed in proof mode, with CHAIN_INTERFACE=registry.'),
  recordsSlot: setting('CHAIN_RECORDS_SLOT', mapped(whole(0, 1_000_000, 3), BigInt)).describe(
    'Storage slot of the record mapping, for proofs.',
  ),
  startBlock: setting('CHAIN_START_BLOCK', mapped(whole(0, 999_999_999_999, 0), BigInt)).describe(
    'Block of the contract’s deployment, or any before: where the history of a token begins.',
  ),
  maxHeadAgeSeconds: setting('CHAIN_MAX_HEAD_AGE_SECONDS', optional(whole(0, 86_400, 30))).describe(
    'Oldest acceptable head; 0: any; empty: 30 for latest, 600 for safe, 3600 for finalized.',
  ),
  cache: setting('CHAIN_CACHE', optional(choice('events', 'head', 'off'))).describe(
    'events keeps a verdict until its token changes; head until the next block; off reads every time. Empty: events with CHAIN_INTERFACE=registry, else head.',
  ),
  cacheEntries: setting('CHAIN_CACHE_ENTRIES', whole(1, 10_000_000, 100_000)).describe(
    'Verdicts kept in memory: at most so many, and together 1.5 kB for each of them (100000: 150 MB).',
  ),
})
