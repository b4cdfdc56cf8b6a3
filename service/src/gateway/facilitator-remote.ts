/** A facilitator behind a URL (x402 «/verify», «/settle», «/supported»): bounded answers, one deadline over headers and body, no redirects. */
import { textWithin } from '../bounded-text.ts'
import { GatewayFault } from './answers.ts'
import { facilitatorInput, reasons, type Facilitator } from './facilitator.ts'
import type { PaymentChain } from './payment-chain.ts'
import { caipNetwork, type Terms } from './terms.ts'

const mostBytes = 64 * 1024
const longestMs = 15_000

type Path = 'verify' | 'settle' | 'supported'
export type FacilitatorHeaders = (path: Path) => Promise<Readonly<Record<string, string>>>

/** `headersFor` makes the authorization that some facilitators ask for, anew for each request. */
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
  async function ask(path: Path, body?: object): Promise<Readonly<Record<string, unknown>>> {
    const response = await fetch(`${url.replace(/\/+$/, '')}/${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'content-type': 'application/json', ...(await headersFor(path)) },
      ...(body && { body: JSON.stringify(body) }),
      redirect: 'error',
      signal: AbortSignal.timeout(longestMs),
    })
    const text = await textWithin(response.body, mostBytes)
    if (text === null) throw new Error('the facilitator’s answer is too large')
    if (!response.ok) throw new Error(`the facilitator answered with status ${response.status}`)
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null) throw new Error(`the facilitator’s answer is no object`)
    return value as Readonly<Record<string, unknown>>
  }

  return {
    async verify(payment) {
      const { payload, requirements } = facilitatorInput(payment, terms)
      const answer = await ask('verify', { x402Version: 2, paymentPayload: payload, paymentRequirements: requirements })
      if (answer['isValid'] === true) return { ok: true }
      const reason = String(answer['invalidReason'])
      const error = Object.hasOwn(reasons, reason) ? reasons[reason] : undefined
      if (answer['isValid'] !== false || error === undefined || !(await chain.isRightChain()))
        throw new GatewayFault('payment_unavailable', { cause: 'the facilitator gave no reason that blames the buyer' })
      return { ok: false, error }
    },
    async settle(payment) {
      const { payload, requirements } = facilitatorInput(payment, terms)
      const answer = await ask('settle', { x402Version: 2, paymentPayload: payload, paymentRequirements: requirements })
      return { sent: answer['success'] === true ? 'mined' : 'perhaps' }
    },
    async supports() {
      const { kinds } = await ask('supported')
      return (
        Array.isArray(kinds) &&
        kinds.some(
          (kind: Readonly<Record<string, unknown>> | null) =>
            kind?.['x402Version'] === 2 && kind['scheme'] === 'exact' && kind['network'] === caipNetwork,
        )
      )
    },
  }
}
