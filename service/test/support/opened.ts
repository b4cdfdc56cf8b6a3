/** For tests: what a suite opens before its first test and closes after its last. */
import { after, before } from 'node:test'

type Opened = { end: () => Promise<unknown> } | { close: () => unknown } | AsyncDisposable

/** All that the running suites hold, the newest last. A suite within another opens later and closes earlier. */
const opened: Opened[] = []

/**
 * Called where a suite begins. What was opened last is closed first: by `end` or `close`, where there is one. An end that fails leaves none
 * of the others open. Outside of a suite Node starts all hooks of `before` at once, so that none of them may use what another opens.
 */
export function useOpened<T extends Opened>(open: () => Promise<T>): T {
  let one: T
  let place = Infinity
  before(async () => {
    one = await open()
    place = opened.push(one) - 1
  })
  after(async () => {
    await using closing = new AsyncDisposableStack()
    for (const each of opened.splice(place)) closing.defer(async () => void (await close(each)))
  })
  return lazily(() => one)
}

function close(one: Opened): unknown {
  if ('end' in one) return one.end()
  return 'close' in one ? one.close() : one[Symbol.asyncDispose]()
}

/** Stands for an object that is there once the suite has begun. */
export function lazily<T extends object>(get: () => T): T {
  return new Proxy({} as T, {
    get: (_target, name) => Reflect.get(get(), name) as unknown,
    ownKeys: () => Reflect.ownKeys(get()),
    getOwnPropertyDescriptor: (_target, name) => Reflect.getOwnPropertyDescriptor(get(), name),
  })
}
