/** The commitment to an owner (spec §2.1 `owner_commitment`). */
import { abiEncode, type Hex, keccak256 } from '../lib/hex.ts'

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
