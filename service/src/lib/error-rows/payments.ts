/** Errors of a payment, which only the gateway has. They are the end of the table of `error-codes.ts`. */
import type { ErrorRow } from './row.ts'

/** The remedy of a payment whose outcome is open. */
export const retryPayment = 'Retry with the same payment header.'
export const nothingCharged = `Nothing was charged. ${retryPayment}`

export const paymentErrors = {
  PAYMENT_REQUIRED: {
    meaning: 'Payment is required. Sign one of the accepted payments and send it in the X-PAYMENT header.',
    remedy: 'Sign one of the accepted payments and send it.',
    gateway: { error: 'payment_required', status: 402 },
  },
  INVALID_PAYLOAD: {
    meaning: 'The payment header is not the base64 of a payment as this offer asks for.',
    remedy: 'Send the payment as standard base64 of JSON, in one header, at most 8,192 characters.',
    gateway: { error: 'invalid_payload', status: 402 },
  },
  INVALID_X402_VERSION: {
    meaning: 'X-PAYMENT takes x402Version 1, PAYMENT-SIGNATURE takes x402Version 2.',
    remedy: 'Send the version that belongs to the header.',
    gateway: { error: 'invalid_x402_version', status: 402 },
  },
  UNSUPPORTED_SCHEME: {
    meaning: 'The payment scheme is not one of this offer.',
    remedy: 'Pay with a scheme of the offer: `exact`, or `batch-settlement` where it is listed.',
    gateway: { error: 'unsupported_scheme', status: 402 },
  },
  INVALID_NETWORK: {
    meaning: 'The payment is for another network than the offer.',
    remedy: 'Pay on `base-sepolia` (`eip155:84532`).',
    gateway: { error: 'invalid_network', status: 402 },
  },
  INVALID_PAYMENT_REQUIREMENTS: {
    meaning: 'The accepted terms of the payment are not those of this offer.',
    remedy: 'Accept the terms of the newest 402; the price may have changed.',
    gateway: { error: 'invalid_payment_requirements', status: 402 },
  },
  RECIPIENT_MISMATCH: {
    meaning: 'The payment goes to another recipient than the offer.',
    remedy: 'Pay the `payTo` of the offer.',
    gateway: { error: 'recipient_mismatch', status: 402 },
  },
  AMOUNT_MISMATCH: {
    meaning: 'The payment must be exactly the amount of the offer.',
    remedy: 'Pay exactly the amount of the offer.',
    gateway: { error: 'amount_mismatch', status: 402 },
  },
  VOUCHER_AMOUNT_MISMATCH: {
    meaning: 'The voucher must be over the sum of the channel so far and the price. Nothing was charged.',
    remedy: 'Sign a voucher over `chargedCumulativeAmount` of the PAYMENT-REQUIRED header and the price.',
    gateway: { error: 'voucher_amount_mismatch', status: 402, uncharged: true },
  },
  DEPOSIT_TOO_SMALL: {
    meaning: 'The deposit into the channel is smaller than the offer asks for. Nothing was charged.',
    remedy: 'Deposit at least `minDeposit` of the offer.',
    gateway: { error: 'deposit_too_small', status: 402, uncharged: true },
  },
  INVALID_SIGNATURE: {
    meaning: 'The signature is not that of the payer over this authorization in the token’s domain.',
    remedy: 'Sign with the payer’s key, in the token’s domain (`extra` of the offer).',
    gateway: { error: 'invalid_signature', status: 402 },
  },
  AUTHORIZATION_EXPIRED: {
    meaning: 'The authorization has expired or is about to. Compare your clock with the Date header.',
    remedy: 'Sign a new authorization.',
    gateway: { error: 'authorization_expired', status: 402 },
  },
  AUTHORIZATION_NOT_YET_VALID: {
    meaning: 'The authorization is not yet valid. Compare your clock with the Date header.',
    remedy: 'Wait until `validAfter`, or sign anew.',
    gateway: { error: 'authorization_not_yet_valid', status: 402 },
  },
  AUTHORIZATION_VALID_TOO_LONG: {
    meaning: 'The authorization is valid for too long. Sign one whose validBefore is at most 3,630 seconds from now.',
    remedy:
      'Sign a new authorization: `validBefore` is now plus `maxTimeoutSeconds` of the offer, at most an hour more.',
    gateway: { error: 'authorization_valid_too_long', status: 402 },
  },
  INSUFFICIENT_FUNDS: {
    meaning: 'The payer does not hold enough of the payment token.',
    remedy: 'Put USDC into the payer’s account.',
    gateway: { error: 'insufficient_funds', status: 402 },
  },
  NONCE_ALREADY_USED: {
    meaning: 'The authorization’s nonce is already used or cancelled. Sign a new authorization.',
    remedy: 'Sign a new authorization with a new nonce.',
    gateway: { error: 'nonce_already_used', status: 402 },
  },
  PAYMENT_REJECTED: {
    meaning: 'The payment token rejects this transfer.',
    remedy: 'Use another payer: the token is paused, or an account is blocked.',
    gateway: { error: 'payment_rejected', status: 402 },
  },
  PAYER_BLOCKED: {
    meaning:
      'A transfer of this payer, or of its kind of wallet, has failed on the chain. Nothing was charged. Wait as long as Retry-After says.',
    remedy: 'Wait `Retry-After` seconds and sign a new authorization, or pay from another account.',
    gateway: { error: 'payer_blocked', status: 429, uncharged: true },
  },
  WALLET_FACTORY_NOT_ALLOWED: {
    meaning: 'The gateway does not deploy wallets of this factory (ERC-6492). Nothing was charged.',
    remedy: 'Deploy the wallet before it pays, or pay from another account. Operator: `FACILITATOR_WALLET_FACTORIES`.',
    gateway: { error: 'wallet_factory_not_allowed', status: 402, uncharged: true },
  },
  CHANNEL_UNDERFUNDED: {
    meaning: 'The deposit of the channel does not cover this voucher. No proof was sold.',
    remedy: 'Send a deposit of at least `minDeposit` of the offer together with the voucher.',
    gateway: { error: 'channel_underfunded', status: 402 },
  },
  PAYMENT_ALREADY_USED: {
    meaning: 'This payment has bought another request. Sign a new authorization.',
    remedy: 'Sign a new authorization for this asset.',
    gateway: { error: 'payment_already_used', status: 402 },
  },
  INVALID_PAYMENT_IDENTIFIER: {
    meaning: 'The payment identifier must have 16 to 128 letters, digits, hyphens or underscores.',
    remedy: 'Send `info.required` and a correct `info.id`, or leave the extension out.',
    gateway: { error: 'invalid_payment_identifier', status: 400 },
  },
  PAYMENT_IDENTIFIER_USED: {
    meaning: 'This payment identifier has bought another request. Nothing was charged.',
    remedy: 'Use one identifier for one request, and the same one only to repeat it.',
    gateway: { error: 'payment_identifier_used', status: 409, uncharged: true },
  },
  PAYMENT_UNAVAILABLE: {
    meaning: `Payments cannot be checked at the moment. ${nothingCharged}`,
    remedy: 'Send the same header after `Retry-After`. Operator: look at providers, facilitator and gas in `/health`.',
    gateway: { error: 'payment_unavailable', status: 503, retryAfter: 5, uncharged: true },
  },
  SIGNER_UNAVAILABLE: {
    meaning: `Attestations cannot be signed at the moment. ${nothingCharged}`,
    remedy: 'Send the same header after `Retry-After`. Operator: look at the attestation key.',
    gateway: { error: 'signer_unavailable', status: 503, retryAfter: 5, uncharged: true },
  },
  LEDGER_UNAVAILABLE: {
    meaning: `Payments cannot be recorded at the moment. ${retryPayment}`,
    remedy: 'Send the same header after `Retry-After`. Operator: look at the database.',
    gateway: { error: 'ledger_unavailable', status: 503, retryAfter: 5 },
  },
  KEYS_UNAVAILABLE: {
    meaning: 'The list of attestation keys cannot be read at the moment. Ask again.',
    remedy: 'Ask again after `Retry-After`. Operator: look at the database.',
    gateway: { error: 'keys_unavailable', status: 503, retryAfter: 5 },
  },
  NOT_READY: {
    meaning: `The gateway is not ready to sell. ${retryPayment} It is charged at most once.`,
    remedy: 'Send the same header after `Retry-After`. Operator: `checks` of `/health` says what is wrong.',
    gateway: { error: 'not_ready', status: 503, retryAfter: 60 },
  },
  SETTLEMENT_PENDING: {
    meaning: `The outcome of the payment is not known yet. ${retryPayment} It is charged at most once.`,
    remedy: 'Send the **same header** after `Retry-After`; never a new payment.',
    gateway: { error: 'settlement_pending', status: 503, retryAfter: 2 },
  },
} as const satisfies Readonly<Record<string, ErrorRow>>
