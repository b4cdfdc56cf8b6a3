/** For tests: what a suite opens before its first test and closes after its last. */
import { after, before } from 'node:test'

type Opened = { end: () => Promise<unknown> } | { close: () => unknown }

/** Called where a suite begins. Suites close what they opened in the order in which they opened it: by `end`, where there is one. */
export function useOpened<T extends Opened>(open: () => Promise<T>): T {
  let opened: T | undefined
  before(async () => void (opened = await open()))
  after(async () => {
    if (opened !== undefined) await ('end' in opened ? opened.end() : opened.close())
  })
  return lazily(() => opened as T)
}

/** Stands for an object that is there once the suite has begun. */
export function lazily<T extends object>(get: () => T): T {
  return new Proxy({} as T, {
    get: (_target, name) => Reflect.get(get(), name) as unknown,
    ownKeys: () => Reflect.ownKeys(get()),
    getOwnPropertyDescriptor: (_target, name) => Reflect.getOwnPropertyDescriptor(get(), name),
  })
}
