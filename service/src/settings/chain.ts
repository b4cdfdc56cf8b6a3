/** Settings of the chain: who is asked, how much is believed, who writes, how the index follows (spec §2.2, §4.1, §4.9). */
import type { Hex } from '@touchstone/verdict'
import { address, choice, hexBytes, isUrl, list, optional, secret, setting, whole } from './kinds.ts'

export const chainSettings = {
  CHAIN_RPC_URLS: secret(
    list(
      'http or https URLs',
      (text) => isUrl(text, ['http', 'https']),
      'JSON-RPC providers, best first. Two or more survive the fault of one.',
    ),
  ),
  CHAIN_CONTRACT: optional(address('', 'Address of the registry contract.')),
  CHAIN_INTERFACE: choice(
    ['auto', 'registry', 'foreign'],
    'registry: CHAIN_CONTRACT is an AssetRegistry of this project; foreign: another contract with getAsset; auto: ask it (ERC-165).',
  ),
  CHAIN_BLOCK_TAG: choice(['latest', 'safe', 'finalized'], 'Which head verdicts are pinned to.'),
  CHAIN_TRUST: choice(
    ['rpc', 'quorum', 'proof'],
    'rpc believes any healthy provider; quorum wants CHAIN_QUORUM of them to agree; proof checks Merkle proofs.',
  ),
  CHAIN_QUORUM: whole(2, 9, 2, 'Providers that must agree in quorum mode.'),
  CHAIN_CODE_HASH: optional(
    setting(
      '',
      '0x and 64 hex digits',
      (text) => (/^0x[0-9a-f]{64}$/.test(text) ? (text as Hex) : null),
      'keccak256 of the deployed contract code; needed in proof mode.',
    ),
  ),
  CHAIN_RECORDS_SLOT: whole(0, 1_000_000, 3, 'Storage slot of the record mapping, for proofs.'),
  CHAIN_START_BLOCK: whole(
    0,
    999_999_999_999,
    0,
    'Block of the contract’s deployment, or any before: where the history of a token begins.',
  ),
  CHAIN_MAX_HEAD_AGE_SECONDS: optional(
    whole(0, 86_400, 30, 'Oldest acceptable head; 0: any; empty: 30 for latest, 600 for safe, 3600 for finalized.'),
  ),
  CHAIN_CACHE: optional(
    choice(
      ['events', 'head', 'off'],
      'events keeps a verdict until its token changes; head until the next block; off reads every time. Empty: events with CHAIN_INTERFACE=registry, else head.',
    ),
  ),
  CHAIN_CACHE_ENTRIES: whole(1, 10_000_000, 100_000, 'Most verdicts kept in memory (about 1.5 kB each).'),
  PROOF_BUNDLE: choice(
    ['off', 'on'],
    'on: GET /api/asset/{tokenId}/proof answers with the verdict and its storage proof.',
  ),
  INDEX_POLL_MS: whole(
    5,
    60_000,
    500,
    'Milliseconds between two looks of the indexer at the head; each is one provider call.',
  ),
  INDEX_CONFIRMATIONS: whole(0, 10_000, 0, 'Blocks that the index stays behind the head.'),
  OPERATOR_KEY: secret(
    optional(
      hexBytes(
        32,
        32,
        'Private key that writes to the registry (issuer, binder, QA, guardian, recycler, relayer); empty: this service only reads.',
      ),
    ),
  ),
  ATTESTER_KEY: secret(optional(hexBytes(32, 32, 'Private key that signs claims after a tap (ATTESTER role).'))),
} as const
