/** Keeps one answer back, for tests of what happens between an answer and its arrival. */

/**
 * Wraps a function whose answers are promises. `hold` takes the next call, resolves once it has its answer, and returns the function that
 * lets the answer go.
 */
export function heldAnswers<Args extends readonly unknown[], T>(ask: (...args: Args) => Promise<T>) {
  let next: { readonly answered: () => void; readonly released: Promise<void> } | undefined
  return {
    ask: async (...args: Args): Promise<T> => {
      const held = next
      next = undefined
      const answer = await ask(...args)
      held?.answered()
      await held?.released
      return answer
    },
    hold: async (): Promise<() => void> => {
      const [isAnswered, isReleased] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      next = { answered: isAnswered.resolve, released: isReleased.promise }
      await isAnswered.promise
      return isReleased.resolve
    },
  }
}
