/**
 * The process that works on a payment (spec §4.8) is known by a session lock of the database. Its rows are free for others as soon as
 * the lock has ended with the process.
 */
import { randomInt } from 'node:crypto'
import type { Hex } from '@touchstone/verdict'
import { sleep } from '../lib/async/sleep.ts'
import type { Database } from '../db/database.ts'
import { holderLock, isLockHeld, type HeldLock } from '../db/locks.ts'

/** `number` stands in the rows; `isAlive` is an SQL condition on the column `holder`. */
export type PaymentHolder = AsyncDisposable & {
  readonly number: number
  readonly isAlive: string
}

/** The rows that one process may write: those of one token of a chain, whose address is `asset`. */
export type PaymentScope = { readonly chainId: number; readonly asset: Hex; readonly holder: PaymentHolder }

const retryMs = 250

/** Takes the lock before it resolves, and takes it again after a loss. Others may then continue the rows: their work is harmless twice. */
export async function openHolder(database: Pick<Database, 'hold' | 'dialect'>): Promise<PaymentHolder> {
  const number = randomInt(1, 2 ** 31 - 1)
  const lock = holderLock(number)
  const closing = new AbortController()
  const { signal } = closing
  const closed = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
  let held = await database.hold(lock)

  async function keep(): Promise<void> {
    while (!signal.aborted) {
      if (held === null) {
        await sleep(retryMs, { signal, ref: false })
        held = await database.hold(lock).catch((): HeldLock | null => null)
      } else if ((await Promise.race([held.lost.then(() => 'lost'), closed])) === 'lost') held = null
    }
  }

  const ended = keep()
  return {
    number,
    // PGlite has one process; every other number is of an earlier one.
    isAlive: database.dialect === 'pglite' ? `holder = ${number}` : `(holder = ${number} or ${isLockHeld('holder')})`,
    async [Symbol.asyncDispose]() {
      closing.abort()
      await ended
      await held?.release()
    },
  }
}
