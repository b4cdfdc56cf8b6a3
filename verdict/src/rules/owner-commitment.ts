/** The commitment to an owner, and the test of a candidate against it (spec §2.1 `owner_commitment`). */
import { abiEncode, type Hex, keccak256 } from '../lib/hex.ts'
import { isAddress } from './address.ts'
import { parseTokenId } from './token-id.ts'
import type { Verdict } from './verdict.ts'

/**
 * Commits to an owner without printing the address: `keccak256(abi.encode(uint256 chainId, address contract, uint256
 * tokenId, address owner))`, 32 bytes in lower-case hex, or `null` for the zero owner (spec §2.1). This is data
 * minimisation, not secrecy: the chain itself shows the owner.
 */
export function ownerCommitment(of: {
  chainId: number | bigint
  contract: Hex
  tokenId: bigint
  owner: Hex
}): Hex | null {
  const owner = BigInt(of.owner)
  if (owner === 0n) return null
  return keccak256(abiEncode(BigInt(of.chainId), BigInt(of.contract), of.tokenId, owner))
}

/**
 * Does the verdict commit to this address? Computes the commitment from the verdict's own `chainRef` and compares (spec
 * §2.1). False for an unowned token, for text that is not an address, and for a verdict whose token id or contract is
 * malformed.
 */
export function isOwner(verdict: Verdict, candidate: Hex): boolean {
  const { chain_id, contract, token_id } = verdict.chainRef
  const tokenId = parseTokenId(token_id)
  if (verdict.owner_commitment === null || tokenId === null || !isAddress(contract) || !isAddress(candidate))
    return false
  return ownerCommitment({ chainId: chain_id, contract, tokenId, owner: candidate }) === verdict.owner_commitment
}
