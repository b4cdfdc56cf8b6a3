/**
 * The mutation `claimProduct` (spec §3, CLAIMED): a fresh tap of the product's tag and the claimant's consent make the claimant
 * its owner. The consent is checked before the tap is consumed; the attester signs after it.
 */
import type { TransferReads } from '../../chain/transactions/transfer-reads.ts'
import type { WriteRequest } from '../../chain/transactions/calls.ts'
import type { Writer } from '../../chain/transactions/writer.ts'
import type { ResolveTap, TapOutcome } from '../../tap/resolve-tap.ts'
import type { GraphqlContext } from '../context.ts'
import type { Input, InputReader, Valid } from './inputs.ts'
import { mutation, productPayload, rejected, rejectedAt, type Writes } from './mutation.ts'
import { consentErrors, howToSign } from './transfers/typed-data.ts'

export type ClaimDeps = Readonly<{
  writer: Pick<Writer, 'attestClaim'>
  transfers: TransferReads
  resolveTap: ResolveTap
}>

type ClaimInput = Input<'productId' | 'claimant' | 'picc' | 'cmac', 'signature' | 'deadline' | 'idempotencyKey'>

type Claim = Valid<ReturnType<typeof readClaim>>

function readClaim(input: ClaimInput, read: InputReader) {
  const { picc, cmac } = input
  const tokenId = read.productId(input.productId)
  const claimant = read.address(input.claimant, 'claimant')
  const signature = read.signature(input.signature, howToSign.CLAIM)
  const deadline = signature === null ? null : read.signedDeadline(input.deadline)
  if (!/^[0-9a-fA-F]{32}$/.test(picc)) read.reject('picc', 'It has 32 hex digits, from the address that the tap gave.')
  if (!/^[0-9a-fA-F]{16}$/.test(cmac)) read.reject('cmac', 'It has 16 hex digits, from the address that the tap gave.')
  return { tokenId, claimant, signature, deadline, picc, cmac, key: read.operationKey(input.idempotencyKey) }
}

const fields = { ZERO_ADDRESS: 'claimant' } as const

export function createClaimProduct(
  { writer, transfers, resolveTap }: ClaimDeps,
  { executeWrite, previousRequest }: Writes,
) {
  return mutation(readClaim, async (claim, context) => {
    const { tokenId, claimant, signature: claimantSignature, deadline, picc, cmac, key } = claim
    const previous = await previousRequest(key)
    if (previous !== undefined) return repeatClaim(previous, claim, context)

    const errors = await consentErrors(transfers, 'CLAIM', claim)
    if (errors.length > 0) return rejected(errors)
    const tapped = await resolveTap({ picc, cmac })
    if (tapped.kind !== 'resolved') return rejectedAt('picc', tapErrors[tapped.kind])
    if (tapped.verdict.token_id !== tokenId.toString())
      return rejectedAt('picc', `The tag is not that of product ${tokenId}.`)
    const claimed = { tokenId, claimant, deadline, tapCounter: tapped.tag.tapCounter }
    const attestation = await writer.attestClaim(claimed)
    if (!attestation.ok) return rejectedAt('input', attestation.message)
    const { attester, attesterSignature } = attestation
    const request = { kind: 'claim', ...claimed, attester, attesterSignature, claimantSignature } as const
    return productPayload(tokenId, await executeWrite(request, key, context, fields), context)
  })

  /** Sends the previous request again: the attester would sign another nonce now, and the tap is consumed. */
  async function repeatClaim(sent: WriteRequest | null, claim: Claim, context: GraphqlContext) {
    const isSame =
      sent?.kind === 'claim' &&
      sent.tokenId === claim.tokenId &&
      sent.claimant.toLowerCase() === claim.claimant &&
      sent.deadline === claim.deadline &&
      sent.claimantSignature === claim.signature
    if (!isSame) return rejectedAt('idempotencyKey', 'This idempotency key was used for another request.')
    return productPayload(claim.tokenId, await executeWrite(sent, claim.key, context, fields), context)
  }
}

const tapErrors: Readonly<Record<Exclude<TapOutcome['kind'], 'resolved'>, string>> = {
  not_configured: 'This verifier holds no tag keys, so that no tap can be checked.',
  replayed: 'This tap was used before: tap the tag again.',
  challenge: 'Taps must come in pairs here (TAP_CHALLENGE): claim with touchstone asset claim.',
  unbound: 'The tag is genuine, but bound to no product.',
  malformed: 'The tap did not verify: its cryptogram is not that of a known tag.',
  counterfeit: 'The tap did not verify: its cryptogram is not that of a known tag.',
}
