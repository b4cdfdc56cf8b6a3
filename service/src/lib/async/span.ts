/**
 * Spans of a trace (OpenTelemetry): work of a request with a name, a time and attributes. Work outside a trace is only run.
 * Names and attributes come from closed lists: no id, address, query, key or SQL value of a caller is one.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

export type SpanOptions = Readonly<{
  name: string
  /** `client`: the work is a call to another program. */
  kind?: 'client'
  attributes?: SpanAttributes
}>

type SpanAttributes = Readonly<Record<string, string | number | boolean>>

export type Span = Readonly<{
  child: (options: SpanOptions) => Span
  set: (attributes: SpanAttributes) => void
  /** Notes that this work shares the work of another span, which may be of another trace. */
  link: (other: Span) => void
  fail: (errorType: string) => void
  end: () => void
}>

const current = new AsyncLocalStorage<Span | undefined>()

/** Returns the span of the running work; undefined where nothing is traced. */
export function currentSpan(): Span | undefined {
  return current.getStore()
}

/** Runs work, and all that it starts, as a part of the span; of none for undefined. */
export function withSpan<T>(span: Span | undefined, work: () => T): T {
  return span === current.getStore() ? work() : current.run(span, work)
}

/** Runs work in a span of its own below the current one. */
export function traced<T>(options: SpanOptions, work: (span: Span | undefined) => Promise<T>): Promise<T> {
  const parent = current.getStore()
  return parent === undefined ? work(undefined) : runIn(parent.child(options), work)
}

async function runIn<T>(span: Span, work: (span: Span) => Promise<T>): Promise<T> {
  try {
    return await current.run(span, work, span)
  } catch (error) {
    span.fail(errorTypeOf(error))
    throw error
  } finally {
    span.end()
  }
}

/** Returns the code, kind or class of an error. Messages may hold what no span may. */
function errorTypeOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error
  const { code, kind } = error as { readonly code?: unknown; readonly kind?: unknown }
  return [code, kind].find((text) => typeof text === 'string' && /^[\w-]{1,40}$/.test(text))?.toString() ?? error.name
}
