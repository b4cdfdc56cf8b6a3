/** One request of a command to a service that it does not believe yet: bounded in time and size. */
import { textWithin } from '../bounded-text.ts'

/** `body` is null where it is not JSON. */
export type Answer = { readonly status: number; readonly headers: Headers; readonly body: unknown }

export type FetchJsonOptions = {
  readonly method?: string
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
  /** For headers and body together. */
  readonly timeoutMs?: number
  readonly mostBytes?: number
  /** `error` unless told: a payment is for one host. */
  readonly redirect?: 'error' | 'follow'
}

/** An Error of one sentence: the host cannot be reached, is too slow, breaks off, or says too much. */
export async function fetchJson(
  url: URL,
  { timeoutMs = 10_000, mostBytes = 262_144, headers = {}, redirect = 'error', ...init }: FetchJsonOptions = {},
): Promise<Answer> {
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
  const text = await textWithin(response.body, mostBytes).catch(() => {
    throw failed(`${origin} broke off its answer.`)
  })
  if (text === null)
    throw new Error(`${origin} answered with more than ${mostBytes / 1024} kB: that is not what was asked.`)
  return { status: response.status, headers: response.headers, body: jsonOf(text) }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return null
  }
}
