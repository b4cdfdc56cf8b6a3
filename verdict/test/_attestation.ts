/** An attestation as a gateway sells it, encoded, hashed and signed by viem instead of by the library. */
import { encodeAbiParameters, keccak256 } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import {
  type AssetAttestation,
  attestationKeyId,
  easAttestation,
  easTypedData,
  type Hex,
  lifecycleStates,
  type StateCode,
} from '../src/index.ts'

export const gateway = privateKeyToAccount(generatePrivateKey())
export const stranger = privateKeyToAccount(generatePrivateKey())
export const contract = '0x5FbDB2315678afecb367f032d93F642f64180aa3'
export const issuedAt = 1_795_227_313

/** The facts of the vectors that other libraries made. */
export const facts = {
  tokenId: 2n ** 256n - 1n,
  state: 5,
  flags: 0x21,
  blockNumber: 31337042n,
  blockHash: `0x${'ab'.repeat(32)}`,
  ownerCommitment: `0x${'0c'.repeat(32)}`,
  issuedAt: 1795227313,
  chainId: 84532,
  verifyingContract: '0x5fbdb2315678afecb367f032d93f642f64180aa3',
} as const satisfies AssetAttestation

type Sale = {
  tokenId?: bigint
  state?: StateCode
  flags?: number
  /** Signed instead of what follows from state and flags. */
  flagged?: boolean
  ownerCommitment?: Hex
  chainId?: number
  issued?: number
  account?: typeof gateway
}

/** The parsed body of a paid answer. */
export async function sold(sale: Sale = {}) {
  const { tokenId = 1042n, state = 3, chainId = 84532, issued: timestamp = issuedAt, account = gateway } = sale
  const { flags = 0, ownerCommitment = `0x${'0'.repeat(64)}` } = sale
  const { flagged = state === 5 || (flags & 0x1f) !== 0 } = sale
  const authentic = state >= 1 && state <= 4 && (flags & 0x1f) === 0
  const blockHash = `0x${'ab'.repeat(32)}` as const
  const blockNumber = 31_337_042
  const words = [{ type: 'uint256' }, { type: 'uint8' }, { type: 'uint256' }, { type: 'uint64' }] as const
  const digest = keccak256(encodeAbiParameters(words, [tokenId, state, BigInt(chainId), BigInt(timestamp)]))
  const domain = { name: 'Touchstone', version: '1', chainId, verifyingContract: contract } as const
  const types = {
    AssetState: [
      { name: 'tokenId', type: 'uint256' },
      { name: 'state', type: 'uint8' },
      { name: 'chainId', type: 'uint256' },
      { name: 'timestamp', type: 'uint64' },
      { name: 'blockNumber', type: 'uint64' },
      { name: 'blockHash', type: 'bytes32' },
    ],
  } as const
  const message = { tokenId: String(tokenId), state, chainId, timestamp }
  const typedMessage = { ...message, blockNumber, blockHash }
  const typedSignature = await account.signTypedData({
    domain,
    types,
    primaryType: 'AssetState',
    message: {
      ...typedMessage,
      tokenId,
      chainId: BigInt(chainId),
      timestamp: BigInt(timestamp),
      blockNumber: BigInt(blockNumber),
    },
  })
  const v2Domain = { ...domain, version: '2' } as const
  const v2Types = {
    AssetAttestation: [
      { name: 'tokenId', type: 'uint256' },
      { name: 'state', type: 'uint8' },
      { name: 'flags', type: 'uint8' },
      { name: 'authentic', type: 'bool' },
      { name: 'flagged', type: 'bool' },
      { name: 'blockNumber', type: 'uint64' },
      { name: 'blockHash', type: 'bytes32' },
      { name: 'ownerCommitment', type: 'bytes32' },
      { name: 'issuedAt', type: 'uint64' },
    ],
  } as const
  const shown = { state, flags, authentic, flagged }
  const v2Message = { tokenId: String(tokenId), ...shown, blockNumber, blockHash, ownerCommitment, issuedAt: timestamp }
  const v2Signature = await account.signTypedData({
    domain: v2Domain,
    types: v2Types,
    primaryType: 'AssetAttestation',
    message: { ...v2Message, tokenId, blockNumber: BigInt(blockNumber), issuedAt: BigInt(timestamp) },
  })
  return {
    version: '1',
    assetId: String(tokenId),
    chain: 'base-sepolia',
    state: lifecycleStates[state],
    state_code: state,
    authentic,
    flagged,
    chainRef: {
      chain_id: chainId,
      contract,
      token_id: String(tokenId),
      block_number: blockNumber,
      block_hash: blockHash,
    },
    attestation: {
      message,
      encoding: 'abi.encode(uint256,uint8,uint256,uint64)',
      digest,
      signature: await account.sign({ hash: digest }),
      signer: account.address,
      keyId: attestationKeyId(account.address),
      eip712: { domain, types, primaryType: 'AssetState', message: typedMessage, signature: typedSignature },
      v2: {
        domain: v2Domain,
        types: v2Types,
        primaryType: 'AssetAttestation',
        message: v2Message,
        signature: v2Signature,
      },
    },
    payment: { success: true, transaction: `0x${'cd'.repeat(32)}`, payer: stranger.address, network: 'base-sepolia' },
    network: 'base-sepolia',
    audit_status: 'unaudited',
    production_ready: false,
  }
}

/** The facts of a paid answer, and its EAS attestation with the signature of an account. */
export async function easOf({ attestation: { v2 } }: Awaited<ReturnType<typeof sold>>, account = gateway) {
  const { chainId, verifyingContract } = v2.domain
  const facts = {
    ...v2.message,
    tokenId: BigInt(v2.message.tokenId),
    ownerCommitment: null,
    chainId,
    verifyingContract,
  }
  const typed = easTypedData(facts)
  const message = { ...typed.message, time: BigInt(typed.message.time), expirationTime: 0n }
  const signature = await account.signTypedData({ ...typed, message } as never)
  return { facts, signature, eas: easAttestation(facts, { signer: gateway.address, signature }) }
}

/** The same answer with other members of its attestation. */
export function withMembers<Body extends { attestation: object }, Members extends object>(
  body: Body,
  members: Members,
) {
  return { ...body, attestation: { ...body.attestation, ...members } }
}

/** The same answer as gateways gave it before the second form. */
export function inOldForm<Body extends { attestation: { v2?: unknown } }>(body: Body) {
  const { v2: _, ...attestation } = body.attestation
  return { ...body, attestation }
}
