/**
 * What a JSON-RPC answer must look like before a word of it is believed, and what its errors mean (spec §2.2, §2.5).
 * JSON-RPC 2.0; clients do not agree on codes for unknown blocks (EIP-1474 has −32001, geth says −32000), so texts count too.
 */

/**
 * What went wrong with one provider.
 * - `fault`: no answer, or one that cannot be right · `reset`: the socket broke · `busy`: rate limit · `too-large`: over 8 MiB
 * - `gone`: the block is unknown there or not canonical · `reverted`: the chain itself says no, or no code answers
 * - `too-wide`: a log range it does not serve · `refused`: it does not do such requests · `behind`: it lags
 */
export type FailureKind =
  | 'fault'
  | 'reset'
  | 'busy'
  | 'too-large'
  | 'gone'
  | 'reverted'
  | 'too-wide'
  | 'refused'
  | 'behind'

/** Only these say that the provider is ill. Anyone may ask for something that reverts: it must not open the breaker. */
const faults: ReadonlySet<FailureKind> = new Set(['fault', 'reset', 'busy', 'too-large'])

/** Why a provider gave no usable answer. The message is for the log only. */
export class RpcFailure extends Error {
  readonly kind: FailureKind
  /** The provider itself said no, in a well-formed answer. */
  readonly said: boolean

  constructor(kind: FailureKind, message: string, said = false) {
    super(message)
    this.name = 'RpcFailure'
    this.kind = kind
    this.said = said
  }

  get isFault(): boolean {
    return faults.has(this.kind)
  }
}

/**
 * The results in the order of `ids`. One id expects an object, more expect an array with each id exactly once
 * (in any order): a member that is missing, doubled or foreign must never shift an answer to another request.
 */
export function resultsOf(text: string, ids: readonly number[]): readonly unknown[] {
  const body = parsed(text)
  if (ids.length === 1) return [resultOf(body, ids[0])]
  // Who does no batches answers them with one error, which has no id.
  if (!Array.isArray(body))
    throw isObject(body) && body.error ? failureOf(body.error) : new RpcFailure('fault', 'no batch')
  if (body.length !== ids.length)
    throw new RpcFailure('fault', `batch of ${body.length} answers to ${ids.length} calls`)
  const byId = new Map<unknown, unknown>(
    body.map((answer: unknown) => [isObject(answer) ? answer.id : undefined, answer]),
  )
  return ids.map((id) => {
    if (!byId.has(id)) throw new RpcFailure('fault', 'batch answer without one of the ids')
    return resultOf(byId.get(id), id)
  })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new RpcFailure('fault', 'answer is not JSON')
  }
}

function resultOf(answer: unknown, id: number | undefined): unknown {
  if (!isObject(answer) || answer.jsonrpc !== '2.0') throw new RpcFailure('fault', 'answer is not JSON-RPC 2.0')
  if (answer.id !== id) throw new RpcFailure('fault', 'answer has another id')
  if (answer.error !== undefined) throw failureOf(answer.error)
  if (answer.result === undefined) throw new RpcFailure('fault', 'answer without result')
  return answer.result
}

/** Read from top to bottom. «Method … not found» must not look like a block that is not found. */
const meanings: readonly (readonly [FailureKind, readonly number[], RegExp])[] = [
  ['refused', [-32601], /^method .* (not found|not supported|does not exist)/i],
  ['busy', [-32029, 429], /rate.?limit|too many requests|quota|capacity|credits|per second/i],
  [
    'reverted',
    [3, -32015],
    /revert|invalid opcode|invalid jump|out of gas|gas required exceeds|stack (over|under)|evm error/i,
  ],
  ['gone', [-32001, -39001], /not (currently )?canonical|\b(header|block|hash)\b.{0,90}not (be )?found|unknown block/i],
  [
    'too-wide',
    [-32012],
    /\brange\b|more than \d|too many (logs|results|blocks)|response size|exceeds? (the )?(max|limit)/i,
  ],
  ['refused', [-32600, -32602, -32004], /not supported|unsupported/i],
]

function failureOf(error: unknown): RpcFailure {
  const code = isObject(error) && typeof error.code === 'number' ? error.code : undefined
  const message = isObject(error) && typeof error.message === 'string' ? error.message.slice(0, 300) : ''
  const found = meanings.find(([, codes, text]) => (code !== undefined && codes.includes(code)) || text.test(message))
  return new RpcFailure(found?.[0] ?? 'fault', `error ${code ?? 'without code'}: ${redacted(message)}`, true)
}

/** Providers repeat keys, addresses and URLs in their errors: long words never reach the log. */
function redacted(message: string): string {
  return message
    .replace(/\S*:\/\/\S*|[\w-]{18,}/g, '…')
    .replace(/\p{C}/gu, ' ')
    .slice(0, 120)
}

/** Data in lower-case hex, whole bytes; `0x` is refused by the caller where code must answer. */
export function isHexData(value: unknown): value is `0x${string}` {
  return (
    typeof value === 'string' && value.startsWith('0x') && value.length % 2 === 0 && !/[^0-9a-f]/.test(value.slice(2))
  )
}

/** A 32-byte word in lower-case hex. */
export function isWord(value: unknown): value is `0x${string}` {
  return isHexData(value) && value.length === 66
}

/** A quantity as JSON-RPC writes it: no leading zeros, at most 64 bits. `null` for anything else. */
export function quantityOf(value: unknown): bigint | null {
  return typeof value === 'string' && /^0x(0|[1-9a-f][0-9a-f]{0,15})$/.test(value) ? BigInt(value) : null
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
