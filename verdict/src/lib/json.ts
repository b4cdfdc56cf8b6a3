/** Guards for parsed JSON of unknown origin. */

/** Is this a JSON object: neither `null` nor an array? */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns a text as it is, and the empty text for any other value. Hostile JSON may not be convertible to text. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Is this an integer from 0 to 2^53 - 1, as counts, block numbers and unix seconds are? */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

/** Has the object exactly these keys, in any order? `optional` ones may be missing. */
export function hasKeys(object: object, keys: readonly string[], optional: readonly string[] = []): boolean {
  const present = Object.keys(object)
  const all = [...keys, ...optional]
  return keys.every((key) => Object.hasOwn(object, key)) && present.every((key) => all.includes(key))
}

/** Is this the same JSON as the one expected: same types, values, lengths and keys, these in any order? */
export function isSameJson(value: unknown, expected: unknown): boolean {
  if (Array.isArray(expected))
    return (
      Array.isArray(value) &&
      value.length === expected.length &&
      expected.every((item, at) => isSameJson(value[at], item))
    )
  if (!isObject(expected)) return value === expected
  return (
    isObject(value) &&
    hasKeys(value, Object.keys(expected)) &&
    Object.entries(expected).every(([key, item]) => isSameJson(value[key], item))
  )
}

/**
 * Parses JSON in which no object names a member twice (RFC 7493, 2.3), or returns `undefined`. Readers disagree about which of the two
 * counts, so that a person and a program may read different things. Values that are nested over 100 deep are not read either.
 */
export function parseUniqueJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    return !isDeep(text) && countNames(text) === countNames(JSON.stringify(value)) ? value : undefined
  } catch {
    return undefined
  }
}

/** Readers that call themselves for each level fail at a depth of their own. */
const deepest = 100

function isDeep(json: string): boolean {
  let depth = 0
  for (const [token] of json.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{}]/g)) {
    if (token === '[' || token === '{') depth++
    else if (token === ']' || token === '}') depth--
    if (depth > deepest) return true
  }
  return false
}

/** Counts the texts of valid JSON that a colon follows. */
function countNames(json: string): number {
  return [...json.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?/g)].filter(([, colon]) => colon !== undefined).length
}
