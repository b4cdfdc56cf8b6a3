/** The stores of the index as one operation reads them. Lists and earlier blocks are in the turns of its key, identical ones once. */
import { graphqlError } from './errors.ts'
import type { IndexStores } from './stores.ts'

type Read = (...args: never) => Promise<unknown>

/** A read that has waited for so long is not begun: its operation is over. */
const longestWaitMs = 30_000

/** `inTurn` runs a read when it is its turn. Reads by ids are not in turns. */
export function queuedStores(
  stores: IndexStores,
  inTurn: <T>(work: () => Promise<T>) => Promise<T>,
  mostWaitMs = longestWaitMs,
): IndexStores {
  const { products, transfers, past, groups, taps } = stores

  function queued(read: Read): Read {
    const answers = new Map<string, Promise<unknown>>()
    const begin = (args: never) => {
      const until = performance.now() + mostWaitMs
      return inTurn(() => (performance.now() > until ? Promise.reject(tooLate()) : read(...args)))
    }
    return (...args) => {
      const asked = JSON.stringify(args, (_name, value) => (typeof value === 'bigint' ? `${value}n` : value))
      const answer = answers.get(asked) ?? begin(args)
      answers.set(asked, answer)
      return answer
    }
  }

  /** Puts reads of a store in turns: those of these names, or all. */
  function withTurns<Store extends Readonly<Record<string, Read>>>(store: Store, names = Object.keys(store)): Store {
    const reads = Object.entries(store).map(([name, read]) => [name, names.includes(name) ? queued(read) : read])
    return Object.fromEntries(reads) as Store
  }

  return {
    ...stores,
    products: withTurns(products, ['page', 'count']),
    transfers: withTurns(transfers, ['page', 'count']),
    past: withTurns(past),
    groups: withTurns(groups),
    taps: withTurns(taps),
  }
}

function tooLate() {
  return graphqlError('RATE_LIMITED', 'The reads of this API key have waited too long. Ask for less at one time.')
}
