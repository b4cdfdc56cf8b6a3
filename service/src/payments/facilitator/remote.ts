/** A facilitator behind a URL (x402 `/verify`, `/settle`, `/supported`): bounded responses, one deadline over headers and body, no redirects. */
import { caipNetwork } from '../../domain/chain.ts'
import { textWithin } from '../../lib/bytes.ts'
import { isObject, parseJsonObject, type JsonObject } from '../../lib/json.ts'
import type { PaymentChain } from '../on-chain.ts'
import type { Payment } from '../x402/payment.ts'
import type { Terms } from '../x402/terms.ts'
import { facilitatorInput, toBuyerError, type Facilitator } from './facilitator.ts'

const maxBytes = 64 * 1024
const timeoutMs = 15_000

type RemoteOptions = {
  readonly url: string
  readonly terms: Terms
  readonly chain: Pick<PaymentChain, 'isRightChain'>
}

export function createRemoteFacilitator({ url, terms, chain }: RemoteOptions): Facilitator {
  async function request(path: string, body?: object): Promise<JsonObject> {
    const response = await fetch(`${url.replace(/\/+$/, '')}/${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'content-type': 'application/json' },
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

  function post(path: string, payment: Payment): Promise<JsonObject> {
    const { payload, requirements } = facilitatorInput(payment, terms)
    return request(path, { x402Version: 2, paymentPayload: payload, paymentRequirements: requirements })
  }

  return {
    async verify(payment) {
      const { isValid, invalidReason } = await post('verify', payment)
      if (isValid === true) return { ok: true }
      return { ok: false, error: await toBuyerError(isValid === false ? String(invalidReason) : '', chain) }
    },
    async settle(payment) {
      const { success } = await post('settle', payment)
      return { sent: success === true ? 'mined' : 'perhaps' }
    },
    async supports() {
      const { kinds } = await request('supported')
      const offered: readonly unknown[] = Array.isArray(kinds) ? kinds : []
      return offered
        .filter(isObject)
        .some((kind) => kind['x402Version'] === 2 && kind['scheme'] === 'exact' && kind['network'] === caipNetwork)
    },
  }
}
