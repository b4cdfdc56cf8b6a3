/**
 * Every answer of POST {gateway_url}/verify that is no proof (spec §4.8, §7): one closed list of codes with status and sentence.
 * 402 is only for what the buyer can mend by paying (again); an unknown outcome is 503, and the same header is tried again.
 */
type Row = readonly [status: number, message: string, retryAfterSeconds?: number]

const again = 'Retry with the same payment header.'

export const errors = {
  payment_required: [
    402,
    'Payment is required. Sign one of the accepted payments and send it in the X-PAYMENT header.',
  ],
  invalid_body: [400, 'The body must be a JSON object such as {"assetId":"1","chain":"base-sepolia"}.'],
  unsupported_chain: [400, 'The only supported chain is base-sepolia.'],
  invalid_asset_id: [400, 'assetId must be a decimal string from 0 to 2^256-1, such as "42".'],
  asset_id_not_attestable: [
    400,
    'An attestation of this asset id could be mistaken for a transaction, so none is sold. Read it without payment.',
  ],
  invalid_payload: [402, 'The payment header is not the base64 of a payment as this offer asks for.'],
  invalid_x402_version: [402, 'X-PAYMENT takes x402Version 1, PAYMENT-SIGNATURE takes x402Version 2.'],
  unsupported_scheme: [402, 'The only supported payment scheme is exact.'],
  invalid_network: [402, 'The payment is for another network than the offer.'],
  invalid_payment_requirements: [402, 'The accepted terms of the payment are not those of this offer.'],
  recipient_mismatch: [402, 'The payment goes to another recipient than the offer.'],
  amount_mismatch: [402, 'The payment must be exactly the amount of the offer.'],
  invalid_signature: [402, 'The signature is not that of the payer over this authorization in the token’s domain.'],
  authorization_expired: [
    402,
    'The authorization has expired or is about to. Compare your clock with the Date header.',
  ],
  authorization_not_yet_valid: [402, 'The authorization is not yet valid. Compare your clock with the Date header.'],
  insufficient_funds: [402, 'The payer does not hold enough of the payment token.'],
  nonce_already_used: [402, 'The authorization’s nonce is already used or cancelled. Sign a new authorization.'],
  payment_rejected: [402, 'The payment token refuses this transfer.'],
  payment_already_used: [402, 'This payment has bought another request. Sign a new authorization.'],
  asset_not_found: [404, 'No asset has this id. Nothing was charged.'],
  not_found: [404, 'There is nothing at this path. Attestations are sold at POST /verify.'],
  method_not_allowed: [405, 'This path does not answer this method; see the Allow header.'],
  body_too_large: [413, 'The body may have at most 16 KiB.'],
  rate_limited: [429, 'Too many requests. Wait as long as Retry-After says.'],
  internal_error: [500, `The request failed unexpectedly. ${again}`],
  chain_unavailable: [502, `The asset could not be read from the chain. Nothing was charged. ${again}`],
  payment_unavailable: [503, `Payments cannot be checked at the moment. Nothing was charged. ${again}`, 5],
  signer_unavailable: [503, `Attestations cannot be signed at the moment. Nothing was charged. ${again}`, 5],
  ledger_unavailable: [503, `Payments cannot be recorded at the moment. ${again}`, 5],
  not_ready: [503, `The gateway is not ready to sell. Nothing was charged. ${again}`, 60],
  settlement_pending: [503, `The outcome of the payment is not known yet. ${again} It is charged at most once.`, 2],
} as const satisfies Readonly<Record<string, Row>>

export type ErrorCode = keyof typeof errors

/** What a sale came to: the bytes of the proof, or a code of the list. */
export type Outcome =
  | { readonly kind: 'proof'; readonly body: string; readonly transaction: string; readonly payer: string }
  | { readonly kind: 'error'; readonly error: ErrorCode }

export const refuse = (error: ErrorCode): Outcome => ({ kind: 'error', error })

export function statusOf(error: ErrorCode): number {
  return errors[error][0]
}

export function messageOf(error: ErrorCode): string {
  return errors[error][1]
}

/** Seconds for `Retry-After`; undefined where waiting does not help. */
export function retryAfterOf(error: ErrorCode): number | undefined {
  const row: Row = errors[error]
  return row[2]
}

/** Something the gateway stands on failed; `error` says how that is answered, `cause` is for the log only. */
export class GatewayFault extends Error {
  readonly error: ErrorCode

  constructor(error: ErrorCode, options?: { cause?: unknown }) {
    super(error, options)
    this.name = 'GatewayFault'
    this.error = error
  }
}

/** `work`, or a fault with this code when it fails or takes longer; what is late is forgotten. */
export async function within<T>(milliseconds: number, error: ErrorCode, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new GatewayFault(error, { cause: 'no answer in time' })), milliseconds)
  })
  try {
    return await Promise.race([work, late])
  } catch (cause) {
    throw cause instanceof GatewayFault ? cause : new GatewayFault(error, { cause })
  } finally {
    clearTimeout(timer)
  }
}
