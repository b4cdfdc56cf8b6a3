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

/** A link, whose host may be another one, or an address of mail. */
const link = /:\/\/|[\p{L}\p{N}]@[\p{L}\p{N}]|[\p{L}\p{N}-]\.\p{L}{2,}[:/?#]/u

/** Words for other numbers of an item and for prices. The serial is known in the languages of the pages. */
const otherNumbers =
  /\bs[eé]ri(?:al|e)|تسلسلي|\b(?:s\/n|gtins?|eans?|upcs?|skus?|isbns?|imeis?|bar-?codes?|strichcodes?|code-barres|códigos? de barras|prices?|costs?|eur|euros?|usd|dollars?|gbp|pounds?|chf|jpy|yen)\b/iu

/** Numbers in words, in the languages of the pages. `one` is left out, because it stands for an item too. */
const inWords = [
  'two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen',
  '(?:twen|thir|for|fif|six|seven|eigh|nine)ty|hundreds?|thousands?|millions?|dozens?',
  'zwei|drei|vier|fünf|sechs|sieben|acht|neun|elf|zwölf',
  '\\p{L}{0,12}(?:zehn|zwanzig|drei(?:ß|ss)ig|(?:vier|fünf|sech|sieb|acht|neun)zig|hundert|tausend)',
  'deux|trois|quatre|cinq|sept|huit|dix|onze|douze|treize|quatorze|quinze|seize',
  'vingts?|trente|quarante|cinquante|soixante|cents?|mille',
  'dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|doce|trece|catorce|quince|veinte|treinta|cuarenta|cincuenta',
  'sesenta|setenta|ochenta|noventa|cien|ciento|mil',
  'و?(?:اثنان|ثلاث|أربع|خمس|ست|سبع|ثمان|تسع|عشر|مئة|مائة|ألف)\\p{L}*',
]
const numberWords = new RegExp(`(?<![\\p{L}\\p{N}])(?:${inWords.join('|')})(?![\\p{L}\\p{N}])`, 'iu')

/** The number is a part of a word, a fraction, a price or a comparison, or negative. An override may turn its digits around. */
const partBefore =
  /[\p{L}\p{N}_.,/+\\]$|[\p{L}\p{N}]\p{Cf}+$|\p{Sc}\s?$|[≤≥<>~≈±×−]\s?$|(?<!\btoken)\p{Pd}$|[\u202d\u202e]/iu
const partAfter = /^(?:[\p{L}\p{N}\p{Pd}_+°]|\s?[\p{Sc}%‰]|[\p{Sm}\p{Cf}.:#&/*\\][\p{L}\p{N}])/u
/** The number is an amount, or one end of a range. */
const amountAfter =
  /^\s(?:tokens|items|products|assets|pieces|pairs|times|minutes?|hours?|days?|weeks?|months?|years?|cm|mm|kg|through|onwards?)\b/i

/** Words of a number that is no token id, such as a size or a block, or is left out. */
const otherWord =
  /^(?:lots?|batch|size|model|ref|reference|code|chip|tag|uid|block|not|without|unlike|instead|besides|as|référence|bloc|sans|referencia|código|bloque|sin|edition|version|release|order|invoice|receipt|page|line|row|step|part|year|age|only|but|except|than|over|under|above|below|in|since|from|until|till|before|after|between|by|at|to|least|most|seit|ab|bis|taille|modèle|depuis|lote|talla|modelo|desde|دفعة|مقاس)$/
/** Words that ask or name a token, and may begin with a capital. Other words with one are names, as in `Satchel No. 7` and `HFJ 000417`. */
const askingWord =
  /^(?:tell|tokens?|tokenid|product|productid|item|itemid|asset|assetid|nft|verify|verifyasset|check|checkflagged|getlifecyclehistory|history|flags?|flagged|stolen|lost|recalled|authentic|genuine|real|fake|state|status|owner|verdict|record|give|show|get|see|look|find|read|track|trace|inspect|validate|confirm|can|could|does|did|has|will|would|what|how|which|if|whether|mean|hi|hello|hey|please|yes|ok|thanks|produkt|prüfen?|zeige?|produit|vérifie[rz]?|producto|verifica|verificar)$/i
/** Words that may stand between, as in `history of the token with number 42`. */
const smallWord =
  /^(?:is|was|are|it|s|the|this|that|my|its|me|us|up|id|no|nr|number|of|for|about|with|and|i|ist|war|von|der|die|das|mit|nummer|est|le|la|du|de|avec|numéro|es|el|del|con|número|من|هل|رقم)$/i

/** How much of the text before a number is looked at. */
const nearby = 200

/** Returns whether the last word before a number, in its sentence, lets it be a token id. */
function isAskedFor(before: string): boolean {
  const [sentence = ''] = before.split(/[!?]|\.\s+(?=\p{Lu})/u).slice(-1)
  const words = (sentence.match(/[\p{L}\p{N}_]+/gu) ?? []).map((word) => word.replaceAll('_', ''))
  const last = words.findLast((word) => !smallWord.test(word))
  if (last === undefined || askingWord.test(last)) return true
  return last.length > 1 && last === last.toLowerCase() && !otherWord.test(last)
}

/**
 * Returns the only number of a text, if it can be a token id. Nothing is guessed where the text names another number of the item,
 * such as the serial `HFJ-000417`, or has a link (decisions/0039).
 */
function onlyNumberIn(text: string): string | null {
  if (link.test(text) || otherNumbers.test(text) || numberWords.test(text)) return null
  const numbers = text.match(/\p{N}+/gu) ?? []
  const [number = ''] = numbers
  if (numbers.length !== 1 || parseTokenId(number) === null) return null
  const at = text.indexOf(number)
  const before = text.slice(Math.max(0, at - nearby), at)
  const after = text.slice(at + number.length, at + number.length + nearby)
  if (partBefore.test(before) || partAfter.test(after) || amountAfter.test(after)) return null
  return isAskedFor(before) ? number : null
}
