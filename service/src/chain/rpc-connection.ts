/**
 * One JSON-RPC provider over HTTP (spec §2.5): one deadline from the first byte out to the last byte in,
 * at most 8 MiB, status 200 only, no redirects. What comes back has passed `rpc-answer.ts`.
 */
import { Pool } from 'undici'
import type { Dispatcher } from 'undici'
import { reasonOf } from '../errors.ts'
import { RpcFailure, resultsOf } from './rpc-answer.ts'

export type RpcCall = readonly [method: string, params: readonly unknown[]]

/** What a read may do with the one provider it was given; the deadline of the attempt holds for all of it. */
export type Rpc = Readonly<{
  ask: (method: string, params: readonly unknown[]) => Promise<unknown>
  askAll: (calls: readonly RpcCall[]) => Promise<readonly unknown[]>
}>

export type RpcConnection = Readonly<{
  /** Sends one request, a JSON-RPC batch where there are several calls. `until` is a moment of `performance.now()`. */
  send: (calls: readonly RpcCall[], until: number) => Promise<readonly unknown[]>
  close: () => Promise<void>
}>

const maxAnswerBytes = 8 * 1024 * 1024

/** Opens nothing yet. User and password in the URL become a Basic Authorization header. */
export function createRpcConnection(url: URL, connectTimeoutMs: number): RpcConnection {
  // undici's own timeouts begin anew with each chunk, so that a dripping body never ends: they are off, ours holds.
  const pool = new Pool(url.origin, {
    connections: 16,
    headersTimeout: 0,
    bodyTimeout: 0,
    connectTimeout: connectTimeoutMs,
  })
  const path = url.pathname + url.search
  const headers = headersOf(url)
  let lastId = 0

  async function send(calls: readonly RpcCall[], until: number): Promise<readonly unknown[]> {
    const members = calls.map(([method, params]) => ({ jsonrpc: '2.0', id: ++lastId, method, params }))
    const body = JSON.stringify(members.length === 1 ? members[0] : members)
    const text = await exchange(pool, { path, method: 'POST', headers, body }, until)
    return resultsOf(
      text,
      members.map((member) => member.id),
    )
  }

  return { send, close: () => pool.destroy() }
}

function headersOf(url: URL): Record<string, string> {
  const headers = { 'content-type': 'application/json', accept: 'application/json', 'user-agent': 'touchstone' }
  if (url.username === '' && url.password === '') return headers
  const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`
  return { ...headers, authorization: `Basic ${Buffer.from(credentials).toString('base64')}` }
}

function exchange(pool: Pool, options: Dispatcher.DispatchOptions, until: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    let controller: Dispatcher.DispatchController | undefined
    const timer = setTimeout(
      () => fail(new RpcFailure('fault', 'no answer in time')),
      Math.max(0, until - performance.now()),
    )
    let failure: RpcFailure | undefined

    // Aborting breaks the socket: what still drips in belongs to nobody.
    function fail(reason: RpcFailure): void {
      clearTimeout(timer)
      failure ??= reason
      reject(failure)
      if (controller?.aborted === false) controller.abort(failure)
    }

    pool.dispatch(options, {
      onRequestStart(started) {
        controller = started
        if (failure !== undefined) started.abort(failure)
      },
      onResponseStart(_controller, status) {
        if (status >= 200 && status !== 200) fail(new RpcFailure(status === 429 ? 'busy' : 'fault', `status ${status}`))
      },
      onResponseData(_controller, chunk) {
        size += chunk.length
        if (size > maxAnswerBytes) fail(new RpcFailure('too-large', 'answer is larger than 8 MiB'))
        else chunks.push(chunk)
      },
      onResponseEnd() {
        clearTimeout(timer)
        resolve(Buffer.concat(chunks, size).toString('utf8'))
      },
      onResponseError(_controller, error) {
        fail(failure ?? new RpcFailure(isReset(error) ? 'reset' : 'fault', reasonOf(error)))
      },
    })
  })
}

/** A kept-alive socket that the server closed meanwhile, not a server that refuses connections. */
function isReset(error: Error): boolean {
  const code = 'code' in error ? error.code : undefined
  return code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'EPIPE'
}
