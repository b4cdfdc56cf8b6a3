/**
 * The proof that is sold (spec §4.8): the verdict of this moment, signed twice. `signature` is raw ECDSA over
 * keccak256(abi.encode(tokenId, state, chainId, timestamp)); the EIP-712 form also names block and contract.
 */
import {
  attestationDigest,
  attestationSigner,
  attestationTypedData,
  attestationTypedDigest,
  checksumAddress,
  type AttestationTypedData,
  type Hex,
  type Verdict,
} from '@touchstone/verdict'
import type { Verdicts } from '../asset/verdicts.ts'
import { GatewayFault, within } from './answers.ts'
import type { Purchase } from './purchase.ts'
import { chainName } from './terms.ts'

/** A key that does nothing else. Signatures are 65 bytes r, s, v with v 27 or 28 and a low s. */
export type AttestationKey = {
  readonly address: Hex
  readonly keyId: string
  readonly sign: (hash: Hex) => Promise<Hex>
  readonly signTypedData: (data: AttestationTypedData) => Promise<Hex>
}

/** The success body without `payment`, as JSON; null when the asset does not exist: NONE is never attested. */
export type Attest = (purchase: Purchase) => Promise<string | null>

const readMs = 8_000
const signMs = 2_000

/** `now` is in milliseconds. The function throws a GatewayFault: chain_unavailable or signer_unavailable. */
export function createAttest({
  verdicts,
  key,
  now = Date.now,
}: {
  readonly verdicts: Pick<Verdicts, 'answer'>
  /** The key that signs now; asked for each proof, because keys rotate. */
  readonly key: () => AttestationKey
  readonly now?: () => number
}): Attest {
  return async ({ tokenId, assetId }) => {
    const answer = await within(readMs, 'chain_unavailable', verdicts.answer(tokenId))
    if (answer === null) return null
    const { verdict } = answer
    if (verdict.token_id !== assetId || verdict.state_code === 0)
      throw new GatewayFault('chain_unavailable', { cause: 'the verdict is not on this asset' })
    const attestation = await within(signMs, 'signer_unavailable', signed(key(), verdict, Math.floor(now() / 1000)))
    const { state, state_code, authentic, flagged, chainRef, network, audit_status, production_ready } = verdict
    return JSON.stringify({
      version: '1',
      assetId,
      chain: chainName,
      state,
      state_code,
      authentic,
      flagged,
      chainRef,
      attestation,
      network,
      audit_status,
      production_ready,
    })
  }
}

/** `proof` with what was paid for it, in the order of the success body. */
export function withPayment(proof: string, payment: object): string {
  const { network, audit_status, production_ready, ...rest } = JSON.parse(proof) as Record<string, unknown>
  return JSON.stringify({ ...rest, payment, network, audit_status, production_ready })
}

async function signed(key: AttestationKey, { token_id, state_code, chainRef }: Verdict, timestamp: number) {
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
    throw new Error('the key signs something else')
  return {
    message: { tokenId: token_id, state: state_code, chainId: chainRef.chain_id, timestamp },
    encoding: 'abi.encode(uint256,uint8,uint256,uint64)',
    digest,
    signature,
    signer: checksumAddress(key.address),
    keyId: key.keyId,
    eip712: { ...typedData, signature: typedSignature },
  }
}
