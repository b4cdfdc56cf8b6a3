/** JSON: texts and values from outside, which are checked before they are used, and values that are written. */

export type JsonObject = Readonly<Record<string, unknown>>

/** Returns whether a value is a JSON object: neither null nor an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Parses JSON, or returns `undefined` when the text is not JSON. `null` is the JSON value null. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Parses a JSON object, or returns `null` when the text is anything else. */
export function parseJsonObject(text: string): JsonObject | null {
  const value = parseJson(text)
  return isObject(value) ? value : null
}

/** Replaces what a JSON number cannot hold, for `JSON.stringify`: a bigint is written as text. */
export function bigintAsText(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value
}
