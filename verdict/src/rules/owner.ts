/** The test of a candidate against the owner that a verdict commits to (spec §2.1 `owner_commitment`). */
import type { Hex } from '../lib/hex.ts'
import { isAddress } from './address.ts'
import { ownerCommitment } from './owner-commitment.ts'
import { parseTokenId } from './token-id.ts'
import type { Verdict } from './verdict.ts'

/**
 * Returns whether the verdict commits to this address, by the commitment of the verdict's own `chainRef` (spec §2.1). False for an unowned
 * token, for text that is not an address, and for a verdict whose token id or contract is malformed.
 */
export function isOwner(verdict: Verdict, candidate: Hex): boolean {
  const { chain_id, contract, token_id } = verdict.chainRef
  const tokenId = parseTokenId(token_id)
  if (verdict.owner_commitment === null || tokenId === null || !isAddress(contract) || !isAddress(candidate))
    return false
  return ownerCommitment({ chainId: chain_id, contract, tokenId, owner: candidate }) === verdict.owner_commitment
}
