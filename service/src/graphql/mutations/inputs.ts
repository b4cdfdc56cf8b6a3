/** Inputs of mutations (spec §4.9): all errors of a request are reported at once, each at its field. */
import { parseTokenId, zeroAddress, type Hex } from '@touchstone/verdict'
import { randomUUID } from 'node:crypto'
import { keccak256, stringToHex } from 'viem/utils'
import { zeroHash } from '../../domain/chain.ts'
import { parseAddress } from '../../domain/address.ts'
import { parseTransferId } from '../../ownership/transfer-id.ts'
import { parseGtin } from '../../domain/gs1/gtin.ts'
import { isGiven } from '../queries/pages.ts'
import { isRegistrableSerial } from '../../domain/gs1/serial.ts'
import { isIdempotencyKey } from '../../domain/idempotency-key.ts'

/** `field` has dots for nested ones; `input` is the whole. */
export type InputError = Readonly<{ field: string; message: string }>
export type Maybe<T> = T | null | undefined
/** An input of the schema: texts that are required, and texts that may be left out or null. */
export type Input<Required extends string, Optional extends string> = Readonly<
  Record<Required, string> & Partial<Record<Optional, Maybe<string>>>
>

/** The values of readers that reported nothing. */
export type Valid<Values> = { readonly [Name in keyof Values]: Exclude<Values[Name], null> }

/** Runs readers and returns their values, or all errors that they reported. */
export function readInput<Values>(readValues: (read: InputReader) => Values | null) {
  const read = createInputReader()
  const values = readValues(read)
  return read.errors.length === 0
    ? { ok: true as const, values: values as Valid<Values> }
    : { ok: false as const, errors: read.errors }
}

export type InputReader = ReturnType<typeof createInputReader>

const longestSignature = 4_096

/** Each method reports what is wrong with its field and then returns null. `undefined` stands for a field that was left out. */
function createInputReader() {
  const errors: InputError[] = []

  function reject(field: string, message: string): null {
    errors.push({ field, message })
    return null
  }

  const read = {
    errors,
    reject,

    productId(text: string): bigint | null {
      return parseTokenId(text) ?? reject('productId', 'A product id is the decimal token id, such as 7.')
    },

    /** Reads `<tokenId>-<nonce>`; the offer raised the nonce to this one (spec §3). */
    transferId(text: string) {
      const parsed = parseTransferId(text)
      return (
        parsed ?? reject('transferId', 'A transfer that can be answered has the id <product id>-<number>, such as 7-1.')
      )
    },

    address(text: Maybe<string>, field: string): Hex | null {
      const parsed = parseAddress(text ?? '')
      if (parsed === null)
        return reject(field, 'An address is 0x and 40 hex digits; capitals must be its checksum (EIP-55).')
      return parsed === zeroAddress
        ? reject(field, 'The zero address owns nothing. Send the address of an account.')
        : parsed
    },

    /** `howTo` explains where a missing signature comes from. Smart accounts may sign with up to 4,096 bytes. */
    signature(text: Maybe<string>, howTo: string): Hex | null {
      if (!isGiven(text)) return reject('signature', howTo)
      const isHex = text.length <= 2 + 2 * longestSignature && /^0x(?:[0-9a-fA-F]{2})+$/.test(text)
      return isHex ? (text.toLowerCase() as Hex) : reject('signature', 'A signature is 0x and hex digits.')
    },

    /** Returns the unix seconds of an RFC 3339 instant. */
    deadline(text: Maybe<string>): bigint | null | undefined {
      if (!isGiven(text)) return undefined
      const time = Date.parse(text)
      return !Number.isNaN(time) && time > 0
        ? BigInt(Math.floor(time / 1_000))
        : reject('deadline', 'A deadline is an instant such as 2026-03-01T12:00:00.000Z.')
    },

    /** Reads the deadline that is part of what was signed. */
    signedDeadline(text: Maybe<string>): bigint | null {
      const parsed = read.deadline(text)
      if (parsed !== undefined) return parsed
      return reject('deadline', 'Send the deadline that transferTypedData gave: it is part of what was signed.')
    },

    /** Returns the caller's key, or a random one. */
    idempotencyKey(text: Maybe<string>): string | null {
      if (!isGiven(text)) return randomUUID()
      if (isIdempotencyKey(text)) return text
      return reject('idempotencyKey', 'An idempotency key has 1 to 100 printable ASCII characters.')
    },

    /** Reads text of up to `max` characters without control characters. An empty text counts as left out. */
    text(value: Maybe<string>, field: string, max = 200, { lines = false } = {}): string | null | undefined {
      if (!isFilled(value)) return undefined
      if (value.length > 2 * max || Array.from(value).length > max)
        return reject(field, `It may have at most ${max} characters.`)
      if (!value.isWellFormed()) return reject(field, 'It holds half of a surrogate pair; send well-formed Unicode.')
      const controls = lines ? /[\p{Cc}--[\t\n\r]]/v : /\p{Cc}/v
      return controls.test(value) ? reject(field, 'It may hold no control characters.') : value
    },

    /** Reads a text of which the chain holds only the hash. The hash of none is zero. */
    hashedText(value: Maybe<string>, field: string, max: number): { readonly body: string | null; readonly hash: Hex } {
      const body = read.text(value, field, max, { lines: true }) ?? null
      return { body, hash: body === null ? zeroHash : keccak256(stringToHex(body)) }
    },

    /** Reads the GTIN and serial number of an item, which go together. */
    item({ gtin, serialNumber }: { readonly gtin?: Maybe<string>; readonly serialNumber?: Maybe<string> }) {
      if (!isFilled(gtin)) return undefined
      if (!parseGtin(gtin).ok)
        reject('gtin', 'A GTIN has 14 digits with a right check digit, such as 09506000134352; fill up with zeros.')
      if (!isFilled(serialNumber))
        return reject('serialNumber', 'A GTIN names a kind of product: give the serialNumber of this one too.')
      if (!isRegistrableSerial(serialNumber))
        return reject('serialNumber', 'With a GTIN it has 1 to 20 letters, digits or signs of GS1 (CSET 82).')
      return { gtin, serial: serialNumber }
    },
  }
  return read
}

/** An empty text counts as left out. */
export function isFilled(text: Maybe<string>): text is string {
  return isGiven(text) && text !== ''
}
