/**
 * JSON-RPC as writes need it (spec §2.5): one request at a time, nothing sent twice, one deadline over headers and body,
 * bounded answers, and the node's own error (code, text, revert data) kept apart from a broken connection.
 */
import type { Hex } from '@touchstone/verdict'
import { textWithin } from '../bounded-text.ts'

export type WriterRpc = (method: string, params?: readonly unknown[]) => Promise<unknown>

/** The node answered and said no. `data` is what a revert returned. */
export class RpcRefusal extends Error {
  readonly code: number
  readonly data: Hex | undefined

  constructor(code: number, message: string, data: Hex | undefined) {
    super(message)
    this.name = 'RpcRefusal'
    this.code = code
    this.data = data
  }
}

export type WriterRpcOptions = Readonly<{ url: string; timeoutMs?: number; maxBytes?: number }>

/** Every call throws `RpcRefusal` when the node says no, and another error when no usable answer came: then the outcome is unknown. */
export function createWriterRpc({ url, timeoutMs = 3_000, maxBytes = 8 * 1024 * 1024 }: WriterRpcOptions): WriterRpc {
  const { target, headers } = withoutCredentials(url)
  let lastId = 0

  return async (method, params = []) => {
    const id = (lastId += 1)
    const body = JSON.stringify({ jsonrpc: '2.0', id, method, params })
    const signal = AbortSignal.timeout(timeoutMs)
    const response = await fetch(target, { method: 'POST', headers, body, signal, redirect: 'error' })
    const text = await textWithin(response.body, maxBytes)
    if (text === null) throw new Error('the answer is too large')
    return resultOf(text, id, response.status)
  }
}

/** fetch refuses a URL with user and password, and an error text would repeat it. */
function withoutCredentials(url: string): { target: string; headers: Record<string, string> } {
  const target = new URL(url)
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  if (target.username !== '' || target.password !== '') {
    const pair = `${decodeURIComponent(target.username)}:${decodeURIComponent(target.password)}`
    headers['authorization'] = `Basic ${Buffer.from(pair).toString('base64')}`
    target.username = target.password = ''
  }
  return { target: target.href, headers }
}

type Answer = { id?: unknown; result?: unknown; error?: { code?: unknown; message?: unknown; data?: unknown } }

function resultOf(body: string, id: number, status: number): unknown {
  const answer = parsed(body)
  if (answer === undefined) throw new Error(`status ${status} without a JSON-RPC answer`)
  if (answer.error !== undefined && answer.error !== null) {
    const { code, message, data } = answer.error
    const text = String(message)
      .slice(0, 300)
      .replace(/0x[0-9a-f]{40}\b/gi, '0x…') // no account in a log
    throw new RpcRefusal(typeof code === 'number' ? code : 0, text, revertData(data))
  }
  if (answer.id !== id || !('result' in answer)) throw new Error(`status ${status} with an answer to another request`)
  return answer.result
}

function parsed(text: string): Answer | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/** Some clients wrap the bytes in an object, or put a word in front of them. */
function revertData(data: unknown): Hex | undefined {
  const inner = typeof data === 'object' && data !== null && 'data' in data ? data.data : data
  const found = typeof inner === 'string' ? /0x(?:[0-9a-f]{2})*$/i.exec(inner)?.[0] : undefined
  return found as Hex | undefined
}
