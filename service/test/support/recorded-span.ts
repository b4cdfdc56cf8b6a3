import type { Span } from '../../src/lib/async/span.ts'

/** Returns a span that keeps the names of its children, and how many of them ended. */
export function recordedSpan() {
  const names: string[] = []
  let ended = 0
  const span: Span = {
    child: ({ name }) => {
      names.push(name)
      return span
    },
    set: () => {},
    link: () => {},
    fail: () => {},
    end: () => void ended++,
  }
  return { span, names, ends: () => ended }
}
