/** The stores of the index as one operation reads them. Lists and earlier blocks are in the turns of its key, identical ones once. */
import { graphqlError } from './errors.ts'
import type { IndexStores } from './stores.ts'

type Read<Args extends readonly unknown[], T> = (...args: Args) => Promise<T>

/** A read that has waited for so long is not begun: its operation is over. */
const longestWaitMs = 30_000

/** `inTurn` runs a read when it is its turn. Reads by ids are not in turns. */
export function queuedStores(
  stores: IndexStores,
  inTurn: <T>(work: () => Promise<T>) => Promise<T>,
  mostWaitMs = longestWaitMs,
): IndexStores {
  const { products, transfers, past, groups, taps } = stores

  function queued<Args extends readonly unknown[], T>(read: Read<Args, T>): Read<Args, T> {
    const answers = new Map<string, Promise<T>>()
    const begin = (args: Args): Promise<T> => {
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

  return {
    ...stores,
    products: {
      ...products,
      page: queued((...given) => products.page(...given)),
      count: queued((...given) => products.count(...given)),
    },
    transfers: {
      ...transfers,
      page: queued((...given) => transfers.page(...given)),
      count: queued((...given) => transfers.count(...given)),
    },
    past: {
      find: queued((...given) => past.find(...given)),
      products: queued((...given) => past.products(...given)),
      transfers: queued((...given) => past.transfers(...given)),
      page: queued((...given) => past.page(...given)),
      count: queued((...given) => past.count(...given)),
    },
    groups: { page: queued((...given) => groups.page(...given)), count: queued((...given) => groups.count(...given)) },
    taps: {
      page: queued((...given) => taps.page(...given)),
      count: queued((...given) => taps.count(...given)),
      anomalies: queued((...given) => taps.anomalies(...given)),
      countAnomalies: queued((...given) => taps.countAnomalies(...given)),
      pagesOfTags: queued((...given) => taps.pagesOfTags(...given)),
    },
  }
}

function tooLate() {
  return graphqlError('RATE_LIMITED', 'The reads of this API key have waited too long. Ask for less at one time.')
}
