/**
 * The checks of a JSON-RPC 2.0 answer and the meaning of its errors (spec §2.2, §2.5). Clients do not agree on codes for
 * unknown blocks (EIP-1474 has −32001, geth says −32000, the proxy of base.org −32019), so texts count too.
 */
import type { Hex } from '@touchstone/verdict'
import { isObject, parseJson } from '../../lib/json.ts'

/**
 * The kinds of failure of one provider.
 * - `fault`: no answer, or one that cannot be right · `reset`: the socket broke · `busy`: rate limit · `too-large`: too many bytes
 * - `non-canonical`: the block is unknown there or not canonical · `reverted`: the chain itself rejects the call, or no code answers
 * - `too-wide`: a log range it does not serve · `rejected`: it rejects such requests, or the caller rejects its answer · `behind`: it lags
 */
export type RpcErrorKind =
  | 'fault'
  | 'reset'
  | 'busy'
  | 'too-large'
  | 'non-canonical'
  | 'reverted'
  | 'too-wide'
  | 'rejected'
  | 'behind'

/** The pinned block is no longer canonical, or unknown to every provider: the head must be resolved again. */
export const nonCanonical = Symbol('non-canonical block')
export type NonCanonical = typeof nonCanonical

/** No provider answers for so many blocks or logs at once: the caller must ask for fewer. */
export const rangeTooWide = Symbol('range too wide')
export type RangeTooWide = typeof rangeTooWide

/** Only these open the breaker. A request that reverts must not, because anyone may cause one. */
const faults: ReadonlySet<RpcErrorKind> = new Set(['fault', 'reset', 'busy', 'too-large'])

/** The reason why a provider gave no usable answer. The message is for the log only. */
export class RpcError extends Error {
  readonly kind: RpcErrorKind
  /** The provider answered with an error, in a well-formed answer. */
  readonly answered: boolean
  /** The bytes that a revert returned. */
  readonly data: Hex | undefined
  /** The pause that a `busy` provider asks for, in milliseconds. */
  readonly retryAfterMs: number | undefined

  constructor(
    kind: RpcErrorKind,
    message: string,
    answer?: { readonly data?: Hex | undefined },
    retryAfterMs?: number,
  ) {
    super(message)
    this.name = 'RpcError'
    this.kind = kind
    this.answered = answer !== undefined
    this.data = answer?.data
    this.retryAfterMs = retryAfterMs
  }

  get isFault(): boolean {
    return faults.has(this.kind)
  }
}

/**
 * Returns the results in the order of `ids`. One id expects an object, more expect an array with each id exactly once
 * (in any order): a member that is missing, doubled or foreign must never shift an answer to another request.
 */
export function parseResults(text: string, ids: readonly number[]): readonly unknown[] {
  const body = parseJson(text)
  if (body === undefined) throw new RpcError('fault', 'answer is not JSON')
  // An error without id is about the request as a whole, such as a batch where the provider does none.
  if (isObject(body) && body.error && (body.id === null || ids.length > 1)) throw parseError(body.error)
  if (ids.length === 1) return [parseResult(body, ids[0])]
  if (!Array.isArray(body)) throw new RpcError('fault', 'no batch')
  if (body.length !== ids.length) throw new RpcError('fault', `batch of ${body.length} answers to ${ids.length} calls`)
  const byId = new Map<unknown, unknown>(
    body.map((answer: unknown) => [isObject(answer) ? answer.id : undefined, answer]),
  )
  return ids.map((id) => {
    if (!byId.has(id)) throw new RpcError('fault', 'batch answer without one of the ids')
    return parseResult(byId.get(id), id)
  })
}

function parseResult(answer: unknown, id: number | undefined): unknown {
  if (!isObject(answer) || answer.jsonrpc !== '2.0') throw new RpcError('fault', 'answer is not JSON-RPC 2.0')
  if (answer.id !== id) throw new RpcError('fault', 'answer has another id')
  if (answer.error !== undefined) throw parseError(answer.error)
  if (answer.result === undefined) throw new RpcError('fault', 'answer without result')
  return answer.result
}

