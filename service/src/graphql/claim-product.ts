/**
 * The mutation `claimProduct` (spec §3, CLAIMED): a fresh tap of the product's tag and the claimant's consent make the claimant
 * its owner. The consent is checked before the tap is used up; the attester signs after it.
 */
import type { Hex } from '@touchstone/verdict'
import type { TransferReads } from '../chain/transfer-reads.ts'
import { digestOf } from '../chain/transfer-typed-data.ts'
import { sentRequest } from '../chain/write-calls-sent.ts'
import type { StoredOperation } from '../chain/writer-store.ts'
import type { Writer } from '../chain/writer.ts'
import type { GraphqlContext } from './context.ts'
import { addressOf, operationKeyOf, productIdOf, say, signatureOf, signedDeadlineOf } from './mutation-inputs.ts'
import type { InputError, Maybe } from './mutation-inputs.ts'
import { productPayload, refused, type CarryOut, type FailureFields } from './mutation-writes.ts'
import { deadlineErrors, stateErrors } from './transfer-rules.ts'

/** What a presented tap came to, as far as a claim asks; the tap is used up whatever it came to. */
type Tapped = Readonly<{
  kind: string
  tag?: Readonly<{ tapCounter: number }>
  verdict?: Readonly<{ token_id: string }>
}>

export type ClaimDeps = Readonly<{
  writer: Pick<Writer, 'attestClaim'>
  operations: Readonly<{ find: (key: string) => Promise<StoredOperation | undefined> }>
  transfers: TransferReads
  presentTap: (tap: { readonly picc: string; readonly cmac: string }) => Promise<Tapped>
}>

type ClaimInput = Readonly<{
  productId: string
  claimant: string
  picc: string
  cmac: string
  signature?: Maybe<string>
  deadline?: Maybe<string>
  idempotencyKey?: Maybe<string>
}>

/** All that was asked for, well formed. */
type Claim = Readonly<{ tokenId: bigint; claimant: Hex; signature: Hex; deadline: bigint }>

const howToConsent =
  'Claiming needs the claimant’s consent. Ask transferTypedData with action CLAIM, this productId and the claimant as toAddress, let the claimant’s wallet sign its typedData (eth_signTypedData_v4), and send the signature with its deadline.'

const claimFields: FailureFields = { ZERO_ADDRESS: 'claimant' }

export function createClaimProduct({ writer, operations, transfers, presentTap }: ClaimDeps, { carryOut }: CarryOut) {
  async function claimProduct({ input }: { input: ClaimInput }, context: GraphqlContext) {
    const errors: InputError[] = []
    const claim = claimOf(input, errors)
    const key = operationKeyOf(input.idempotencyKey, errors)
    if (claim === null || key === null || errors.length > 0) return refused(errors)
    const { tokenId } = claim
    const known = await operations.find(key)
    if (known !== undefined) return repeated(known.raw, claim, key, context)

    const reasons = await consentErrors(claim)
    if (reasons.length > 0) return refused(reasons)
    const tapped = await presentTap({ picc: input.picc, cmac: input.cmac })
    const { tag } = tapped
    if (tapped.kind !== 'resolved' || tag === undefined) return refused([refusalOf(tapped.kind)])
    if (tapped.verdict?.token_id !== tokenId.toString())
      return refused([{ field: 'picc', message: `The tag is not that of product ${tokenId}.` }])
    const { tapCounter } = tag
    const attestation = await writer.attestClaim({ ...claim, tapCounter })
    if (!attestation.ok) return refused([{ field: 'input', message: attestation.message }])
    const { attester, attesterSignature } = attestation
    const { signature: claimantSignature, ...claimed } = claim
    const request = { kind: 'claim', ...claimed, tapCounter, attester, attesterSignature, claimantSignature } as const
    return productPayload(tokenId, await carryOut(request, key, context, claimFields), context)
  }

  /** The attester would sign another nonce now, and the tap is used up: what was sent then is what is asked about. */
  async function repeated(raw: Hex, claim: Claim, key: string, context: GraphqlContext) {
    const sent = sentRequest(raw)
    const isSame =
      sent?.kind === 'claim' &&
      sent.tokenId === claim.tokenId &&
      sent.claimant.toLowerCase() === claim.claimant &&
      sent.deadline === claim.deadline &&
      sent.claimantSignature === claim.signature
    if (!isSame)
      return refused([{ field: 'idempotencyKey', message: 'This idempotency key was used for another request.' }])
    return productPayload(claim.tokenId, await carryOut(sent, key, context, claimFields), context)
  }

  async function consentErrors({ tokenId, claimant, signature, deadline }: Claim): Promise<InputError[]> {
    const position = await transfers.position(tokenId)
    const errors = [...stateErrors(position, 3, 'claimed'), ...deadlineErrors(position, deadline)]
    if (errors.length > 0) return errors
    const message = { tokenId, claimant, nonce: position.offer.nonce, deadline }
    const digest = digestOf(transfers.domain, { type: 'ClaimConsent', message })
    if (await transfers.isSignedBy({ signer: claimant, digest, signature }, position.block)) return []
    return [{ field: 'signature', message: `This is not the claimant’s signature. ${howToConsent}` }]
  }

  return claimProduct
}

function claimOf(input: ClaimInput, errors: InputError[]): Claim | null {
  const tokenId = productIdOf(input.productId, errors)
  const claimant = addressOf(input.claimant, 'claimant', errors)
  const signature = signatureOf(input.signature, howToConsent, errors)
  const deadline = signature === null ? null : signedDeadlineOf(input.deadline, errors)
  if (!/^[0-9a-fA-F]{32}$/.test(input.picc))
    say(errors, 'picc', 'It has 32 hex digits, from the address that the tap gave.')
  if (!/^[0-9a-fA-F]{16}$/.test(input.cmac))
    say(errors, 'cmac', 'It has 16 hex digits, from the address that the tap gave.')
  if (tokenId === null || claimant === null || signature === null || deadline === null) return null
  return { tokenId, claimant, signature, deadline }
}

/** Why a tap leads to no product. */
function refusalOf(kind: string): InputError {
  const messages: Readonly<Record<string, string>> = {
    not_configured: 'This verifier holds no tag keys, so that no tap can be checked.',
    replayed: 'This tap was used before: tap the tag again.',
    challenge: 'Taps must come in pairs here (TAP_CHALLENGE): claim with touchstone asset claim.',
    unbound: 'The tag is genuine, but bound to no product.',
  }
  return {
    field: 'picc',
    message: messages[kind] ?? 'The tap did not verify: its cryptogram is not that of a known tag.',
  }
}
