/**
 * The contract whose events the index has. Another one is served by no reader: after CHAIN_CONTRACT was changed, or where instances of two
 * contracts share a database, the same token id is another product.
 */
import type { Hex } from '@touchstone/verdict'
import { hex } from '../db/columns.ts'
import type { Database } from '../db/database.ts'
import { singleFlight } from '../lib/async/single-flight.ts'
import { databaseUnavailable } from '../lib/errors.ts'

type IndexDatabase = Pick<Database, 'query' | 'transaction' | 'dialect'>

/** An index changes its contract after a rebuild only, when it is empty. */
const knownMs = 1_000

/** Returns the database for reads of the index. They throw DATABASE_UNAVAILABLE where the index is of another contract than this one. */
export function ofContract(database: IndexDatabase, contract: Hex): IndexDatabase {
  const lookOnce = singleFlight(look)
  let knownAt = -Infinity

  async function look(): Promise<void> {
    const [cursor] = await database.query<{ contract: Hex }>(contractStatement)
    if (cursor !== undefined && cursor.contract !== contract.toLowerCase())
      throw databaseUnavailable(
        new Error('the index in this database belongs to another contract; rebuild it with "touchstone index rebuild"'),
      )
    knownAt = performance.now()
  }

  async function assertOwn(): Promise<void> {
    if (performance.now() - knownAt >= knownMs) await lookOnce()
  }

  return {
    dialect: database.dialect,
    async query(...given) {
      await assertOwn()
      return database.query(...given)
    },
    async transaction(...given) {
      await assertOwn()
      return database.transaction(...given)
    },
  }
}

/** An index that is empty takes the contract of its next leader. */
const contractStatement = `select ${hex('contract')} as contract from index_cursor where number >= 0`
