/**
 * The proof that is sold (spec §4.8): the current verdict, signed in each form. `signature` is raw ECDSA over keccak256(abi.encode(tokenId,
 * state, chainId, timestamp)); `eip712` also covers block and contract; `v2` covers everything that the answer shows of the asset; `eas` is
 * the same for tools of the Ethereum Attestation Service, on request.
 */
import { isDeepStrictEqual } from 'node:util'
import {
  assetAttestationDigest,
  assetAttestationTypedData,
  attestationDigest,
  attestationKeyId,
  attestationTypedData,
  attestationTypedDigest,
  checksumAddress,
  easAttestation,
  easDigest,
  easSchema,
  easSchemaUid,
  easTypedData,
  zeroAddress,
  type AssetAttestation,
  type AssetAttestationTypedData,
  type Hex,
  type PublishedKey,
  type TypedData,
  type Verdict,
} from '@touchstone/verdict'
import type { Verdicts } from '../../assets/verdicts.ts'
import { GatewayFault, within } from '../errors.ts'
import type { Order } from '../order.ts'
import { chainId, chainName } from '../../domain/chain.ts'
import type { EthereumKey } from '../../keys/ethereum.ts'
import { recoverSigner } from '../../lib/secp256k1.ts'

/** A key that does nothing else. `cannotSign` is one sentence why it signs nothing now; left out: it signs. */
export type AttestationKey = EthereumKey & { readonly keyId: string; readonly cannotSign?: string }

export function attestationKeyOf(key: EthereumKey): AttestationKey {
  return { ...key, keyId: attestationKeyId(key.address) }
}

/** Returns the checksummed address of the key that signs, or null where none is here any more. */
export function signerOf(key: () => AttestationKey): Hex | null {
  try {
    return checksumAddress(key().address)
  } catch {
    return null
  }
}

/**
 * Returns the success body without `payment` as JSON, or null when the asset does not exist: NONE is never attested. It returns `stored`
 * where that states what is true now, by the present key.
 */
export type Attest = (order: Order, stored?: string) => Promise<string | null>

const readMs = 8_000
const signMs = 2_000

/** The function throws a GatewayFault: chain_unavailable or signer_unavailable. `now` is in milliseconds. */
export function createAttest({
  verdicts,
  key,
  now = Date.now,
}: {
  readonly verdicts: Pick<Verdicts, 'answer'>
  /** Returns the key that signs now. It is called for each proof, because keys rotate. */
  readonly key: () => AttestationKey | Promise<AttestationKey>
  readonly now?: (() => number) | undefined
}): Attest {
  return async ({ tokenId, assetId, eas }, stored) => {
    const answer = await within(readMs, 'chain_unavailable', verdicts.answer(tokenId))
    if (answer === null) return null
    const { verdict, flags } = answer
    if (verdict.token_id !== assetId || verdict.state_code === 0)
      throw new GatewayFault('chain_unavailable', { cause: 'the verdict is about another asset' })
    const facts = factsOf(verdict, flags, Math.floor(now() / 1000))
    const signing = async () => {
      const signer = await key() // there may be none any more
      return stored !== undefined && isTrueStill(stored, facts, signer) ? null : sign(signer, facts, eas)
    }
    const attestation = await within(signMs, 'signer_unavailable', signing())
    if (attestation === null) return stored ?? null
    const { state, state_code, authentic, flagged, chainRef, network, audit_status, production_ready } = verdict
    const shown = { state, state_code, authentic, flagged, chainRef, attestation }
    const status = { network, audit_status, production_ready }
    return JSON.stringify({ version: '1', assetId, chain: chainName, ...shown, ...status })
  }
}

/** Adds the payment to a proof, in the order of the success body. */
export function withPayment(proof: string, payment: object): string {
  const { network, audit_status, production_ready, ...rest } = JSON.parse(proof) as Record<string, unknown>
  return JSON.stringify({ ...rest, payment, network, audit_status, production_ready })
}

