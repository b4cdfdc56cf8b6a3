/**
 * Pages of a list (spec §4.9, §8): `first` with `after`, or `last` with `before`. A cursor holds its list and the exact sort key of a row,
 * so that it stays valid while rows before it come and go.
 */
import { createHash } from 'node:crypto'
import { graphqlError } from '../errors.ts'
import { parseInstant } from '../schema.ts'

export const defaultPage = 20
export const maxPage = 100

export type PageArguments = {
  readonly first?: number | null
  readonly after?: string | null
  readonly last?: number | null
  readonly before?: string | null
}

/** The sort key of a row, exact to the microsecond, and its number. */
type Place = readonly [at: string, pk: string]

/** A list as one page reads it. Backward rows come nearest first. `count` returns null when counting takes too long. */
type List<Row> = {
  readonly rows: Promise<readonly Row[]>
  readonly count: () => Promise<number | null>
  readonly placeOf: (row: Row) => Place
}

/** Names a list by its filter and order. Its cursors fit no other list. */
export function listName(...parts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 12)
}

/** Reads one page as a connection. `read` gets a limit of one row more, which shows whether another page follows. */
export async function readConnection<Row>(
  given: PageArguments,
  name: string,
  read: (page: { readonly after: Place | null; readonly backward: boolean; readonly limit: number }) => List<Row>,
) {
  const { size, backward, after } = parsePage(given, name)
  const { rows, count, placeOf } = read({ after, backward, limit: size + 1 })
  const found = await rows
  const hasMore = found.length > size
  const nodes = backward ? found.slice(0, size).toReversed() : found.slice(0, size)
  const edges = nodes.map((node) => ({ node, cursor: formatCursor(name, placeOf(node)) }))
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
function parsePage({ first, after, last, before }: PageArguments, list: string) {
  const backward = isGiven(last) || isGiven(before)
  if (backward && (isGiven(first) || isGiven(after)))
    throw graphqlError('BAD_USER_INPUT', 'Page forward with first and after, or backward with last and before.')
  const [name, size, cursor] = backward ? (['last', last, before] as const) : (['first', first, after] as const)
  if (isGiven(size) && (size < 1 || size > maxPage))
    throw graphqlError('BAD_USER_INPUT', `"${name}" is from 1 to ${maxPage}.`)
  return { size: size ?? defaultPage, backward, after: isGiven(cursor) ? parseCursor(cursor, list) : null }
}

function isGiven<T>(value: T | null | undefined): value is T {
  return value !== null && value !== undefined
}

export function formatCursor(list: string, [at, pk]: Place): string {
  return Buffer.from(`1 ${list} ${at} ${pk}`).toString('base64url')
}

function parseCursor(cursor: string, list: string): Place {
  const text = cursor.length <= 200 ? Buffer.from(cursor, 'base64url').toString('latin1') : ''
  const [version, name, at = '', pk = '', ...rest] = text.split(' ')
  const isPlace = (isNumber(at) || parseInstant(at) === at) && isNumber(pk)
  if (version !== '1' || rest.length > 0 || !isPlace)
    throw graphqlError('BAD_USER_INPUT', 'This is no cursor: take one from edges.cursor or pageInfo.')
  if (name !== list) throw graphqlError('BAD_USER_INPUT', 'This cursor belongs to another list, filter or order.')
  return [at, pk]
}

const isNumber = (text: string) => /^\d{1,18}$/.test(text)
