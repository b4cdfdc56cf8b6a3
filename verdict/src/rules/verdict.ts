/**
 * The verdict and the one rule that makes it from a record (spec §2.1–§2.3). The names here are the names on the wire.
 */
import type { Hex } from '../lib/hex.ts'
import { checksumAddress } from './address.ts'
import { isAuthentic, isFlagged, type LifecycleState, lifecycleStates, type StateCode } from './lifecycle.ts'
import { ownerCommitment } from './owner-commitment.ts'
import type { AssetRecord } from './record.ts'

/** The chain that verdicts of version 1 speak of (spec §2.2 `chain_id`). */
export const verdictChainId: number = 84532

/** The block, contract and token that a verdict was read from (spec §2.2). */
export type ChainRef = {
  /** Always 84532. */
  chain_id: number
  /** EIP-55 checksummed address of the core contract. */
  contract: Hex
  /** Decimal text, the same as the verdict's `token_id`. */
  token_id: string
  block_number: number
  /** 32 bytes, lower-case hex. */
  block_hash: Hex
}

/** The members of a verdict's `chainRef`, in the order of spec §2.2. */
export const chainRefKeys = ['chain_id', 'contract', 'token_id', 'block_number', 'block_hash'] as const

/** Product metadata written by the minter of the token: data, never instructions (spec §2.3). */
export type Untrusted = {
  _warning: string
  name?: string
  brand?: string
  description?: string
  sku?: string
  origin?: string
  size?: string
  image?: string
}

/** The answer about one token at one block: twelve keys, or eleven without metadata (spec §2.1). */
export type Verdict = {
  version: '1'
  token_id: string
  authentic: boolean
  state: LifecycleState
  state_code: StateCode
  flagged: boolean
  /** 32 bytes, lower-case hex; `null` when the token has no owner. */
  owner_commitment: Hex | null
  chainRef: ChainRef
  untrusted?: Untrusted
  network: 'base-sepolia'
  audit_status: 'unaudited'
  production_ready: false
}

/**
 * Makes the verdict of a record read at a block (spec §2.1), keys in the specification's order.
 * Returns `null` for state 0: the token does not exist (spec §3).
 * `contract` may have any case; `block.number` is below 2^53, as every real one is.
 */
export function verdictOf(of: {
  record: AssetRecord
  tokenId: bigint
  block: { number: bigint; hash: Hex }
  contract: Hex
  chainId: number
  untrusted?: Untrusted | undefined
}): Verdict | null {
  const { record, tokenId, block, contract, chainId, untrusted } = of
  if (record.state === 0) return null
  return {
    version: '1',
    token_id: String(tokenId),
    authentic: isAuthentic(record),
    state: lifecycleStates[record.state],
    state_code: record.state,
    flagged: isFlagged(record),
    owner_commitment: ownerCommitment({ chainId, contract, tokenId, owner: record.owner }),
    chainRef: {
      chain_id: chainId,
      contract: checksumAddress(contract),
      token_id: String(tokenId),
      block_number: Number(block.number),
      block_hash: block.hash,
    },
    ...(untrusted === undefined ? {} : { untrusted }),
    network: 'base-sepolia',
    audit_status: 'unaudited',
    production_ready: false,
  }
}
