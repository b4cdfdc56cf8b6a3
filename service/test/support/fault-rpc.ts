/**
 * A JSON-RPC provider that misbehaves on demand: a loopback proxy in front of a real node (spec §2.5: CHAIN_UNAVAILABLE).
 * `set` applies to requests that arrive after it.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { serve } from './http.ts'
import { setTimeout as delay } from 'node:timers/promises'

type Call = { id: number; method: string; params: readonly unknown[] }
type Answer = { jsonrpc: string; id: unknown; result?: unknown; error?: { code: number; message: string } }

const wrongResult = (answer: Answer, error: Answer['error']): Answer => ({
  jsonrpc: '2.0',
  id: answer.id,
  ...(error && { error }),
})

/** Faults of the request to the node: pins by hash object are ignored, or not understood. */
const requestFaults = {
  'ignores-hash-objects': (call: Call): Call =>
    isPinned(call) ? { ...call, params: call.params.toSpliced(-1, 1, 'latest') } : call,
  'no-hash-objects': (call: Call): Call =>
    isPinned(call) ? { ...call, params: call.params.toSpliced(-1, 1, {}) } : call,
}

function isPinned({ method, params }: Call): boolean {
  const last = params.at(-1)
  return method !== 'eth_getLogs' && typeof last === 'object' && last !== null && 'blockHash' in last
}

/** Faults of single answers. `call` is the request, `answer` the real node's answer. */
const answerFaults = {
  none: (answer: Answer) => answer,
  'wrong-id': (answer: Answer) => ({ ...answer, id: 1_000_000 }),
  'null-result': (answer: Answer) => ({ ...answer, result: null }),
  'no-result': (answer: Answer) => wrongResult(answer, undefined),
  'rpc-error': (answer: Answer) => wrongResult(answer, { code: -32000, message: 'missing trie node 1f2e (path )' }),
  'not-canonical': (answer: Answer) =>
    wrongResult(answer, { code: -32000, message: 'hash is not currently canonical' }),
  'rate-limit': (answer: Answer) => wrongResult(answer, { code: -32005, message: 'rate limit exceeded' }),
  'vague-limit': (answer: Answer) => wrongResult(answer, { code: -32005, message: 'query timeout exceeded' }),
  'too-wide': (answer: Answer) => wrongResult(answer, { code: -32602, message: 'up to a 2K block range is served' }),
  'other-chain': (answer: Answer, { method }: Call) =>
    method === 'eth_chainId' ? { ...answer, result: '0x1' } : answer,
  'empty-result': (answer: Answer, { method, params }: Call) =>
    isCallOfContract(method, params) ? { ...answer, result: '0x' } : answer,
  'hide-logs': ({ jsonrpc, id, ...rest }: Answer, { method }: Call) => ({
    jsonrpc,
    id,
    ...(method === 'eth_getLogs' ? { result: [] } : rest),
  }),
}

/** Excludes the call that shows the block which a provider answers from. */
export function isCallOfContract(method: string, [call]: readonly unknown[]): boolean {
  return method === 'eth_call' && (call as { to?: string }).to !== undefined
}

/** Forges the results of contracts. */
export function forgedCalls(forge: (result: unknown) => unknown): Fault {
  return { rewrite: (method, params, result) => (isCallOfContract(method, params) ? forge(result) : result) }
}

/** Takes the filter of logs from a block, whose header cannot be checked then: its logs may be hidden. For `rewrite`. */
export function withoutFilter(method: string, result: unknown): unknown {
  return method.startsWith('eth_getBlockBy') && result !== null ? { ...result, logsBloom: undefined } : result
}

/** Faults of the list that answers a batch. */
const batchFaults = {
  'batch-drop': (answers: Answer[]) => answers.slice(1),
  'batch-reorder': (answers: Answer[]) => answers.toReversed(),
  'batch-duplicate': (answers: Answer[]) => [answers[0], ...answers.slice(0, -1)],
  'batch-extra': (answers: Answer[]) => [...answers, answers[0]],
  'batch-refused': () => ({ jsonrpc: '2.0', id: null, error: { code: -32600, message: 'batches are not supported' } }),
}

/** Faults of the HTTP exchange. `hang` never answers, `drip` sends a byte per 100 ms, `truncated` breaks off half-way. */
const transportFaults = {
  hang: () => {},
  die: (response: ServerResponse) => response.destroy(),
  drip: async (response: ServerResponse, body: string) => {
    for (const byte of Buffer.from(body)) {
      if (response.destroyed) return
      response.write(Uint8Array.of(byte))
      await delay(100)
    }
    response.end()
  },
  status500: (response: ServerResponse, body: string) => response.writeHead(500).end(body),
  status429: (response: ServerResponse) => response.writeHead(429).end('Too Many Requests'),
  redirect: (response: ServerResponse) => response.writeHead(307, { location: 'http://127.0.0.1:9/' }).end(),
  garbage: (response: ServerResponse) => response.end('<html>bad gateway</html>'),
  truncated: (response: ServerResponse, body: string) => {
    response.writeHead(200, { 'content-length': Buffer.byteLength(body) })
    response.write(body.slice(0, body.length / 2), () => response.destroy())
  },
}

