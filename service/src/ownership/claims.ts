/**
 * Sends claims from the page that a fresh tap has opened (spec §3, CLAIMED). The visitor's wallet consents, the
 * attester confirms the tap, and the operator pays for the transaction. The contract checks both signatures again.
 */
import { lifecycleStates, type Hex, isSealOpened } from '@touchstone/verdict'
import { repeatedClaim } from '../chain/transactions/calls.ts'
import { walletTypedData } from '../chain/transactions/typed-data.ts'
import type { TransferPosition } from '../chain/transactions/transfer-reads.ts'
import { consentOf } from './consents.ts'
import { createSignedWrites, type SendOutcome, type SignedWriteDeps, stepKey } from './signed-writes.ts'

/** The tap that the visitor made, and the account that becomes the owner. */
type Claim = {
  readonly tokenId: bigint
  readonly tagHash: Hex
  readonly epoch: number
  readonly tapCounter: number
  readonly claimant: Hex
}
/** `deadline` is in unix seconds; it is part of what was signed. */
type SignedClaim = Claim & { readonly deadline: bigint; readonly signature: Hex }

/** `typedData` is for `eth_signTypedData_v4`. */
export type ClaimTerms = { readonly typedData: ReturnType<typeof walletTypedData>; readonly deadline: bigint }
/**
 * `taken`: the item is not for sale any more, or not yet, or its seal was opened. `unsigned`: the consent is not the claimant's.
 * `expired`: the item has another chip than the tapped one, as after a reorganisation.
 */
type ClaimOutcome = SendOutcome | 'unsigned' | 'expired'

export type Claims = ReturnType<typeof createItemClaims>

/** Seconds for which a consent is good. */
const consentSeconds = 600n

export function createItemClaims(deps: SignedWriteDeps) {
  const { writer, transfers } = deps
  const { send, previous } = createSignedWrites(deps)

  return {
    /** Returns what the claimant's wallet signs; null where the item cannot be claimed. Throws CHAIN_UNAVAILABLE. */
    async terms({ tokenId, claimant }: Pick<Claim, 'tokenId' | 'claimant'>): Promise<ClaimTerms | null> {
      const position = await transfers.position(tokenId)
      if (!isClaimable(position)) return null
      const deadline = position.time + consentSeconds
      const { signable } = consentOf(position, { claimant, deadline })
      return { typedData: walletTypedData(transfers.domain, signable), deadline }
    },

    /**
     * Makes the claimant the owner. One tap sends one claim: several wallets together would pass the check before the first is mined, and
     * the operator would pay for each. Throws CHAIN_UNAVAILABLE.
     */
    async claim(claim: SignedClaim, requestId?: string): Promise<ClaimOutcome> {
      const key = stepKey('claim', claim.tokenId, claim.epoch, claim.tapCounter)
      const repeat = async () => {
        const sent = repeatedClaim((await previous(key)) ?? null, claim)
        return sent && send(sent, key, requestId)
      }
      const repeated = await repeat()
      if (repeated !== null) return repeated
      const outcome = await claimNow(claim, key, requestId)
      // The same claim may have been sent meanwhile, with an attestation of its own.
      return typeof outcome === 'string' ? ((await repeat()) ?? outcome) : outcome
    },
  }

  async function claimNow(claim: SignedClaim, key: string, requestId?: string): Promise<ClaimOutcome> {
    const { tokenId, tagHash, tapCounter, claimant, deadline, signature } = claim
    const position = await transfers.position(tokenId)
    if (!isClaimable(position)) return 'taken'
    const { signer, signable } = consentOf(position, { claimant, deadline })
    const isInTime = deadline > position.time && deadline <= position.time + 2n * consentSeconds
    if (!isInTime || !(await transfers.isSignedBy({ signer, signable, signature }, position))) return 'unsigned'
    const attestation = await writer.attestClaim({ tokenId, tagHash, claimant, tapCounter, deadline })
    if (!attestation.ok) return attestation.code === 'REFUSED' ? 'expired' : 'refused'
    const { attester, attesterSignature } = attestation
    const claimed = { tokenId, claimant, tapCounter, deadline, attester, attesterSignature }
    return send({ kind: 'claim', ...claimed, claimantSignature: signature }, key, requestId)
  }
}

/** The contract accepts a claim behind an opened seal. The page rejects it, because it warns the visitor of the item. */
function isClaimable({ record }: TransferPosition): boolean {
  return lifecycleStates[record.state] === 'ACTIVATED' && !isSealOpened(record)
}
