/** A pause that ends early when there is a reason to, and a wish to work that comes while nobody pauses is not lost. */
export type Pause = Readonly<{
  /** `or nudge`: `wake` ends it, at once if it was called since the last such pause. `close` ends every one. */
  for: (milliseconds: number, until?: 'or nudge') => Promise<void>
  wake: () => void
  closed: () => boolean
  close: () => void
}>

export function createPause(): Pause {
  let woken = false
  let isClosed = false
  let end: ((nudged: boolean) => void) | undefined

  return {
    for(milliseconds, until) {
      if (isClosed || (until === 'or nudge' && woken)) {
        woken = false
        return Promise.resolve()
      }
      return new Promise((resolve) => {
        const timer = setTimeout(() => finish(), milliseconds)
        function finish(): void {
          clearTimeout(timer)
          end = undefined
          if (until === 'or nudge') woken = false
          resolve()
        }
        end = (nudged) => {
          if (!nudged || until === 'or nudge') finish()
        }
      })
    },
    wake() {
      woken = true
      end?.(true)
    },
    closed: () => isClosed,
    close() {
      isClosed = true
      end?.(false)
    },
  }
}
