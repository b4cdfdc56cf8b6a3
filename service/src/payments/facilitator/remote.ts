/** A facilitator behind a URL (x402 `/verify`, `/settle`, `/supported`): bounded responses, one deadline over headers and body, no redirects. */
import type { Hex } from '@touchstone/verdict'
import { caipNetwork } from '../../domain/chain.ts'
import type { PaymentErrorCode } from '../errors.ts'
import { traced } from '../../lib/async/span.ts'
import { textWithin } from '../../lib/bytes.ts'
import { isObject, parseJsonObject, type JsonObject } from '../../lib/json.ts'
import type { PaymentChain } from '../on-chain.ts'
import type { Payment } from '../x402/payment.ts'
import { requirementsV2, type PaymentTerms } from '../x402/terms.ts'
import { readSecretHeaders, type SecretHeaders } from './headers.ts'
import { buyerError, type Facilitator } from './facilitator.ts'

const maxBytes = 64 * 1024
const timeoutMs = 15_000

type RemoteOptions = {
  readonly url: string
  /** File of secret headers, read again for each request, so that a token in it may change. */
  readonly headersFile?: string | null
  readonly terms: PaymentTerms
  readonly chain: Pick<PaymentChain, 'isRightChain'>
}

export function createRemoteFacilitator({ url, headersFile = null, terms, chain }: RemoteOptions): Facilitator {
  function request(path: 'verify' | 'settle' | 'supported', body?: object): Promise<JsonObject> {
    return traced({ name: `facilitator ${path}`, kind: 'client' }, () => exchange(path, body))
  }

  async function exchange(path: string, body?: object): Promise<JsonObject> {
    const secret = headersFile === null ? {} : await readSecretHeaders(headersFile)
    const response = await fetch(`${url.replace(/\/+$/, '')}/${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: toHeaders(secret),
      ...(body && { body: JSON.stringify(body) }),
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    })
    const text = await textWithin(response.body, maxBytes)
    if (text === null) throw new Error('the facilitator’s answer is too large')
    if (!response.ok) throw new Error(`the facilitator answered with status ${response.status}`)
    const answer = parseJsonObject(text)
    if (answer === null) throw new Error('the facilitator’s answer is not a JSON object')
    return answer
  }

  function post(path: 'verify' | 'settle', payment: Payment): Promise<JsonObject> {
    return request(path, facilitatorRequest(payment, terms))
  }

  return {
    async verify(payment) {
      const { isValid, invalidReason } = await post('verify', payment)
      if (isValid === true) return { ok: true }
      const reason = isValid === false ? String(invalidReason) : ''
      const error = Object.hasOwn(reasons, reason) ? reasons[reason] : undefined
      return { ok: false, error: await buyerError(error, chain) }
    },
    async settle(payment) {
      const { success, transaction } = await post('settle', payment)
      const hash = String(transaction).toLowerCase()
      return {
        sent: success === true ? 'mined' : 'perhaps',
        ...(success === true && /^0x[0-9a-f]{64}$/.test(hash) && { transaction: hash as Hex }),
      }
    },
    async supports() {
      const { kinds } = await request('supported')
      const offered: readonly unknown[] = Array.isArray(kinds) ? kinds : []
      return offered
        .filter(isObject)
        .some((kind) => kind['x402Version'] === 2 && kind['scheme'] === 'exact' && kind['network'] === caipNetwork)
    },
    adopt: async () => {}, // the other operator follows its own
    [Symbol.asyncDispose]: async () => {},
  }
}

/** Returns the body for `/verify` and `/settle`. It is version 2 for every payment, because that version has the precise reasons. */
function facilitatorRequest({ signature, ...authorization }: Payment, terms: PaymentTerms): object {
  const { to, value, validAfter, validBefore } = authorization
  const requirements = requirementsV2(terms, value, to)
  const texts = { value: String(value), validAfter: String(validAfter), validBefore: String(validBefore) }
  const payload = { signature, authorization: { ...authorization, ...texts } }
  return {
    x402Version: 2,
    paymentPayload: { x402Version: 2, accepted: requirements, payload },
    paymentRequirements: requirements,
  }
}

function toHeaders(secret: SecretHeaders): Headers {
  const headers = new Headers(secret)
  headers.set('content-type', 'application/json')
  return headers
}

/** Reasons of x402 libraries, of both versions, that the buyer is responsible for. */
export const reasons: Readonly<Record<string, PaymentErrorCode>> = {
  invalid_exact_evm_recipient_mismatch: 'recipient_mismatch',
  invalid_exact_evm_payload_recipient_mismatch: 'recipient_mismatch',
  invalid_exact_evm_authorization_value: 'amount_mismatch',
  invalid_exact_evm_payload_authorization_value: 'amount_mismatch',
  invalid_exact_evm_payload_authorization_value_mismatch: 'amount_mismatch',
  invalid_exact_evm_signature: 'invalid_signature',
  invalid_exact_evm_payload_signature: 'invalid_signature',
  invalid_exact_evm_failed_to_parse_signature: 'invalid_signature',
  eip6492_factory_not_allowed: 'wallet_factory_not_allowed',
  invalid_exact_evm_payload_authorization_valid_before: 'authorization_expired',
  invalid_exact_evm_payload_authorization_valid_after: 'authorization_not_yet_valid',
  invalid_exact_evm_insufficient_balance: 'insufficient_funds',
  insufficient_funds: 'insufficient_funds',
  invalid_exact_evm_nonce_already_used: 'nonce_already_used',
  invalid_exact_evm_transaction_simulation_failed: 'payment_rejected',
}
