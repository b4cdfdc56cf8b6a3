/** Memoization of pure functions within a bound. */
import { LRUCache } from 'lru-cache'

/**
 * Returns a function that keeps the results for the `max` inputs used last. An exception is not kept.
 * Inputs are compared by identity, or by `keyOf` where equal inputs are not identical, such as bytes.
 */
export function memoize<Input extends {}, Value extends {}, Key extends {} = Input>(
  make: (input: Input) => Value,
  { max, keyOf }: { readonly max: number; readonly keyOf?: (input: Input) => Key },
): (input: Input) => Value {
  const values = new LRUCache<{}, Value>({ max })
  return (input) => {
    const key = keyOf === undefined ? input : keyOf(input)
    const known = values.get(key)
    if (known !== undefined) return known
    const value = make(input)
    values.set(key, value)
    return value
  }
}

/** Returns a function that keeps its last result, for inputs that repeat in a row. */
export function memoizeLast<Input, Value>(make: (input: Input) => Value): (input: Input) => Value {
  let last: { readonly input: Input; readonly value: Value } | undefined
  return (input) => {
    if (last === undefined || last.input !== input) last = { input, value: make(input) }
    return last.value
  }
}
