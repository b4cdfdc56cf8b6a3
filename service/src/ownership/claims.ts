/**
 * Claims from the page that a fresh tap has opened (spec §3, CLAIMED): the visitor's wallet consents, the attester confirms the tap, and
 * the operator pays for the transaction. The contract checks both signatures again.
 */
import { createHash } from 'node:crypto'
import type { Hex } from '@touchstone/verdict'
import { sentRequest, type WriteRequest } from '../chain/transactions/calls.ts'
import type { OperationStore } from '../chain/transactions/operations.ts'
import type { TransferReads } from '../chain/transactions/transfer-reads.ts'
import { digestOf, walletTypedData } from '../chain/transactions/typed-data.ts'
import type { Writer } from '../chain/transactions/writer.ts'
import { consentOf } from './consents.ts'

/** The tap that the visitor made, and the account that becomes the owner. */
type Claim = { readonly tokenId: bigint; readonly tapCounter: number; readonly claimant: Hex }
/** `deadline` is in unix seconds; it is part of what was signed. */
type SignedClaim = Claim & { readonly deadline: bigint; readonly signature: Hex }

/** `typedData` is for `eth_signTypedData_v4`. */
export type ClaimTerms = { readonly typedData: ReturnType<typeof walletTypedData>; readonly deadline: bigint }
/** taken: the item is not for sale any more, or not yet. unsigned: the consent is not the claimant's. refused: the operator cannot send it. */
export type ClaimOutcome =
  | { readonly status: 'mined' | 'sent'; readonly txHash: Hex }
  | 'taken'
  | 'unsigned'
  | 'refused'

export type Claims = ReturnType<typeof createClaims>

/** Seconds for which a consent is good. */
const consentSeconds = 600n

export function createClaims({
  writer,
  operations,
  transfers,
}: {
  readonly writer: Pick<Writer, 'write' | 'attestClaim'>
  readonly operations: Pick<OperationStore, 'find'>
  readonly transfers: TransferReads
}) {
  /** Sends a claim once: the same consent again gets the first outcome. */
  async function send(request: WriteRequest, idempotencyKey: string, requestId?: string): Promise<ClaimOutcome> {
    const by = { who: 'page', ...(requestId !== undefined && { requestId }) }
    const result = await writer.write(request, { idempotencyKey, by })
    if (!result.ok) return result.code === 'WRONG_STATE' ? 'taken' : 'refused'
    if (result.status === 'SIMULATED') throw new Error('A claim was only simulated.')
    if (result.status === 'CONFIRMED') transfers.reached(result.blockNumber)
    return { status: result.status === 'CONFIRMED' ? 'mined' : 'sent', txHash: result.txHash }
  }

  return {
    /** Returns what the claimant's wallet signs; null where the item cannot be claimed. Throws CHAIN_UNAVAILABLE. */
    async terms({ tokenId, claimant }: Omit<Claim, 'tapCounter'>): Promise<ClaimTerms | null> {
      const position = await transfers.position(tokenId)
      if (position.record.state !== activated) return null
      const deadline = position.block.timestamp + consentSeconds
      const { signable } = consentOf(position, { claimant, deadline })
      return { typedData: walletTypedData(transfers.domain, signable), deadline }
    },

    /** Makes the claimant the owner. Throws CHAIN_UNAVAILABLE. */
    async claim(claim: SignedClaim, requestId?: string): Promise<ClaimOutcome> {
      const { tokenId, tapCounter, claimant, deadline, signature } = claim
      const idempotencyKey = keyOf(claim)
      const operation = await operations.find(idempotencyKey)
      const earlier = operation && sentRequest(operation.raw)
      if (earlier) return send(earlier, idempotencyKey, requestId)
      const position = await transfers.position(tokenId)
      if (position.record.state !== activated) return 'taken'
      const { signer, signable } = consentOf(position, { claimant, deadline })
      const digest = digestOf(transfers.domain, signable)
      const isInTime = deadline > position.block.timestamp && deadline <= position.block.timestamp + 2n * consentSeconds
      if (!isInTime || !(await transfers.isSignedBy({ signer, digest, signature }, position.block))) return 'unsigned'
      const attestation = await writer.attestClaim({ tokenId, claimant, tapCounter, deadline })
      if (!attestation.ok) return 'refused'
      const { attester, attesterSignature } = attestation
      const claimed = { tokenId, claimant, tapCounter, deadline, attester, attesterSignature }
      return send({ kind: 'claim', ...claimed, claimantSignature: signature }, idempotencyKey, requestId)
    },
  }
}

/** State code of an item that is released and has no owner. */
const activated = 3

/** The key holds no address and no signature, because keys of operations are listed. */
function keyOf({ tokenId, claimant, deadline, signature }: SignedClaim): string {
  const digest = createHash('sha256').update(`${tokenId} ${claimant} ${deadline} ${signature}`).digest('hex')
  return `page-claim:${digest}`
}
