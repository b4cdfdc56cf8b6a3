/** Asks a verification service for verdicts (spec §4.1). */
import { isVerdict } from './check/form.ts'
import { VerdictError } from './lib/errors.ts'
import { fetchJson, type FetchOptions } from './lib/fetch-json.ts'
import { isObject, textOf } from './lib/json.ts'
import { parseTokenId } from './rules/token-id.ts'
import type { Verdict } from './rules/verdict.ts'

const failureCodes = ['INVALID_TOKEN_ID', 'ASSET_NOT_FOUND', 'RATE_LIMITED', 'CHAIN_UNAVAILABLE', 'INTERNAL'] as const

/** The error body of the keyless read (spec §2.4). Branch on `code`; `message` is for people. */
export type VerdictFailure = {
  version: '1'
  error: { code: (typeof failureCodes)[number]; message: string }
  /** Seconds to wait, from `Retry-After`, where the answer lets it be read. */
  retryAfter?: number
}

/** Asks one service. */
export type VerdictClient = Readonly<{
  /**
   * The service's verdict on a token, or its error body; distinguish them by `'error' in answer`. Only the form of a
   * verdict is checked here: `recheck` or `prove` it before you rely on it. Throws `VerdictError` with
   * `SERVICE_UNAVAILABLE` or `BAD_ANSWER`.
   */
  verdict: (tokenId: bigint | string) => Promise<Verdict | VerdictFailure>
}>

/** A client of the service at `baseUrl`, for example `https://verify.example`. */
export function createClient({ baseUrl, ...options }: { baseUrl: string } & FetchOptions): VerdictClient {
  async function verdict(tokenId: bigint | string): Promise<Verdict | VerdictFailure> {
    const id = parseTokenId(String(tokenId))
    if (id === null) return failure('INVALID_TOKEN_ID', 'The token id is not a decimal integer from 0 to 2^256 - 1.')
    const url = `${baseUrl.replace(/\/$/, '')}/api/asset/${id}`
    const answer = await fetchJson(url, { headers: { accept: 'application/json' } }, options).catch(
      (cause: unknown) => {
        throw new VerdictError('SERVICE_UNAVAILABLE', 'The verification service did not answer.', { cause })
      },
    )
    const found = answer.status === 200 ? verdictIn(answer.body, id) : failureIn(answer.body, answer.headers)
    if (found === null)
      throw new VerdictError('BAD_ANSWER', `The answer (HTTP ${answer.status}) is neither a verdict nor an error body.`)
    return found
  }
  return { verdict }
}

function verdictIn(body: unknown, id: bigint): Verdict | null {
  return isVerdict(body) && body.token_id === String(id) ? body : null
}

function failureIn(body: unknown, headers: Headers): VerdictFailure | null {
  const error = isObject(body) ? body['error'] : null
  if (!isObject(error)) return null
  const code = failureCodes.find((known) => known === error['code'])
  const seconds = headers.get('retry-after') ?? ''
  if (code === undefined) return null
  return {
    ...failure(code, textOf(error['message'])),
    ...(/^[0-9]{1,9}$/.test(seconds) ? { retryAfter: Number(seconds) } : {}),
  }
}

function failure(code: VerdictFailure['error']['code'], message: string): VerdictFailure {
  return { version: '1', error: { code, message } }
}
