/**
 * Writes the facts of the second form as an off-chain attestation of the Ethereum Attestation Service (EAS). The format
 * is EAS's version 2, for tools that read those (decisions 0010). EAS's contract is a predeploy of Base Sepolia.
 */
import { utf8ToBytes } from '@noble/hashes/utils.js'
import { abiEncode, bytesOf, type Hex, hexOf, keccak256, word } from '../lib/hex.ts'
import { zeroAddress } from '../rules/address.ts'
import { isAuthentic, isFlagged } from '../rules/lifecycle.ts'
import { type TypedData, typedDataDigest } from './eip712.ts'
import { type AssetAttestation, noOwner } from './v2.ts'

/** The schema, as it is registered: once for all gateways, without a resolver, not revocable. */
export const easSchema: string =
  'uint256 chainId,address registry,uint256 tokenId,uint8 state,uint8 flags,bool authentic,bool flagged,' +
  'uint64 blockNumber,bytes32 blockHash,bytes32 ownerCommitment'

/** The schema's UID: `keccak256(abi.encodePacked(string schema, address resolver, bool revocable))`. */
export const easSchemaUid: Hex = '0xcd2144140144acd9c938d3699176cdb8ac446c931aa7aad3d3226bc1cb54e3d9'

/** The members of EAS's struct `Attest`. `time` is unix seconds of issuance, `data` is `abi.encode` of the schema's members. */
type EasMessage = Readonly<{
  version: 2
  schema: Hex
  recipient: Hex
  time: number
  expirationTime: number
  revocable: boolean
  refUID: Hex
  data: Hex
  salt: Hex
}>

/** A signed off-chain attestation in plain JSON, as EAS's SDK and explorer take it. */
export type EasAttestation = Readonly<{
  sig: TypedData<'Attest', EasMessage> &
    Readonly<{ version: 2; uid: Hex; signature: Readonly<{ v: number; r: Hex; s: Hex }> }>
  signer: Hex
}>

/** The digest that is signed (EIP-712, domain «EAS Attestation»). */
export function easDigest(facts: AssetAttestation): Hex {
  return typedDataDigest(easTypedData(facts))
}

/** The attestation with its signature: 65 bytes r‖s‖v over `easDigest`. */
export function easAttestation(facts: AssetAttestation, by: { signer: Hex; signature: Hex }): EasAttestation {
  const { domain, types, primaryType, message } = easTypedData(facts)
  const r: Hex = `0x${by.signature.slice(2, 66)}`
  const s: Hex = `0x${by.signature.slice(66, 130)}`
  const signature = { v: Number(`0x${by.signature.slice(130)}`), r, s }
  return { sig: { version: 2, uid: uidOf(message), domain, primaryType, types, message, signature }, signer: by.signer }
}

/** The typed data without a signature. No recipient, no expiry, no salt: equal facts have equal UIDs. */
export function easTypedData(facts: AssetAttestation): TypedData<'Attest', EasMessage> {
  const { tokenId, state, flags, chainId, verifyingContract, blockNumber, blockHash, ownerCommitment, issuedAt } = facts
  const place = [BigInt(chainId), BigInt(verifyingContract), tokenId]
  const record = [
    state,
    flags,
    isAuthentic(facts),
    isFlagged(facts),
    blockNumber,
    blockHash,
    ownerCommitment ?? noOwner,
  ]
  return {
    domain: {
      name: 'EAS Attestation',
      version: '1.2.0',
      chainId: 84532,
      verifyingContract: '0x4200000000000000000000000000000000000021',
    },
    types: { Attest: attestFields },
    primaryType: 'Attest',
    message: {
      version: 2,
      schema: easSchemaUid,
      recipient: zeroAddress,
      time: Number(issuedAt),
      expirationTime: 0,
      revocable: false,
      refUID: zeroWord,
      data: hexOf(abiEncode(...place, ...record.map(BigInt))),
      salt: zeroWord,
    },
  }
}

const zeroWord: Hex = `0x${word(0n)}`
const attestFields = [
  { name: 'version', type: 'uint16' },
  { name: 'schema', type: 'bytes32' },
  { name: 'recipient', type: 'address' },
  { name: 'time', type: 'uint64' },
  { name: 'expirationTime', type: 'uint64' },
  { name: 'revocable', type: 'bool' },
  { name: 'refUID', type: 'bytes32' },
  { name: 'data', type: 'bytes' },
  { name: 'salt', type: 'bytes32' },
] as const

/** EAS's UID of an off-chain attestation: keccak256 of its packed members, the schema's UID as text. */
function uidOf({ version, schema, recipient, time, expirationTime, revocable, refUID, data, salt }: EasMessage): Hex {
  const packed = [
    digits(version, 2),
    hexOf(utf8ToBytes(schema)).slice(2),
    recipient.slice(2),
    zeroAddress.slice(2), // the attester, who is not named off chain
    digits(time, 8),
    digits(expirationTime, 8),
    digits(Number(revocable), 1),
    refUID.slice(2),
    data.slice(2),
    salt.slice(2),
    digits(0, 4), // EAS's counter of collisions
  ]
  return keccak256(bytesOf(`0x${packed.join('')}`) ?? new Uint8Array())
}

/** A number as big-endian bytes in hex. */
function digits(value: number, bytes: number): string {
  return value.toString(16).padStart(2 * bytes, '0')
}
