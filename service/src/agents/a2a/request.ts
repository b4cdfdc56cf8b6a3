/** The request in a message: one of the tools, by a data part or in words (spec §9 «an A2A agent protocol endpoint»). */
import { parseTokenId } from '@touchstone/verdict'
import { isObject, type JsonObject } from '../../lib/json.ts'
import { invalid, type Fault } from './errors.ts'
import type { Part } from './wire.ts'
import { toolNames, type ToolName } from '../tools/tools.ts'

export type ToolRequest =
  | { readonly kind: 'run'; readonly skill: ToolName; readonly args: JsonObject }
  /** `skill` is kept for the message that brings the token id. */
  | { readonly kind: 'no token id'; readonly skill: ToolName }
  | { readonly kind: 'unknown skill' }

/** Parses the parts of a message. `before` is the skill that an earlier message has named. A data part has precedence over text. */
export function parseToolRequest(parts: readonly Part[], before: ToolName | undefined): ToolRequest | Fault {
  const datas = parts.flatMap((part) => ('data' in part ? [part.data] : []))
  if (datas.length > 1) return invalid('message.parts', 'must hold at most one data part.')
  if (datas.length === 1) return parseData(datas[0], before)
  const text = parts.map((part) => ('text' in part ? part.text : '')).join('\n')
  const skill = skillIn(text) ?? before ?? 'verify_asset'
  const token_id = onlyNumberIn(text)
  return token_id === null ? { kind: 'no token id', skill } : { kind: 'run', skill, args: { token_id } }
}

function parseData(data: unknown, before: ToolName | undefined): ToolRequest | Fault {
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

/** Words for other numbers of an item, and a link, whose host may be another one. */
const otherNumbers = /:\/\/|\b(?:serials?|s\/n|gtins?|eans?|upcs?|skus?)\b/i

/** A number that is no part of a word, a code, a link, a fraction, a price or a share. */
const wholeNumber =
  /(?<![\p{L}\p{N}_.,/+\\])(?<![\p{L}\p{N}]\*)(?<!\p{Sc}\s?)(?<!(?<!\btoken)\p{Pd})\d+(?![\p{L}\p{N}_]|[.,]\d|\s?[\p{Sc}%‰]|[\p{Pd}/+*\\][\p{L}\p{N}])/iu

/**
 * Returns the only number of a text, if it can be a token id. Nothing is guessed where the text names another number of the item,
 * such as the serial `HFJ-000417`, or has a link (decisions/0039).
 */
function onlyNumberIn(text: string): string | null {
  if (otherNumbers.test(text)) return null
  const numbers = text.match(/\p{N}+/gu) ?? []
  const [whole] = wholeNumber.exec(text) ?? []
  return numbers.length === 1 && whole !== undefined && parseTokenId(whole) !== null ? whole : null
}
