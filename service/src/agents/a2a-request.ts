/** What a message asks for: one of the tools, by a data part or in words (spec §9 «an A2A agent protocol endpoint»). */
import { parseTokenId } from '@touchstone/verdict'
import { invalid, type Fault } from './a2a-errors.ts'
import { isObject, type Json, type Part } from './a2a-wire.ts'
import { toolNames, type ToolName } from './tools.ts'

export type Asked =
  | { readonly kind: 'run'; readonly skill: ToolName; readonly args: Json }
  /** Without a token id; `skill` is for when it comes. */
  | { readonly kind: 'no token id'; readonly skill: ToolName }
  | { readonly kind: 'unknown skill' }

/** `before`: the skill that an earlier message of the task has chosen. A data part decides; text counts only without one. */
export function askedBy(parts: readonly Part[], before: ToolName | undefined): Asked | Fault {
  const datas = parts.flatMap((part) => ('data' in part ? [part.data] : []))
  if (datas.length > 1) return invalid('message.parts', 'must hold at most one data part.')
  if (datas.length === 1) return askedByData(datas[0], before)
  const text = parts.map((part) => ('text' in part ? part.text : '')).join('\n')
  const skill = skillIn(text) ?? before ?? 'verify_asset'
  const token_id = onlyNumberIn(text)
  return token_id === null ? { kind: 'no token id', skill } : { kind: 'run', skill, args: { token_id } }
}

function askedByData(data: unknown, before: ToolName | undefined): Asked | Fault {
  if (!isObject(data)) return invalid('message.parts', 'the data part must be an object with skill and token_id.')
  const { skill = before ?? 'verify_asset', ...args } = data
  const known = toolNames.find((name) => name === skill)
  if (known === undefined) return { kind: 'unknown skill' }
  const id = args['token_id'] ?? args['tokenId']
  const isId = typeof id === 'string' ? parseTokenId(id) !== null : Number.isSafeInteger(id) && Number(id) >= 0
  return isId ? { kind: 'run', skill: known, args } : { kind: 'no token id', skill: known }
}

function skillIn(text: string): ToolName | undefined {
  if (/flag/i.test(text)) return 'check_flagged'
  return /histor/i.test(text) ? 'get_lifecycle_history' : undefined
}

/** The text's number, if it has exactly one that can be a token id. Digits in a word, a fraction or a negative number are none. */
function onlyNumberIn(text: string): string | null {
  const numbers = text.match(/\d+/g) ?? []
  const whole = /(?<![\p{L}\p{N}_.,])(?<!(?<![\p{L}\p{N}])-)\d+(?![\p{L}\p{N}_]|[.,]\d)/u.exec(text)?.[0]
  return numbers.length === 1 && whole !== undefined && parseTokenId(whole) !== null ? whole : null
}
