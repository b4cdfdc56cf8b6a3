/**
 * The worker's side of `serve --workers`: what its primary tells it, what it tells back. Signals are the primary's affair: a terminal and
 * systemd send them to every process, and each worker ending by itself would break what the others are handed.
 */
import cluster from 'node:cluster'

/** What the primary says. Nobody accepts any more before the first one drains, so that no client finds a port that is half closed. */
export type ToWorker = 'stop accepting' | 'stop'
/** What a worker says. `failed`: it cannot start, in one sentence. */
export type FromWorker = 'started' | 'accepts no more' | { readonly failed: string }

/** True in a process that was started by `serve --workers`. */
export const isWorker = (): boolean => cluster.isWorker

export function followPrimary() {
  const asked = Promise.withResolvers<'primary'>()
  let stopAccepting: (() => void) | undefined
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
  process.on('message', (message: ToWorker) => {
    if (message === 'stop accepting') {
      stopAccepting?.()
      tell('accepts no more')
    } else if (stopAccepting === undefined) process.exit(0)
    else asked.resolve('primary')
  })
  return {
    /** Resolves when the primary wants this worker to end. */
    asked: asked.promise,
    started(service: { readonly stopAccepting: () => void }): void {
      stopAccepting = service.stopAccepting
      tell('started')
    },
  }
}

/** Ends this worker, which cannot start: its primary says why. */
export function giveUp(sentence: string): Promise<never> {
  return new Promise(() => process.send?.({ failed: sentence } satisfies FromWorker, () => process.exit(1)))
}

/** Lets go of the primary: nothing else keeps the process. */
export const leavePrimary = (): void => process.disconnect()

function tell(message: Exclude<FromWorker, object>): void {
  process.send?.(message)
}
