/**
 * Pages of a list (spec §4.9, §8): `first` with `after`, or `last` with `before`. A cursor names the list that it came from, its
 * place by the exact sort key, and nothing else: it stays right when items before it come and go.
 */
import { createHash } from 'node:crypto'
import { graphqlError } from './error-codes.ts'
import { parseInstant } from './scalars.ts'

export const defaultPage = 20
export const maxPage = 100

export type PageArguments = {
  readonly first?: number | null
  readonly after?: string | null
  readonly last?: number | null
  readonly before?: string | null
}
/** `at` is a cursor's sort key, exact to the microsecond, and the row's own number. */
export type Place = readonly [at: string, pk: string]
export type Page = { readonly size: number; readonly backward: boolean; readonly from: Place | null }

/** What a page is of: its cursors fit no other list. */
export type ListName = string

/** The name of a list by its filter and order. */
export function listName(...parts: readonly unknown[]): ListName {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 12)
}

/** Reads the arguments of a page; BAD_USER_INPUT says what is wrong. */
export function readPage({ first, after, last, before }: PageArguments, list: ListName): Page {
  const backward = isGiven(last) || isGiven(before)
  if (backward && (isGiven(first) || isGiven(after)))
    throw graphqlError('BAD_USER_INPUT', 'Page forward with first and after, or backward with last and before.')
  const [name, size, cursor] = backward ? (['last', last, before] as const) : (['first', first, after] as const)
  if (isGiven(size) && (size < 1 || size > maxPage))
    throw graphqlError('BAD_USER_INPUT', `"${name}" is from 1 to ${maxPage}.`)
  return { size: size ?? defaultPage, backward, from: isGiven(cursor) ? placeOf(cursor, list) : null }
}

/** Null is as good as left out. */
function isGiven<T>(value: T | null | undefined): value is T {
  return value !== null && value !== undefined
}

export function cursorOf(list: ListName, [at, pk]: Place): string {
  return Buffer.from(`1 ${list} ${at} ${pk}`).toString('base64url')
}

function placeOf(cursor: string, list: ListName): Place {
  const text = cursor.length <= 200 ? Buffer.from(cursor, 'base64url').toString('latin1') : ''
  const [version, name, at = '', pk = '', ...rest] = text.split(' ')
  const isPlace = (isNumber(at) || parseInstant(at) === at) && isNumber(pk)
  const isWhole = version === '1' && rest.length === 0 && isPlace
  if (!isWhole) throw graphqlError('BAD_USER_INPUT', 'This is no cursor: take one from edges.cursor or pageInfo.')
  if (name !== list) throw graphqlError('BAD_USER_INPUT', 'This cursor belongs to another list, filter or order.')
  return [at, pk]
}

const isNumber = (text: string) => /^\d{1,18}$/.test(text)

/** What is shown of a page: its items in order, and the resolvers of `pageInfo`. */
export type Connection<Row> = {
  readonly edges: readonly { readonly node: Row; readonly cursor: string }[]
  readonly pageInfo: {
    readonly hasNextPage: boolean
    readonly hasPreviousPage: boolean
    readonly startCursor: string | null
    readonly endCursor: string | null
  }
  readonly totalCount: () => Promise<number | null> | number | null
}

/** Of `rows` there may be one more than the page has: that there is one is all it tells. Backward rows come nearest first. */
export function connection<Row>({
  page,
  list,
  rows,
  placeOfRow,
  totalCount,
}: {
  readonly page: Page
  readonly list: ListName
  readonly rows: readonly Row[]
  readonly placeOfRow: (row: Row) => Place
  readonly totalCount: Connection<Row>['totalCount']
}): Connection<Row> {
  const { size, backward, from } = page
  const hasMore = rows.length > size
  const shown = rows.slice(0, size)
  if (backward) shown.reverse()
  const edges = shown.map((node) => ({ node, cursor: cursorOf(list, placeOfRow(node)) }))
  return {
    edges,
    pageInfo: {
      hasNextPage: backward ? from !== null : hasMore,
      hasPreviousPage: backward ? hasMore : from !== null,
      startCursor: edges[0]?.cursor ?? null,
      endCursor: edges.at(-1)?.cursor ?? null,
    },
    totalCount,
  }
}
