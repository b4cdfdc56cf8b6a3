/**
 * The proof that is sold (spec §4.8): the current verdict, signed twice. `signature` is raw ECDSA over
 * keccak256(abi.encode(tokenId, state, chainId, timestamp)); the EIP-712 signature also covers block and contract.
 */
import {
  attestationDigest,
  attestationSigner,
  attestationTypedData,
  attestationTypedDigest,
  checksumAddress,
  type AttestationTypedData,
  type Hex,
  type PublishedKey,
  type Verdict,
} from '@touchstone/verdict'
import type { Verdicts } from '../../assets/verdicts.ts'
import { GatewayFault, within } from '../errors.ts'
import type { Order } from '../order.ts'
import { chainId, chainName } from '../../domain/chain.ts'

/** A key that does nothing else. Signatures are 65 bytes r, s, v with v 27 or 28 and a low s. */
export type AttestationKey = {
  readonly address: Hex
  readonly keyId: string
  readonly sign: (hash: Hex) => Promise<Hex>
  readonly signTypedData: (data: AttestationTypedData) => Promise<Hex>
}

/** Returns the success body without `payment` as JSON, or null when the asset does not exist: NONE is never attested. */
export type Attest = (order: Order) => Promise<string | null>

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
  readonly key: () => AttestationKey
  readonly now?: (() => number) | undefined
}): Attest {
  return async ({ tokenId, assetId }) => {
    const answer = await within(readMs, 'chain_unavailable', verdicts.answer(tokenId))
    if (answer === null) return null
    const { verdict } = answer
    if (verdict.token_id !== assetId || verdict.state_code === 0)
      throw new GatewayFault('chain_unavailable', { cause: 'the verdict is about another asset' })
    const attestation = await within(signMs, 'signer_unavailable', sign(key(), verdict, Math.floor(now() / 1000)))
    const { state, state_code, authentic, flagged, chainRef, network, audit_status, production_ready } = verdict
    const facts = { state, state_code, authentic, flagged, chainRef, attestation }
    const status = { network, audit_status, production_ready }
    return JSON.stringify({ version: '1', assetId, chain: chainName, ...facts, ...status })
  }
}

/** Adds the payment to a proof, in the order of the success body. */
export function withPayment(proof: string, payment: object): string {
  const { network, audit_status, production_ready, ...rest } = JSON.parse(proof) as Record<string, unknown>
  return JSON.stringify({ ...rest, payment, network, audit_status, production_ready })
}

async function sign(key: AttestationKey, { token_id, state_code, chainRef }: Verdict, timestamp: number) {
  const facts = {
    tokenId: BigInt(token_id),
    state: state_code,
    chainId: chainRef.chain_id,
    timestamp,
    blockNumber: chainRef.block_number,
    blockHash: chainRef.block_hash as Hex,
    verifyingContract: chainRef.contract as Hex,
  } as const
  const digest = attestationDigest(facts)
  const typedData = attestationTypedData(facts)
  const [signature, typedSignature] = await Promise.all([key.sign(digest), key.signTypedData(typedData)])
  const isOurs = (hash: Hex, by: Hex) => attestationSigner(hash, by) === key.address.toLowerCase()
  if (!isOurs(digest, signature) || !isOurs(attestationTypedDigest(facts), typedSignature))
    throw new Error('The signature does not belong to the attestation key.')
  return {
    message: { tokenId: token_id, state: state_code, chainId: chainRef.chain_id, timestamp },
    encoding,
    digest,
    signature,
    signer: checksumAddress(key.address),
    keyId: key.keyId,
    eip712: { ...typedData, signature: typedSignature },
  }
}

const encoding = 'abi.encode(uint256,uint8,uint256,uint64)'

/** Makes /.well-known/attestation.json: how to check an attestation, with every key that ever signed. */
export function attestationDocument(contract: Hex, keys: readonly PublishedKey[]): string {
  const { domain, types, primaryType } = attestationTypedData({ ...anyFacts, chainId, verifyingContract: contract })
  return JSON.stringify({
    version: '1',
    chain: chainName,
    chainId,
    contract: domain.verifyingContract,
    encoding,
    members: ['tokenId', 'state', 'chainId', 'timestamp'],
    hash: 'keccak256',
    signature: 'secp256k1, 65 bytes r, s, v; s in the lower half; v 27 or 28; over the digest without a prefix',
    eip712: { domain, types, primaryType },
    keys,
  })
}

const anyFacts = { tokenId: 0n, state: 0, timestamp: 0, blockNumber: 0, blockHash: `0x${'0'.repeat(64)}` } as const
