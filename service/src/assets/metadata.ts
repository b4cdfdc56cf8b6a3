/**
 * The rules of product metadata (spec §2.3, §2.9): a JSON object of flat text, a day of manufacture and the operator's own fields.
 * The chain holds the keccak256 of its RFC 8785 form.
 */
import { metadataHashOf, type Hex } from '@touchstone/verdict'
import canonicalize from 'canonicalize'
import { detailsError, detailsHashOf, letterFault } from '../domain/product-details.ts'
import { parseDay } from '../domain/text.ts'
import { isObject, type JsonObject } from '../lib/json.ts'

/** The keys of flat text (spec §2.3). */
export const metadataKeys = ['name', 'brand', 'description', 'sku', 'origin', 'size', 'image'] as const
export type Metadata = Readonly<Partial<Record<(typeof metadataKeys)[number], string>>>

/** The canonical text and its hash. If the metadata is rejected, it has the reason in one sentence and the field. */
export type Canonical =
  | { readonly ok: true; readonly body: string; readonly hash: Hex }
  | { readonly ok: false; readonly message: string; readonly key?: string }

const allKeys = [...metadataKeys, 'manufactureDate', 'details', 'customFields']
const maxBytes = 16_384

/**
 * Checks metadata to be registered (RFC 8785, passport rules). It has the seven keys with text, a day as `manufactureDate`, one JSON object
 * as `customFields` (spec §2.9), the hash of product details as `details`, at most 16 kB in all.
 */
export function canonicalMetadata(input: unknown): Canonical {
  if (!isObject(input)) return { ok: false, message: 'Metadata is one JSON object of text fields.' }
  for (const [key, value] of Object.entries(input)) {
    const message = fieldError(key, value)
    if (message !== null) return { ok: false, message, key }
  }
  return canonicalText(input, 'Metadata')
}

/** Returns the keys whose values differ, in the order of the rules. */
export function changedKeys(former: JsonObject, wanted: JsonObject): string[] {
  return allKeys.filter((key) => JSON.stringify(former[key]) !== JSON.stringify(wanted[key]))
}

/** Checks product details to be stored. Items name them by the hash, as `details` of their metadata. */
export function canonicalDetails(input: unknown): Canonical {
  const message = detailsError(input)
  return message === null ? canonicalText(input, 'Product details') : { ok: false, message }
}

function canonicalText(input: unknown, what: 'Metadata' | 'Product details'): Canonical {
  const body = canonicalize(input)
  if (body === undefined || Buffer.byteLength(body) > maxBytes)
    return { ok: false, message: `${what} may have at most 16 kB.` }
  return { ok: true, body, hash: metadataHashOf(body) }
}

function fieldError(key: string, value: unknown): string | null {
  if (!allKeys.includes(key))
    return `Metadata has the keys ${allKeys.join(', ')}; "${key.slice(0, 40)}" is none of them.`
  if (key === 'customFields')
    return isPlainObject(value) ? customError(value, 0) : 'Metadata field customFields must be one JSON object.'
  if (typeof value !== 'string') return `Metadata field ${key} must be text.`
  const fault = letterFault(value)
  if (fault !== null) return `Metadata field ${key} ${fault}.`
  if (key === 'manufactureDate' && parseDay(value) === null)
    return 'Metadata field manufactureDate is a day such as 2026-03-01.'
  if (key === 'details' && detailsHashOf({ details: value }) === null)
    return 'Metadata field details is the hash of product details: 0x and 64 lower-case hex digits.'
  return null
}

const maxDepth = 4
const maxKeyLength = 100

/** Returns why JSON readers could disagree about a value of `customFields`, or `null`. */
function customError(value: unknown, depth: number): string | null {
  if (value === null || typeof value === 'boolean') return null
  if (typeof value === 'string') {
    const fault = letterFault(value)
    return fault === null ? null : `Metadata field customFields ${fault}.`
  }
  // Beyond this, readers round integers differently, and so would the hash.
  if (typeof value === 'number')
    return Math.abs(value) <= Number.MAX_SAFE_INTEGER
      ? null
      : 'Numbers in customFields lie between -(2^53-1) and 2^53-1; send greater ones as text.'
  if (!Array.isArray(value) && !isPlainObject(value))
    return 'Metadata field customFields holds something that is not JSON.'
  if (depth >= maxDepth) return `Metadata field customFields may nest ${maxDepth} deep.`
  for (const [key, member] of Object.entries(value)) {
    if (key === '' || key.length > maxKeyLength || key === '__proto__' || !key.isWellFormed())
      return `Names in customFields have 1 to ${maxKeyLength} characters of well-formed Unicode, and none is __proto__.`
    const error = customError(member, depth + 1)
    if (error !== null) return error
  }
  return null
}

/** JSON.parse makes objects with the usual prototype, GraphQL without one. */
function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (!isObject(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype
}
