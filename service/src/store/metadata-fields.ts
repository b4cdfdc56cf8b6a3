/** The two fields of product metadata that are not flat text (spec §2.9): the day of manufacture and the operator's own fields. */

/** A day of the calendar as `YYYY-MM-DD`. */
export function isDay(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false
  const time = Date.parse(`${text}T00:00:00Z`)
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text)
}

const deepest = 4
const longestKey = 100

/** Why a value cannot be `customFields`, in one sentence; `null` for one JSON object whose values every reader takes the same way. */
export function customFieldsRefusal(value: unknown): string | null {
  if (!isObject(value)) return 'Metadata field customFields must be one JSON object.'
  return refusalOf(value, 1)
}

function refusalOf(value: unknown, depth: number): string | null {
  if (value === null || typeof value === 'boolean') return null
  if (typeof value === 'string') return value.isWellFormed() ? null : surrogates
  // Beyond this, readers round integers differently, and so would the hash.
  if (typeof value === 'number') return Math.abs(value) <= Number.MAX_SAFE_INTEGER ? null : numbers
  if (Array.isArray(value) || isObject(value)) return refusalOfMembers(value, depth)
  return 'Metadata field customFields holds something that is not JSON.'
}

function refusalOfMembers(value: object, depth: number): string | null {
  if (depth > deepest) return `Metadata field customFields may nest ${deepest} deep.`
  for (const [key, member] of Object.entries(value)) {
    if (key === '' || key.length > longestKey || key === '__proto__' || !key.isWellFormed()) return keys
    const refusal = refusalOf(member, depth + 1)
    if (refusal !== null) return refusal
  }
  return null
}

/** As JSON.parse and GraphQL make them, the latter without a prototype. */
function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype
}

const surrogates = 'Metadata field customFields holds half of a surrogate pair; send well-formed Unicode.'
const numbers = 'Numbers in customFields lie between -(2^53-1) and 2^53-1; send greater ones as text.'
const keys = `Names in customFields have 1 to ${longestKey} characters of well-formed Unicode, and none is __proto__.`
