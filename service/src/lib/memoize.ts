/** Memoization of pure functions within a bound. */
import { LRUCache } from 'lru-cache'

/**
 * Returns a function that keeps the results for the `max` inputs used last. An exception is not kept.
 * Inputs are compared by identity, or by `keyOf` where equal inputs are not identical, such as bytes. `maxLength` bounds the characters of
 * all keys together, where keys are texts of others.
 */
export function memoize<Input extends {}, Value extends {}, Key extends {} = Input>(
  make: (input: Input) => Value,
  {
    max,
    maxLength,
    keyOf,
  }: { readonly max: number; readonly maxLength?: number; readonly keyOf?: (input: Input) => Key },
): (input: Input) => Value {
  const sizes = maxLength && { maxSize: maxLength, sizeCalculation: (_: Value, key: {}) => lengthOf(key) }
  const values = new LRUCache<{}, Value>({ max, ...sizes })
  return (input) => {
    const key = keyOf === undefined ? input : keyOf(input)
    const known = values.get(key)
    if (known !== undefined) return known
    const value = make(input)
    values.set(key, value)
    return value
  }
}

function lengthOf(key: {}): number {
  return typeof key === 'string' && key !== '' ? key.length : 1
}

/** Returns a function that keeps its last result, for inputs that repeat in a row. */
export function memoizeLast<Input, Value>(make: (input: Input) => Value): (input: Input) => Value {
  let last: { readonly input: Input; readonly value: Value } | undefined
  return (input) => {
    if (last === undefined || last.input !== input) last = { input, value: make(input) }
    return last.value
  }
}
