/** Requests of a command to an untrusted service, bounded in time and size. */
import { parseUniqueJson } from '@touchstone/verdict'
import { textWithin } from '../../lib/bytes.ts'

/** `body` is null when it is not JSON, or names a member twice. */
export type JsonResponse = { readonly status: number; readonly headers: Headers; readonly body: unknown }

type FetchJsonOptions = {
  readonly method?: string
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Limit for headers and body together. */
  readonly timeoutMs?: number
  readonly maxBytes?: number
  /** The default is `error`, because a payment is for one host. */
  readonly redirect?: 'error' | 'follow'
}

/** Fetches JSON. Throws an Error of one sentence when the host cannot be reached, is too slow, breaks off, or sends too much. */
export async function fetchJson(
  url: URL,
  { timeoutMs = 10_000, maxBytes = 262_144, headers = {}, redirect = 'error', ...init }: FetchJsonOptions = {},
): Promise<JsonResponse> {
  const { origin } = url
  const signal = AbortSignal.timeout(timeoutMs)
  const failed = (otherwise: string) =>
    new Error(signal.aborted ? `${origin} did not answer in full within ${timeoutMs / 1000} s.` : otherwise)
  const response = await fetch(url, {
    ...init,
    signal,
    redirect,
    headers: {
      accept: 'application/json',
      ...(init.body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
  }).catch(() => {
    throw failed(`${origin} cannot be reached.`)
  })
  const text = await textWithin(response.body, maxBytes).catch(() => {
    throw failed(`${origin} broke off its answer.`)
  })
  if (text === null)
    throw new Error(
      `${origin} answered with more than ${maxBytes / 1024} kB: give the address of a Touchstone service.`,
    )
  return { status: response.status, headers: response.headers, body: parseUniqueJson(text) ?? null }
}
