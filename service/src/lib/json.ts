/** JSON from outside: texts and values that are checked before they are used. */

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

/**
 * Parses JSON in which no object names a member twice (RFC 7493, 2.3), or returns `undefined`. Readers disagree about which of the two
 * counts, so that a person and a program may read different things.
 */
export function parseUniqueJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    return countNames(text) === countNames(JSON.stringify(value)) ? value : undefined
  } catch {
    return undefined
  }
}

/** Counts the texts of valid JSON that a colon follows. */
function countNames(json: string): number {
  return [...json.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?/g)].filter(([, colon]) => colon !== undefined).length
}

/** Parses a JSON object, or returns `null` when the text is anything else. */
export function parseJsonObject(text: string): JsonObject | null {
  const value = parseJson(text)
  return isObject(value) ? value : null
}
