/** A facilitator behind a URL (x402 `/verify`, `/settle`, `/supported`): bounded responses, one deadline over headers and body, no redirects. */
import { caipNetwork } from '../../domain/chain.ts'
import { textWithin } from '../../lib/bounded-text.ts'
import { isObject, parseJsonObject, type JsonObject } from '../../lib/json.ts'
import type { PaymentChain } from '../on-chain.ts'
import type { Terms } from '../x402/terms.ts'
import { facilitatorInput, toBuyerError, type Facilitator } from './facilitator.ts'

const maxBytes = 64 * 1024
const timeoutMs = 15_000

type Path = 'verify' | 'settle' | 'supported'
export type FacilitatorHeaders = (path: Path) => Promise<Readonly<Record<string, string>>>

/** `headersFor` makes the authorization that some facilitators require, anew for each request. */
export function createRemoteFacilitator({
  url,
  terms,
  chain,
  headersFor = async () => ({}),
}: {
  readonly url: string
  readonly terms: Terms
  readonly chain: Pick<PaymentChain, 'isRightChain'>
  readonly headersFor?: FacilitatorHeaders
}): Facilitator {
  async function request(path: Path, body?: object): Promise<JsonObject> {
    const response = await fetch(`${url.replace(/\/+$/, '')}/${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'content-type': 'application/json', ...(await headersFor(path)) },
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

  return {
    async verify(payment) {
      const { payload, requirements } = facilitatorInput(payment, terms)
      const body = { x402Version: 2, paymentPayload: payload, paymentRequirements: requirements }
      const { isValid, invalidReason } = await request('verify', body)
      if (isValid === true) return { ok: true }
      return { ok: false, error: await toBuyerError(isValid === false ? String(invalidReason) : '', chain) }
    },
    async settle(payment) {
      const { payload, requirements } = facilitatorInput(payment, terms)
      const body = { x402Version: 2, paymentPayload: payload, paymentRequirements: requirements }
      const { success } = await request('settle', body)
      return { sent: success === true ? 'mined' : 'perhaps' }
    },
    async supports() {
      const { kinds } = await request('supported')
      return (
        Array.isArray(kinds) &&
        kinds.some(
          (kind: unknown) =>
            isObject(kind) &&
            kind['x402Version'] === 2 &&
            kind['scheme'] === 'exact' &&
            kind['network'] === caipNetwork,
        )
      )
    },
  }
}
