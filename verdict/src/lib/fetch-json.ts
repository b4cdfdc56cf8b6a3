/** One HTTP exchange with a JSON body, bounded in time and size. */

/** The platform's `fetch`, or a stand-in of the same form. */
export type Fetch = typeof globalThis.fetch

/** Largest body that is read. */
const maxBytes = 8 * 1024 * 1024

/** Options of every function that sends a request. */
export type FetchOptions = Readonly<{
  /** Deadline of one request in milliseconds, headers and body together. Default: 10,000. */
  timeoutMs?: number | undefined
  /** Used in place of the global `fetch`. */
  fetch?: Fetch | undefined
}>

/**
 * Sends one request and reads the answer as JSON. Throws on a failed connection, a missed deadline, over 8 MiB, and a
 * body that is not JSON in UTF-8.
 */
export async function fetchJson(
  url: string,
  init: RequestInit,
  { timeoutMs = 10_000, fetch = globalThis.fetch }: FetchOptions,
): Promise<{ status: number; headers: Headers; body: unknown }> {
  const abort = new AbortController()
  const exchange = async () => {
    const response = await fetch(url, { ...init, signal: abort.signal })
    return { status: response.status, headers: response.headers, body: JSON.parse(await readText(response)) as unknown }
  }
  let timer: ReturnType<typeof setTimeout> | undefined
  // The race also ends a `fetch` that ignores its signal.
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no complete answer within ${timeoutMs} ms`)), timeoutMs)
  })
  try {
    return await Promise.race([exchange(), deadline])
  } finally {
    clearTimeout(timer)
    abort.abort() // closes a connection that still sends
  }
}

async function readText(response: Response): Promise<string> {
  const reader = response.body?.getReader()
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let text = ''
  let bytes = 0
  for (;;) {
    const part = await reader?.read()
    if (part === undefined || part.done) return text + decoder.decode()
    bytes += part.value.byteLength
    if (bytes > maxBytes) throw new Error(`the answer is over ${maxBytes} bytes`)
    text += decoder.decode(part.value, { stream: true })
  }
}
