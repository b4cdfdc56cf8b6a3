/**
 * The second form of an attestation: one EIP-712 signature over everything that the gateway's answer shows about a token
 * (spec §4.8, decisions 0010).
 */
import type { Hex } from '../lib/hex.ts'
import { checksumAddress } from '../rules/address.ts'
import { isAuthentic, isFlagged, type StateCode } from '../rules/lifecycle.ts'
import { type TypedData, typedDataDigest } from './eip712.ts'

/** The record of a token at a block of a registry. `authentic` and `flagged` follow from it (spec §2.1). */
export type AssetAttestation = Readonly<{
  tokenId: bigint
  state: StateCode
  /** The record's flag bits (`assetFlags`), 0–255. */
  flags: number
  blockNumber: number | bigint
  blockHash: Hex
  /** `null` when the token has no owner. */
  ownerCommitment: Hex | null
  /** Unix seconds of issuance. */
  issuedAt: number | bigint
  chainId: number | bigint
  /** The core contract, in any case. */
  verifyingContract: Hex
}>

/** The same in plain JSON. */
export type AssetAttestationTypedData = TypedData<
  'AssetAttestation',
  Readonly<{
    /** Decimal text, because ids reach 2^256-1. */
    tokenId: string
    state: StateCode
    flags: number
    authentic: boolean
    flagged: boolean
    blockNumber: number
    blockHash: Hex
    /** 32 zero bytes when the token has no owner. */
    ownerCommitment: Hex
    issuedAt: number
  }>
>

/** The commitment of a token without an owner, where a field cannot be `null`. */
export const noOwner: Hex = `0x${'0'.repeat(64)}`

/**
 * The digest of the signature: domain `{ name: "Touchstone", version: "2", chainId, verifyingContract }`, primary type
 * `AssetAttestation(uint256 tokenId,uint8 state,uint8 flags,bool authentic,bool flagged,uint64 blockNumber,bytes32
 * blockHash,bytes32 ownerCommitment,uint64 issuedAt)`.
 */
export function assetAttestationDigest(facts: AssetAttestation): Hex {
  return typedDataDigest(assetAttestationTypedData(facts))
}

/** The EIP-712 typed data in plain JSON, as the gateway's answer carries it in `attestation.v2`. */
export function assetAttestationTypedData(facts: AssetAttestation): AssetAttestationTypedData {
  const { tokenId, state, flags, chainId, verifyingContract, blockNumber, blockHash, ownerCommitment, issuedAt } = facts
  return {
    domain: {
      name: 'Touchstone',
      version: '2',
      chainId: Number(chainId),
      verifyingContract: checksumAddress(verifyingContract),
    },
    types: { AssetAttestation: assetAttestationFields },
    primaryType: 'AssetAttestation',
    message: {
      tokenId: String(tokenId),
      state,
      flags,
      authentic: isAuthentic(facts),
      flagged: isFlagged(facts),
      blockNumber: Number(blockNumber),
      blockHash,
      ownerCommitment: ownerCommitment ?? noOwner,
      issuedAt: Number(issuedAt),
    },
  }
}

const assetAttestationFields = [
  { name: 'tokenId', type: 'uint256' },
  { name: 'state', type: 'uint8' },
  { name: 'flags', type: 'uint8' },
  { name: 'authentic', type: 'bool' },
  { name: 'flagged', type: 'bool' },
  { name: 'blockNumber', type: 'uint64' },
  { name: 'blockHash', type: 'bytes32' },
  { name: 'ownerCommitment', type: 'bytes32' },
  { name: 'issuedAt', type: 'uint64' },
] as const