/** Returns what is signed. `issuedAt` is in unix seconds. */
function factsOf({ token_id, state_code, owner_commitment, chainRef }: Verdict, flags: number, issuedAt: number) {
  return {
    tokenId: BigInt(token_id),
    state: state_code,
    flags,
    chainId: chainRef.chain_id,
    verifyingContract: chainRef.contract,
    blockNumber: chainRef.block_number,
    blockHash: chainRef.block_hash,
    ownerCommitment: owner_commitment,
    issuedAt,
  } satisfies AssetAttestation
}

type StoredProof = { readonly attestation?: { readonly signer?: unknown; readonly v2?: AssetAttestationTypedData } }

/** A proof that is older than so many seconds is signed anew: buyers take none that is much older. */
const mostAgeSeconds = 60

/** Returns whether this key signed a proof of these facts a moment ago. The block and the time are the proof’s own. */
function isTrueStill(proof: string, facts: ReturnType<typeof factsOf>, key: AttestationKey): boolean {
  const { attestation: { signer, v2 } = {} } = JSON.parse(proof) as StoredProof
  if (v2 === undefined || signer !== checksumAddress(key.address)) return false
  const { blockNumber, blockHash, issuedAt } = v2.message
  if (facts.issuedAt - Number(issuedAt) > mostAgeSeconds) return false
  const { domain, message } = assetAttestationTypedData({ ...facts, blockNumber, blockHash, issuedAt })
  return isDeepStrictEqual([v2.domain, v2.message], [domain, message])
}

async function sign(key: AttestationKey, facts: ReturnType<typeof factsOf>, withEas: boolean) {
  const { tokenId, state, chainId, issuedAt: timestamp } = facts
  const statement = { ...facts, timestamp }
  const digest = attestationDigest(statement)
  const [typed, v2] = [attestationTypedData(statement), assetAttestationTypedData(facts)]
  const [signature, typedSignature, v2Signature, easSignature] = await Promise.all([
    signed(key, digest),
    key.sign(attestationTypedDigest(statement)),
    key.sign(assetAttestationDigest(facts)),
    withEas ? key.sign(easDigest(facts)) : null,
  ])
  const signer = checksumAddress(key.address)
  return {
    message: { tokenId: String(tokenId), state, chainId, timestamp },
    encoding,
    digest,
    signature,
    signer,
    keyId: key.keyId,
    eip712: { ...typed, signature: typedSignature },
    v2: { ...v2, signature: v2Signature },
    ...(easSignature !== null && { eas: easAttestation(facts, { signer, signature: easSignature }) }),
  }
}

/** Returns the signature. Throws when another key made it, or over another digest; one look at each proof shows a key that is not the published one. */
async function signed({ address, sign }: AttestationKey, digest: Hex): Promise<Hex> {
  const signature = await sign(digest)
  if (recoverSigner(digest, signature) === address.toLowerCase()) return signature
  throw new Error('The signature does not belong to the attestation key.')
}

const encoding = 'abi.encode(uint256,uint8,uint256,uint64)'

/** Makes /.well-known/attestation.json: how to check an attestation, with every key that ever signed. */
export function attestationDocument(contract: Hex, keys: readonly PublishedKey[]): string {
  const any = { ...anyFacts, chainId, verifyingContract: contract }
  const eip712 = withoutMessage(attestationTypedData({ ...any, timestamp: 0 }))
  const eas = withoutMessage(easTypedData(any))
  return JSON.stringify({
    version: '1',
    chain: chainName,
    chainId,
    contract: eip712.domain.verifyingContract,
    encoding,
    members: ['tokenId', 'state', 'chainId', 'timestamp'],
    hash: 'keccak256',
    signature: 'secp256k1, 65 bytes r, s, v; s in the lower half; v 27 or 28; over the digest without a prefix',
    eip712,
    v2: withoutMessage(assetAttestationTypedData(any)),
    eas: { schema: easSchema, schemaUid: easSchemaUid, resolver: zeroAddress, revocable: false, version: 2, ...eas },
    keys,
  })
}

const withoutMessage = ({ domain, types, primaryType }: TypedData) => ({ domain, types, primaryType })

const anyFacts: Omit<AssetAttestation, 'chainId' | 'verifyingContract'> = {
  tokenId: 0n,
  state: 0,
  flags: 0,
  blockNumber: 0,
  blockHash: `0x${'0'.repeat(64)}`,
  ownerCommitment: null,
  issuedAt: 0,
}
