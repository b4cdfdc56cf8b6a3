/**
 * The test runner follows every promise by a hook of `async_hooks`. By it, a registration or an error finds its test. That takes a tenth of
 * the processor time of tests which ask databases and servers. This module keeps the hook; it must be loaded before `node:test`.
 */
import hooks, { type AsyncHook } from 'node:async_hooks'

const { createHook } = hooks
let hook: AsyncHook | undefined

/** The first hook is that of the runner. */
hooks.createHook = (callbacks) => {
  hook = createHook(callbacks)
  hooks.createHook = createHook
  return hook
}

/** Follows promises, or not. An error that nothing catches fails its test while they are followed, else the process. */
export function trackPromises(wanted: boolean): void {
  if (wanted) hook?.enable()
  else hook?.disable()
}
