/** One request to a gateway, bounded in time and size, because nobody is believed yet. */

/** `body` is null where it is not JSON. */
export type Answer = { readonly status: number; readonly headers: Headers; readonly body: unknown }

const maxBytes = 262_144

/** `timeoutMs` is for headers and body together. No redirect is followed: a payment is for one host. An Error of one sentence. */
export async function fetchJson(
  url: URL,
  {
    timeoutMs = 10_000,
    headers = {},
    ...init
  }: { method?: string; body?: string; headers?: Readonly<Record<string, string>>; timeoutMs?: number } = {},
): Promise<Answer> {
  const signal = AbortSignal.timeout(timeoutMs)
  const failed = (otherwise: string) =>
    new Error(signal.aborted ? `${url.origin} did not answer within ${timeoutMs / 1000} s.` : otherwise)
  const response = await fetch(url, {
    ...init,
    signal,
    redirect: 'error',
    headers: { accept: 'application/json', 'content-type': 'application/json', ...headers },
  }).catch(() => {
    throw failed(`${url.origin} cannot be reached.`)
  })
  const text = await textOf(response).catch(() => {
    throw failed(`${url.origin} broke off its answer, or said too much.`)
  })
  return { status: response.status, headers: response.headers, body: jsonOf(text) }
}

async function textOf(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.length
    if (size > maxBytes) throw new Error('too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size).toString('utf8')
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return null
  }
}
