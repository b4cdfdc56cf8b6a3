/** Guards for parsed JSON of unknown origin. */

/** Is this a JSON object: neither `null` nor an array? */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Has the object exactly these keys, in any order? `optional` ones may be missing. */
export function hasKeys(object: object, keys: readonly string[], optional: readonly string[] = []): boolean {
  const present = Object.keys(object)
  const all = [...keys, ...optional]
  return keys.every((key) => Object.hasOwn(object, key)) && present.every((key) => all.includes(key))
}
