/** The statements of a database as spans. A span has the verbs and tables of its statement: neither its text nor its values. */
import type { SqlQuery } from './columns.ts'
import type { TransactionOptions } from './postgres/pool.ts'
import { currentSpan, type SpanOptions, traced } from '../lib/async/span.ts'

type Traceable = {
  readonly dialect: string
  readonly query: SqlQuery
  readonly transaction: <T>(run: (sql: { query: SqlQuery }) => Promise<T>, options?: TransactionOptions) => Promise<T>
}

export function tracedDatabase<D extends Traceable>(database: D): D {
  const system = { 'db.system.name': 'postgresql', 'touchstone.database': database.dialect }
  const spanOf = (name: string): SpanOptions => ({ name, kind: 'client', attributes: system })
  const on =
    (query: SqlQuery): SqlQuery =>
    (text, values) =>
      currentSpan() === undefined ? query(text, values) : traced(spanOf(summaryOf(text)), () => query(text, values))
  return {
    ...database,
    query: on(database.query),
    transaction: <T>(run: (sql: { query: SqlQuery }) => Promise<T>, options?: TransactionOptions): Promise<T> =>
      currentSpan() === undefined
        ? database.transaction(run, options)
        : traced(spanOf('transaction'), () => database.transaction(({ query }) => run({ query: on(query) }), options)),
  }
}

const changes = /\b(insert into|update|delete from)\s+(?:only\s+)?([a-z_]\w*)/gi
const sources = /\b(?:from|join)\s+(?:only\s+)?([a-z_]\w*)(?![\w.(])/gi
const subqueries = /\b([a-z_]\w*)(?:\s*\([\w\s,]*\))?\s+as\s+(?:not\s+|materialized\s+)*\(/gi
const functions = /\b(?!pg_|jsonb?_|generate_|row_)([a-z]+_[a-z_]+)\(/gi
const mostNames = 4

/** Returns a summary of few forms, such as `insert tag, insert tap`, `select asset` or `select announce_tap`. */
export function summaryOf(text: string): string {
  const own = new Set(namesOf(text, subqueries))
  const changed = [...text.matchAll(changes)].flatMap(([, verb = '', table = '']) =>
    own.has(table) || table.toLowerCase() === 'set' ? [] : [`${verb.split(/\s/)[0]?.toLowerCase()} ${table}`],
  )
  if (changed.length > 0) return listed(changed)
  const tables = namesOf(text, sources).filter((name) => !own.has(name))
  const verb = /^\s*(?:with\b|$)/i.test(text) ? 'select' : (/^\s*([a-z]+)/i.exec(text)?.[1]?.toLowerCase() ?? 'select')
  return `${verb} ${listed(tables.length > 0 ? tables : namesOf(text, functions))}`.trimEnd()
}

function namesOf(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([, name = '']) => name)
}

function listed(names: readonly string[]): string {
  return [...new Set(names)].slice(0, mostNames).join(', ')
}