const rateWords = /rate.?limit|too many requests|quota|capacity|credits|per second/i

/** Returns whether the provider gave the code of any limit, −32005 (EIP-1474), without words of a rate. */
export function isVagueLimit({ kind, message }: RpcError): boolean {
  return kind === 'busy' && message.includes('error -32005:') && !rateWords.test(message)
}

/** Read from top to bottom. «Method … not found» must not look like a block that is not found, nor a reason of a revert like a limit. */
const meanings: readonly (readonly [RpcErrorKind, readonly number[], RegExp])[] = [
  ['rejected', [-32601], /^method .* (not found|not supported|does not exist)/i],
  [
    'reverted',
    [3, -32015],
    /revert|invalid opcode|invalid jump|out of gas|gas required exceeds|stack (over|under)|evm error/i,
  ],
  ['busy', [-32029, 429], rateWords],
  [
    'non-canonical',
    [-32001, -32019, -39001],
    /not (currently )?canonical|\b(header|block|hash)\b.{0,90}not (be )?found|unknown block/i,
  ],
  [
    'too-wide',
    [-32012],
    /\branges?\b|more than \d|too many (logs|results|blocks)|response size|exceeds? (the )?(max|limit)/i,
  ],
  ['busy', [-32005], /limit exceeded/i],
  ['rejected', [-32600, -32602, -32004], /not supported|unsupported/i],
]

/** Codes under which no text means a revert. */
const limitCodes: ReadonlySet<unknown> = new Set([-32005, -32029, 429])

function parseError(error: unknown): RpcError {
  const { code, message, data } = isObject(error) ? error : {}
  const text = typeof message === 'string' ? message.slice(0, 300) : ''
  const found = meanings.find(
    ([kind, codes, says]) =>
      codes.includes(code as number) || (says.test(text) && !(kind === 'reverted' && limitCodes.has(code))),
  )
  const shown = typeof code === 'number' ? code : 'without code'
  return new RpcError(found?.[0] ?? 'fault', `error ${shown}: ${redacted(text)}`, { data: parseRevertData(data) })
}

/** Providers repeat keys, addresses and URLs in their errors: long words never reach the log. */
function redacted(message: string): string {
  return message
    .replace(/\S*:\/\/\S*|[\w-]{18,}/g, '…')
    .replace(/\p{C}/gu, ' ')
    .slice(0, 120)
}

/** Some clients wrap the bytes in an object, or put a word in front of them. */
function parseRevertData(data: unknown): Hex | undefined {
  const inner = isObject(data) && 'data' in data ? data.data : data
  const found = typeof inner === 'string' ? /0x(?:[0-9a-f]{2})*$/i.exec(inner)?.[0] : undefined
  return found as Hex | undefined
}

/** Returns whether a value is data in lower-case hex, whole bytes. The caller rejects `0x` where code must answer. */
export function isHexData(value: unknown): value is Hex {
  return (
    typeof value === 'string' && value.startsWith('0x') && value.length % 2 === 0 && !/[^0-9a-f]/.test(value.slice(2))
  )
}

/** Returns whether a value is a 32-byte word in lower-case hex. */
export function isWord(value: unknown): value is Hex {
  return isHexData(value) && value.length === 66
}

/** Encodes a quantity of JSON-RPC. */
export function quantity(value: bigint): Hex {
  return `0x${value.toString(16)}`
}

/** Parses a quantity of JSON-RPC: no leading zeros, at most 64 bits. Returns `null` for anything else. */
export function parseQuantity(value: unknown): bigint | null {
  return typeof value === 'string' && /^0x(0|[1-9a-f][0-9a-f]{0,15})$/.test(value) ? BigInt(value) : null
}

/** Parses a quantity of up to 256 bits, with leading zeros or without. Throws for anything else. */
export function requireQuantity(value: unknown): bigint {
  if (typeof value !== 'string' || !/^0x[0-9a-f]{1,64}$/i.test(value)) throw new Error('The node returned no quantity.')
  return BigInt(value)
}
