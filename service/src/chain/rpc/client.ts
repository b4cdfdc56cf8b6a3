/**
 * JSON-RPC over HTTP (spec §2.5) for reads, writes and payments. It has one deadline over headers and body, bounded answers, no redirects,
 * and nothing is sent twice. Answers pass the checks of `answer.ts`.
 */
import { type Dispatcher, Pool } from 'undici'
import { msUntil } from '../../lib/async/deadline.ts'
import { parseRetryAfter } from '../../lib/async/rate-pause.ts'
import { reasonOf } from '../../lib/errors.ts'
import { parseResults, RpcError } from './answer.ts'

export type RpcCall = readonly [method: string, params: readonly unknown[]]

/**
 * Throws `RpcError`. When `isRefusal` is false for it, no usable answer came, and the outcome is unknown. `unanimous`: that a transaction
 * or a block is not known holds only where every provider says so, and a count of transactions is the highest of all providers.
 */
export type RpcClient = (
  method: string,
  params?: readonly unknown[],
  options?: Readonly<{ unanimous?: boolean }>,
) => Promise<unknown>

const defaultMaxBytes = 8 * 1024 * 1024
const mostErrorBytes = 64 * 1024
/** Statuses that are about the account, whatever the error under them says. */
const accountStatuses: ReadonlySet<number> = new Set([401, 402, 403])

/** Sends every call once, whatever its status. Idle connections end by themselves and do not keep the process alive. */
export function createRpcClient({
  url,
  timeoutMs = 3_000,
  maxBytes = defaultMaxBytes,
}: {
  readonly url: string
  readonly timeoutMs?: number
  readonly maxBytes?: number
}): RpcClient {
  const connection = createRpcConnection(new URL(url), { connectTimeoutMs: timeoutMs, maxBytes, anyStatus: true })
  return async (method, params = []) => (await connection.send([[method, params]], performance.now() + timeoutMs))[0]
}

/** The node answered with an error: it did not do what it was asked to do. */
export function isRefusal(error: unknown): error is RpcError {
  return error instanceof RpcError && error.answered
}

/** The node answered with an error about the request. The text of a limit says nothing of it. */
export function isAboutRequest(error: unknown): error is RpcError {
  return isRefusal(error) && error.kind !== 'busy'
}

/** Returns whether the node refused a transaction because it has it already, so that it counts as sent. */
export function isKnownTransaction(error: unknown): boolean {
  return isRefusal(error) && /already known|already imported|\bknown transaction/i.test(error.message)
}

/** The contract reverted, as opposed to the node refusing the request. */
export function isRevert(error: unknown): error is RpcError {
  return isAboutRequest(error) && (error.data !== undefined || /revert/i.test(error.message))
}

/** The calls of one attempt at a provider. The deadline of the attempt holds for all of them. */
export type RpcAttempt = Readonly<{
  ask: (method: string, params: readonly unknown[]) => Promise<unknown>
  askAll: (calls: readonly RpcCall[]) => Promise<readonly unknown[]>
}>

/** `retryAfter` is the header as it came. */
type Answer = Readonly<{ status: number; text: string; retryAfter: unknown }>

type ConnectionOptions = Readonly<{
  connectTimeoutMs: number
  /** Requests under way at one time; more wait. Default: no limit. */
  connections?: number
  maxBytes?: number
  /**
   * Accepts a JSON-RPC answer under any status: a writer must know the node's own error. Default: results under status 200 only, and errors
   * that are about the call under 4xx and 5xx too.
   */
  anyStatus?: boolean
}>

