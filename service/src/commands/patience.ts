/** A chain that is only busy is back in a moment: what it did not answer is asked again before a command gives up. */
import { setTimeout as delay } from 'node:timers/promises'
import { ServiceError } from '../errors.ts'
import type { CommandIo } from './control.ts'

/** Tries work that may be repeated, again after each pause. Throws what the last try threw. */
export async function patiently<T>(
  { err, signal }: Pick<CommandIo, 'err' | 'signal'>,
  work: () => Promise<T>,
  pausesMs: readonly number[] = [500, 2_000, 6_000],
): Promise<T> {
  for (const pauseMs of pausesMs) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code !== 'CHAIN_UNAVAILABLE' || signal.aborted) throw error
      err(`  The chain does not answer; trying again in ${pauseMs / 1_000} s …`)
      await delay(pauseMs, undefined, { signal }).catch(() => {})
    }
  }
  return work()
}