export type FaultName =
  | keyof typeof requestFaults
  | keyof typeof answerFaults
  | keyof typeof batchFaults
  | keyof typeof transportFaults

export type Fault = Readonly<{
  name?: FaultName
  /** Only requests with one of these methods; without it all. */
  methods?: readonly string[]
  /** Only requests with one such call; `size` is the number of calls of the request. */
  when?: (method: string, params: readonly unknown[], size: number) => boolean
  /** Only this share of the requests, from 0 to 1, at random; a batch is one request. */
  share?: number
  /** Only every second of the requests that are meant, from the first on. */
  everyOther?: boolean
  /** So many requests, then `none`. */
  times?: number
  /** The header `Retry-After` of the answers. */
  retryAfter?: string
  delayMs?: number
  /** A request goes on once this resolves. */
  held?: Promise<unknown>
  /** Returns the forged result. Called for every member of a batch that has a result. */
  rewrite?: (method: string, params: readonly unknown[], result: unknown) => unknown
}>

export type FaultRpc = Awaited<ReturnType<typeof startFaultRpc>>

/** A provider that hides all logs, whose headers do not show it. */
export const hiddenLogs: Fault = {
  name: 'hide-logs',
  rewrite: (method, _params, result) => withoutFilter(method, result),
}

/** Listens on a free port of 127.0.0.1. `target` is the URL of the real node; it is asked in the turn that `inTurn` gives. */
export async function startFaultRpc({
  target,
  inTurn = (ask) => ask(),
}: {
  target: string
  inTurn?: (ask: () => Promise<Answer | Answer[]>) => Promise<Answer | Answer[]>
}) {
  const counts = new Map<string, number>()
  let fault: Fault = {}
  let left = Infinity
  let struck = 0
  let meant = 0

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const sent = Buffer.concat(await request.toArray()).toString('utf8')
    const body: Call | Call[] = JSON.parse(sent)
    const calls = [body].flat()
    for (const { method } of calls) counts.set(method, (counts.get(method) ?? 0) + 1)
    const { name = 'none', delayMs = 0, held, rewrite, retryAfter } = faultFor(calls)
    if (held !== undefined || delayMs > 0) await (held ?? delay(delayMs))

    const headers = { 'content-type': 'application/json' }
    const toNode = isIn(requestFaults, name) ? calls.map(requestFaults[name]) : calls
    const forwarded = JSON.stringify(Array.isArray(body) ? toNode : toNode[0])
    const real = await inTurn(async () => {
      const reached = await fetch(target, { method: 'POST', headers, body: forwarded })
      return (await reached.json()) as Answer | Answer[]
    })
    const answers = [real].flat().map((answer): Answer => {
      const call = calls.find(({ id }) => id === answer.id) ?? { id: -1, method: '', params: [] }
      const changed =
        rewrite && 'result' in answer ? { ...answer, result: rewrite(call.method, call.params, answer.result) } : answer
      return isIn(answerFaults, name) ? answerFaults[name](changed, call) : changed
    })
    const listed = Array.isArray(body) ? (isIn(batchFaults, name) ? batchFaults[name](answers) : answers) : answers[0]
    const text = JSON.stringify(listed)
    if (retryAfter !== undefined) response.setHeader('retry-after', retryAfter)
    if (isIn(transportFaults, name)) return void (await transportFaults[name](response, text))
    response.writeHead(200, headers).end(text)
  }

  function faultFor(calls: readonly Call[]): Fault {
    const { methods, when = () => true, share = 1, everyOther = false } = fault
    const isMeant = ({ method, params }: Call) =>
      (methods === undefined || methods.includes(method)) && when(method, params, calls.length)
    if (left <= 0 || !calls.some(isMeant) || Math.random() >= share) return {}
    if (meant++ % 2 === 1 && everyOther) return {}
    left--
    struck++
    return fault
  }

  const { url, close } = await serve(
    (request, response) => void handle(request, response).catch(() => response.destroy()),
  )
  return {
    url,
    set: (next: FaultName | Fault) => {
      fault = typeof next === 'string' ? { name: next } : next
      left = fault.times ?? Infinity
      struck = meant = 0
    },
    /** The calls since the start; every member of a batch counts. */
    calls: () => [...counts].map(([method, count]) => ({ method, count })),
    count: (method: string) => counts.get(method) ?? 0,
    /** The requests that met the fault since it was set. */
    struck: () => struck,
    close,
  }
}

function isIn<T extends object>(table: T, name: string): name is Extract<keyof T, string> {
  return Object.hasOwn(table, name)
}
