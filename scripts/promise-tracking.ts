/**
 * The test runner follows every promise by a hook of `async_hooks`, by which it finds the test to which a registration or an error belongs.
 * That takes a tenth of the processor time of tests which ask databases and servers. Loaded before `node:test`, this module keeps the hook.
 */
import type { AsyncHook } from 'node:async_hooks'
import { createRequire } from 'node:module'

const hooks = createRequire(import.meta.url)('node:async_hooks') as typeof import('node:async_hooks')
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
