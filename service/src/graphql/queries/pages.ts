/**
 * Pages of a list (spec §4.9, §8): `first` with `after`, or `last` with `before`. A cursor holds its list and the exact sort key of a row,
 * so that it stays valid while rows before it come and go.
 */
import { createHash } from 'node:crypto'
import type { Keyset, KeysetPage } from '../../db/columns.ts'
import { graphqlError } from '../errors.ts'
import { parseInstant } from '../../domain/text.ts'
import { decodePercent } from '../../lib/bytes.ts'

export const defaultPage = 20
export const maxPage = 100

export type PageArguments = {
  readonly first?: number | null
  readonly after?: string | null
  readonly last?: number | null
  readonly before?: string | null
}

/** A name of 200 characters, each escaped, in base64. */
const longestCursor = 4_000

/** The kinds of sort keys, and what fits their columns. */
const keyKinds = {
  instant: ([at, pk]: Keyset) => parseInstant(at) === at && /^\d{1,18}$/.test(pk),
  text: ([at, pk]: Keyset) => at.isWellFormed() && !at.includes('\0') && /^\d{1,18}$/.test(pk),
  block: ([at, logIndex]: Keyset) => /^\d{1,18}$/.test(at) && /^\d{1,9}$/.test(logIndex),
} as const

/** A list by its name and the kind of its sort key. */
type ListKey = { readonly name: string; readonly kind: keyof typeof keyKinds }

/** A list as one page reads it. `count` returns null when counting takes too long. */
type List<Row> = {
  readonly rows: Promise<readonly Row[]>
  readonly count: () => Promise<number | null>
  readonly placeOf: (row: Row) => Keyset
}

/** Names a list by its filter and order. Its cursors fit no other list. */
export function listKey(kind: ListKey['kind'], ...parts: readonly unknown[]): ListKey {
  return { name: createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 12), kind }
}

/** Reads one page as a connection. `read` gets a limit of one row more, which shows whether another page follows. */
export async function readConnection<Row>(given: PageArguments, list: ListKey, read: (page: KeysetPage) => List<Row>) {
  const { size, backward, after } = parsePage(given, list)
  const { rows, count, placeOf } = read({ after, backward, limit: size + 1 })
  const found = await rows
  const hasMore = found.length > size
  const nodes = backward ? found.slice(0, size).toReversed() : found.slice(0, size)
  const edges = nodes.map((node) => ({ node, cursor: formatCursor(list.name, placeOf(node)) }))
  return {
    edges,
    pageInfo: {
      hasNextPage: backward ? after !== null : hasMore,
      hasPreviousPage: backward ? hasMore : after !== null,
      startCursor: edges[0]?.cursor ?? null,
      endCursor: edges.at(-1)?.cursor ?? null,
    },
    async totalCount(): Promise<number> {
      const total = await count()
      if (total !== null) return total
      throw graphqlError('TOO_COMPLEX', 'Counting takes too long under this filter; the page is complete.')
    },
  }
}

/** Throws BAD_USER_INPUT when the arguments name no page. */
function parsePage({ first, after, last, before }: PageArguments, list: ListKey) {
  const backward = isGiven(last) || isGiven(before)
  if (backward && (isGiven(first) || isGiven(after)))
    throw graphqlError('BAD_USER_INPUT', 'Page forward with first and after, or backward with last and before.')
  const [name, size, cursor] = backward ? (['last', last, before] as const) : (['first', first, after] as const)
  if (isGiven(size) && (size < 0 || size > maxPage))
    throw graphqlError('BAD_USER_INPUT', `"${name}" is from 1 to ${maxPage}, or 0 for an empty page.`)
  return { size: size ?? defaultPage, backward, after: isGiven(cursor) ? parseCursor(cursor, list) : null }
}

/** Null is the same as left out. */
export function isGiven<T>(value: T | null | undefined): value is T {
  return value !== null && value !== undefined
}

export function formatCursor(list: string, [at, pk]: Keyset): string {
  return Buffer.from(`1 ${list} ${encodeURIComponent(at)} ${pk}`).toString('base64url')
}

function parseCursor(cursor: string, { name, kind }: ListKey): Keyset {
  const text = cursor.length <= longestCursor ? Buffer.from(cursor, 'base64url').toString('latin1') : ''
  const [version, of, at = '', pk = '', ...rest] = text.split(' ')
  if (version !== '1' || rest.length > 0) throw graphqlError('BAD_USER_INPUT', `This is no cursor: ${whereFrom}`)
  if (of !== name)
    throw graphqlError('BAD_USER_INPUT', `This cursor belongs to another list, filter or order: ${whereFrom}`)
  const key = decodePercent(at)
  if (key === null || !keyKinds[kind]([key, pk]))
    throw graphqlError('BAD_USER_INPUT', `This cursor was altered: ${whereFrom}`)
  return [key, pk]
}

const whereFrom =
  'send one from edges.cursor or pageInfo of the same list, unchanged, or leave it out for the first page.'
