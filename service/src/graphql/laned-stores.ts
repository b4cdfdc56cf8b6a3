/** The stores of the index as one operation reads them. Lists and earlier blocks are in the turns of its key, identical ones once. */
import { graphqlError } from './errors.ts'
import type { IndexStores } from './stores.ts'

type Read<Args extends readonly unknown[], T> = (...args: Args) => Promise<T>

/** A read that has waited for so long is not begun: its operation is over. */
const longestWaitMs = 30_000

/** `inTurn` runs a read when it is its turn. Reads by ids are not in turns. */
export function lanedStores(
  stores: IndexStores,
  inTurn: <T>(work: () => Promise<T>) => Promise<T>,
  mostWaitMs = longestWaitMs,
): IndexStores {
  const { products, transfers, past, groups, taps } = stores

  function laned<Args extends readonly unknown[], T>(read: Read<Args, T>): Read<Args, T> {
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
      page: laned((...given) => products.page(...given)),
      count: laned((...given) => products.count(...given)),
    },
    transfers: {
      ...transfers,
      page: laned((...given) => transfers.page(...given)),
      count: laned((...given) => transfers.count(...given)),
    },
    past: {
      find: laned((...given) => past.find(...given)),
      products: laned((...given) => past.products(...given)),
      transfers: laned((...given) => past.transfers(...given)),
      page: laned((...given) => past.page(...given)),
      count: laned((...given) => past.count(...given)),
    },
    groups: { page: laned((...given) => groups.page(...given)), count: laned((...given) => groups.count(...given)) },
    taps: {
      page: laned((...given) => taps.page(...given)),
      count: laned((...given) => taps.count(...given)),
      anomalies: laned((...given) => taps.anomalies(...given)),
      countAnomalies: laned((...given) => taps.countAnomalies(...given)),
      pagesOfTags: laned((...given) => taps.pagesOfTags(...given)),
    },
  }
}

function tooLate() {
  return graphqlError('RATE_LIMITED', 'The reads of this API key have waited too long. Ask for less at one time.')
}
