/**
 * The inputs of mutations as values (spec §4.9). What is wrong is said with its field, in a sentence that teaches, and all
 * of it at once: each reader adds to `errors` and gives `null`.
 */
import { checksumAddress, isAddress, parseTokenId, zeroAddress, type Hex } from '@touchstone/verdict'
import { randomUUID } from 'node:crypto'
import { keccak256, stringToHex, zeroHash } from 'viem'

/** `field` has dots for nested ones; `input` when it is about the whole. */
export type InputError = Readonly<{ field: string; message: string }>
/** Nullable inputs of GraphQL: left out or null. */
export type Maybe<T> = T | null | undefined

export function productIdOf(text: string, errors: InputError[]): bigint | null {
  return parseTokenId(text) ?? say(errors, 'productId', 'A product id is the decimal token id, such as 7.')
}

/** Lower case; capitals must be the checksum (EIP-55), so that a slip of the hand is seen. */
export function addressOf(text: Maybe<string>, field: string, errors: InputError[]): Hex | null {
  const form = 'An address is 0x and 40 hex digits; capitals must be its checksum (EIP-55).'
  if (!isAddress(text)) return say(errors, field, form)
  const lower = text.toLowerCase() as Hex
  if (lower === zeroAddress) return say(errors, field, 'Nobody holds the zero address.')
  return text === lower || text === checksumAddress(lower) ? lower : say(errors, field, form)
}

const longestSignature = 4_096

/** `howTo` says where a missing one comes from. A smart account's may have any length up to 4,096 bytes. */
export function signatureOf(text: Maybe<string>, howTo: string, errors: InputError[]): Hex | null {
  if (text === null || text === undefined) return say(errors, 'signature', howTo)
  const isHex = text.length <= 2 + 2 * longestSignature && /^0x(?:[0-9a-fA-F]{2})+$/.test(text)
  return isHex ? (text.toLowerCase() as Hex) : say(errors, 'signature', 'A signature is 0x and hex digits.')
}

/** Unix seconds of an instant in RFC 3339; `undefined` where none was given. */
export function deadlineOf(text: Maybe<string>, errors: InputError[]): bigint | null | undefined {
  if (text === null || text === undefined) return undefined
  const time = Date.parse(text)
  const isTime = !Number.isNaN(time) && time > 0
  return isTime
    ? BigInt(Math.floor(time / 1_000))
    : say(errors, 'deadline', 'A deadline is an instant such as 2026-03-01T12:00:00.000Z.')
}

/** The deadline that goes with a signature: part of what was signed. */
export function signedDeadlineOf(text: Maybe<string>, errors: InputError[]): bigint | null {
  const deadline = deadlineOf(text, errors)
  if (deadline !== undefined) return deadline
  return say(errors, 'deadline', 'Send the deadline that transferTypedData gave: it is part of what was signed.')
}

/** The operation's key of a write: the caller's own, or one that nobody repeats. */
export function operationKeyOf(text: Maybe<string>, errors: InputError[]): string | null {
  const key = idempotencyKeyOf(text, errors)
  return key === null ? null : `graphql:${key}`
}

export function idempotencyKeyOf(text: Maybe<string>, errors: InputError[]): string | null {
  if (text === null || text === undefined) return randomUUID()
  if (/^[\x21-\x7e]{1,100}$/.test(text)) return text
  return say(errors, 'idempotencyKey', 'An idempotency key has 1 to 100 printable ASCII characters.')
}

/** Text of up to `max` characters that a database and a person can read; an empty one counts as none. */
export function textOf(
  text: Maybe<string>,
  { field, max, lines = false }: { readonly field: string; readonly max: number; readonly lines?: boolean },
  errors: InputError[],
): string | null {
  if (text === null || text === undefined || text === '') return null
  if (text.length > 2 * max || Array.from(text).length > max)
    return say(errors, field, `It may have at most ${max} characters.`)
  if (!text.isWellFormed()) return say(errors, field, 'It holds half of a surrogate pair; send well-formed Unicode.')
  const controls = lines ? /[\p{Cc}--[\t\n\r]]/v : /\p{Cc}/v
  return controls.test(text) ? say(errors, field, 'It may hold no control characters.') : text
}

/** `<tokenId>-<nonce>`, the nonce that the offer raised (spec §3). */
export function transferIdOf(text: string, errors: InputError[]) {
  const [, token = '', raised = ''] = /^(\d{1,78})-(\d{1,10})$/.exec(text) ?? []
  const tokenId = parseTokenId(token)
  const nonce = Number(raised)
  if (tokenId === null || raised === '' || nonce > 0xffffffff)
    return say(errors, 'transferId', 'A transfer that can be answered has the id <product id>-<number>, such as 7-1.')
  return { id: `${tokenId}-${nonce}`, tokenId, nonce }
}

const longestMessage = 2_000

/** The words of a transfer and their hash, which is zero where there are none. */
export function messageOf(
  text: Maybe<string>,
  errors: InputError[],
): { readonly body: string | null; readonly hash: Hex } {
  const body = textOf(text, { field: 'message', max: longestMessage, lines: true }, errors)
  return { body, hash: body === null ? zeroHash : keccak256(stringToHex(body)) }
}

/** GTIN and serial of an item, which go together; `null` where none was given or one is wrong. */
export function itemOf(
  { gtin, serialNumber }: { readonly gtin?: Maybe<string>; readonly serialNumber?: Maybe<string> },
  { isGtin, isSerial }: Gs1,
  errors: InputError[],
): { readonly gtin: string; readonly serial: string } | null {
  if (!isGiven(gtin)) return null
  if (!isGtin(gtin))
    say(errors, 'gtin', 'A GTIN has 14 digits with a right check digit, such as 09506000134352; fill up with zeros.')
  if (!isGiven(serialNumber))
    return say(errors, 'serialNumber', 'A GTIN names a kind of product: give the serialNumber of this one too.')
  if (!isSerial(serialNumber))
    return say(errors, 'serialNumber', 'With a GTIN it has 1 to 20 letters, digits or signs of GS1 (CSET 82).')
  return { gtin, serial: serialNumber }
}

/** The rules of GS1 for what may be registered. */
export type Gs1 = Readonly<{ isGtin: (text: string) => boolean; isSerial: (text: string) => boolean }>

export function isGiven(text: Maybe<string>): text is string {
  return text !== null && text !== undefined && text !== ''
}

/** Adds an error; always `null`. */
export function say(errors: InputError[], field: string, message: string): null {
  errors.push({ field, message })
  return null
}