/** Opens nothing yet. User and password in the URL become a Basic Authorization header. */
export function createRpcConnection(url: URL, options: ConnectionOptions) {
  const { connectTimeoutMs, connections, maxBytes = defaultMaxBytes, anyStatus = false } = options
  // undici's own timeouts begin anew with each chunk, so that a dripping body never ends: they are off, ours holds.
  const pool = new Pool(url.origin, {
    connections: connections ?? null,
    headersTimeout: 0,
    bodyTimeout: 0,
    connectTimeout: connectTimeoutMs,
  })
  const path = url.pathname + url.search
  const headers = headersFor(url)
  let lastId = 0

  /** Sends one request, a JSON-RPC batch where there are several calls. `until` is a moment of `performance.now()`. */
  async function send(calls: readonly RpcCall[], until: number): Promise<readonly unknown[]> {
    const members = calls.map(([method, params]) => ({ jsonrpc: '2.0', id: ++lastId, method, params }))
    const body = JSON.stringify(members.length === 1 ? members[0] : members)
    const answer = await exchange({ path, method: 'POST', headers, body }, until)
    const ids = members.map((member) => member.id)
    try {
      return resultsOf(answer, ids)
    } catch (error) {
      throw askingFor(error, answer.retryAfter)
    }
  }

  function resultsOf({ status, text }: Answer, ids: readonly number[]): readonly unknown[] {
    if (status === 200) return parseResults(text, ids)
    try {
      const results = parseResults(text, ids)
      if (anyStatus) return results
    } catch (error) {
      if (isRefusal(error)) throw anyStatus ? refusalUnder(status, error) : errorUnder(status, error)
    }
    throw errorUnder(status)
  }

  function exchange(request: Dispatcher.DispatchOptions, until: number): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = []
      let size = 0
      let status = 0
      let retryAfter: unknown
      let controller: Dispatcher.DispatchController | undefined
      // An answer that already lies in the socket is read before the immediate runs.
      const late = () => setImmediate(() => fail(new RpcError('fault', 'no answer in time')))
      const timer = setTimeout(late, msUntil(until))
      let failure: RpcError | undefined

      // Aborting closes the socket, so that the rest of the body is not read.
      function fail(reason: RpcError): void {
        clearTimeout(timer)
        failure ??= reason
        reject(failure)
        if (controller?.aborted === false) controller.abort(failure)
      }

      pool.dispatch(request, {
        onRequestStart(started) {
          controller = started
          if (failure !== undefined) started.abort(failure)
        },
        onResponseStart(_controller, received, fields) {
          status = received
          retryAfter = fields['retry-after']
          if (status > 200 && status < 400 && !anyStatus) fail(errorUnder(status))
        },
        onResponseData(_controller, chunk) {
          size += chunk.length
          if (status >= 400 && size > mostErrorBytes && !anyStatus) fail(askingFor(errorUnder(status), retryAfter))
          else if (size > maxBytes)
            fail(new RpcError('too-large', `answer is larger than ${maxBytes / 1024 / 1024} MiB`))
          else chunks.push(chunk)
        },
        onResponseEnd() {
          clearTimeout(timer)
          resolve({ status, text: Buffer.concat(chunks, size).toString('utf8'), retryAfter })
        },
        onResponseError(_controller, error) {
          fail(failure ?? new RpcError(isReset(error) ? 'reset' : 'fault', reasonOf(error)))
        },
      })
    })
  }

  return { send, close: (): Promise<void> => pool.destroy() }
}

/** Returns the failure of an answer under another status than 200. A limit, an account or a fault says nothing of the call. */
function errorUnder(status: number, error?: RpcError): RpcError {
  const message = error === undefined ? `status ${status}` : `status ${status}: ${error.message}`
  if (status === 429) return new RpcError('busy', message)
  if (error === undefined || accountStatuses.has(status)) return new RpcError('fault', message)
  return error.isFault ? new RpcError(error.kind, message) : error
}

/** A writer knows the node's own error. Under a limit it is one of the limit, whatever it says. */
function refusalUnder(status: number, error: RpcError): RpcError {
  return status === 429 ? new RpcError('busy', error.message, { data: error.data }) : error
}

/** Adds to a limit the pause that the header asks for. */
function askingFor<E>(error: E, retryAfter: unknown): E | RpcError {
  if (!(error instanceof RpcError) || error.kind !== 'busy') return error
  const { message, answered, data } = error
  return new RpcError('busy', message, answered ? { data } : undefined, parseRetryAfter(retryAfter, Date.now()))
}

function headersFor(url: URL): Record<string, string> {
  const headers = { 'content-type': 'application/json', accept: 'application/json', 'user-agent': 'touchstone' }
  if (url.username === '' && url.password === '') return headers
  const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`
  return { ...headers, authorization: `Basic ${Buffer.from(credentials).toString('base64')}` }
}

/** A kept-alive socket that the server closed meanwhile, not a server that rejects connections. */
function isReset(error: Error): boolean {
  const code = 'code' in error ? error.code : undefined
  return code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'EPIPE'
}
