/** The answer that `touchstone verify` checks (spec §4.1): one request, bounded in time and size, because nobody is believed yet. */

/** Several times a verdict with the longest metadata. */
const maxBytes = 65_536

/**
 * `timeoutMs` is for headers and body together. `body` is null where it is not JSON. It throws one sentence: the host cannot be reached, is
 * too slow, or says too much.
 */
export async function fetchVerdict(
  url: string,
  { timeoutMs = 10_000 }: { readonly timeoutMs?: number } = {},
): Promise<{ readonly status: number; readonly body: unknown }> {
  const { origin } = new URL(url)
  const signal = AbortSignal.timeout(timeoutMs)
  const sentence = (otherwise: string) =>
    new Error(signal.aborted ? `${origin} did not answer in full within ${timeoutMs / 1000} s.` : otherwise)
  const response = await fetch(url, { signal, headers: { accept: 'application/json' } }).catch(() => {
    throw sentence(`${origin} cannot be reached.`)
  })
  const text = await textOf(response).catch(() => {
    throw sentence(`${origin} broke off its answer.`)
  })
  if (text === null) throw new Error(`${origin} answered with more than ${maxBytes / 1024} kB: that is no verdict.`)
  return { status: response.status, body: jsonOf(text) }
}

/** Null for a body that is too large; the rest of it is not read. */
async function textOf(response: Response): Promise<string | null> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.length
    if (size > maxBytes) return null
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
