/**
 * The first form of an attestation has a raw signature over token, state, chain and time (spec §4.8). Beside it stands
 * an EIP-712 one that also covers block and registry. Neither covers `authentic` and `flagged`; the second form does.
 */
import { abiEncode, type Hex, keccak256 } from '../lib/hex.ts'
import { checksumAddress } from '../rules/address.ts'
import type { StateCode } from '../rules/lifecycle.ts'
import { type TypedData, typedDataDigest } from './eip712.ts'

/**
 * The statement of the raw signature: this token was in this state. `timestamp` is unix seconds of issuance, not of the
 * record.
 */
export type AttestationMessage = Readonly<{
  tokenId: bigint
  state: StateCode
  chainId: number | bigint
  timestamp: number | bigint
}>

/** The EIP-712 form also names the block that the state was read at and the registry as `verifyingContract`. */
export type TypedAttestationMessage = AttestationMessage &
  Readonly<{ blockNumber: number | bigint; blockHash: Hex; verifyingContract: Hex }>

/** The EIP-712 form in plain JSON. */
export type AttestationTypedData = TypedData<
  'AssetState',
  Readonly<{
    /** Decimal text, because ids reach 2^256-1. */
    tokenId: string
    state: StateCode
    chainId: number
    timestamp: number
    blockNumber: number
    blockHash: Hex
  }>
>

/**
 * The digest of the raw signature (spec §4.8): `keccak256(abi.encode(uint256 tokenId, uint8 state, uint256 chainId,
 * uint64 timestamp))`. The signature is over this digest itself, without a prefix. Where value is at stake, use an
 * EIP-712 form.
 */
export function attestationDigest({ tokenId, state, chainId, timestamp }: AttestationMessage): Hex {
  return keccak256(abiEncode(tokenId, BigInt(state), BigInt(chainId), BigInt(timestamp)))
}

/**
 * The digest of the EIP-712 signature: domain `{ name: "Touchstone", version: "1", chainId, verifyingContract }`,
 * primary type `AssetState(uint256 tokenId,uint8 state,uint256 chainId,uint64 timestamp,uint64 blockNumber,bytes32
 * blockHash)`.
 */
export function attestationTypedDigest(message: TypedAttestationMessage): Hex {
  return typedDataDigest(attestationTypedData(message))
}

/**
 * Returns the same as EIP-712 typed data in plain JSON, as the gateway's answer carries it. Wallets and libraries take
 * it in this form (`eth_signTypedData_v4`; MetaMask also wants `EIP712Domain` among the types).
 */
export function attestationTypedData(message: TypedAttestationMessage): AttestationTypedData {
  const { tokenId, state, chainId, timestamp, blockNumber, blockHash, verifyingContract } = message
  return {
    domain: {
      name: 'Touchstone',
      version: '1',
      chainId: Number(chainId),
      verifyingContract: checksumAddress(verifyingContract),
    },
    types: { AssetState: assetStateFields },
    primaryType: 'AssetState',
    message: {
      tokenId: String(tokenId),
      state,
      chainId: Number(chainId),
      timestamp: Number(timestamp),
      blockNumber: Number(blockNumber),
      blockHash,
    },
  }
}

const assetStateFields = [
  { name: 'tokenId', type: 'uint256' },
  { name: 'state', type: 'uint8' },
  { name: 'chainId', type: 'uint256' },
  { name: 'timestamp', type: 'uint64' },
  { name: 'blockNumber', type: 'uint64' },
  { name: 'blockHash', type: 'bytes32' },
] as const
