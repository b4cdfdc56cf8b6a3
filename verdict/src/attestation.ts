/** The statement that the payment-gated gateway signs about a token, and the recovery of its signer (spec §4.8). */
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { concatBytes, utf8ToBytes } from '@noble/hashes/utils.js'
import { checksumAddress } from './address.ts'
import { abiEncode, bytesOf, type Hex, keccak256 } from './hex.ts'
import type { StateCode } from './lifecycle.ts'

/**
 * The statement of every attestation: this token was in this state. `timestamp` is unix seconds of issuance, not of the
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
export type AttestationTypedData = Readonly<{
  domain: Readonly<{ name: 'Touchstone'; version: '1'; chainId: number; verifyingContract: Hex }>
  types: Readonly<{ AssetState: readonly Readonly<{ name: string; type: string }>[] }>
  primaryType: 'AssetState'
  /** `tokenId` is decimal text, because ids reach 2^256-1. */
  message: Readonly<{
    tokenId: string
    state: StateCode
    chainId: number
    timestamp: number
    blockNumber: number
    blockHash: Hex
  }>
}>

/**
 * The digest of the raw signature (spec §4.8): `keccak256(abi.encode(uint256 tokenId, uint8 state, uint256 chainId,
 * uint64 timestamp))`. The signature is over this digest itself, without a prefix. Where value is at stake, use the
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
  const { tokenId, state, chainId, timestamp, blockNumber, blockHash, verifyingContract } = message
  const domain = hashStruct(
    'EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)',
    hashText('Touchstone'),
    hashText('1'),
    BigInt(chainId),
    BigInt(verifyingContract),
  )
  const assetState = hashStruct(
    'AssetState(uint256 tokenId,uint8 state,uint256 chainId,uint64 timestamp,uint64 blockNumber,bytes32 blockHash)',
    tokenId,
    BigInt(state),
    BigInt(chainId),
    BigInt(timestamp),
    BigInt(blockNumber),
    BigInt(blockHash),
  )
  return keccak256(concatBytes(Uint8Array.of(0x19, 0x01), abiEncode(domain, assetState)))
}

/**
 * The same as EIP-712 typed data in plain JSON, as the gateway's answer carries it and as wallets and libraries take it
 * (`eth_signTypedData_v4`; MetaMask also wants `EIP712Domain` among the types).
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

/**
 * The lower-case address that signed a digest, or `null` when this is no such signature: 65 bytes r‖s‖v, s in the lower
 * half of the curve order (EIP-2), v 27 or 28. Compare the address with the gateway's published keys.
 */
export function attestationSigner(digest: Hex, signature: Hex): Hex | null {
  const hash = bytesOf(digest)
  const bytes = bytesOf(signature)
  const recovery = (bytes?.[64] ?? 0) - 27
  if (hash?.length !== 32 || bytes?.length !== 65 || (recovery !== 0 && recovery !== 1)) return null
  try {
    const parts = secp256k1.Signature.fromBytes(bytes.subarray(0, 64), 'compact').addRecoveryBit(recovery)
    if (parts.hasHighS()) return null
    const point = parts.recoverPublicKey(hash).toBytes(false)
    return `0x${keccak256(point.subarray(1)).slice(26)}`
  } catch {
    return null // r or s out of range, or no point has this x
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

/** `hashStruct` of EIP-712 for members that fit one word. */
function hashStruct(type: string, ...members: bigint[]): bigint {
  return BigInt(keccak256(abiEncode(hashText(type), ...members)))
}

function hashText(text: string): bigint {
  return BigInt(keccak256(utf8ToBytes(text)))
}
