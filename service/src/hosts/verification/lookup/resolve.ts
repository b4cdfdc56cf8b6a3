/**
 * Identifiers as the items that they name, with the verdicts on all of them at one block. Nothing is guessed: an identifier that no item has, or
 * that several have, is an answer of its own.
 */
import type { VerdictAnswer, Verdicts } from '../../../assets/verdicts.ts'
import type { ItemStore } from '../../../assets/items.ts'
import type { BlockId } from '../../../domain/chain.ts'
import { mapConcurrently } from '../../../lib/async/concurrency.ts'
import type { ItemKey } from '../../../domain/gs1/serial.ts'
import type { Identifier } from '../../../passport/identifier.ts'

export type LookupSite = {
  readonly verdicts: Pick<Verdicts, 'answers'>
  readonly items: Pick<ItemStore, 'itemOfToken' | 'tokenOfItem' | 'itemsOfSerial' | 'hasGtin'>
}

/** An item as the register has it; `item` is null for one without GTIN and serial. */
export type FoundItem = { readonly tokenId: bigint; readonly item: ItemKey | null; readonly answer: VerdictAnswer }

export type Resolution =
  | ({ readonly kind: 'found' } & FoundItem)
  /** More than one item fits, or the identifiers of one line name different items. At most `mostItems` for each identifier. */
  | { readonly kind: 'several'; readonly items: readonly FoundItem[] }
  /** The number of a model or a batch, of which an item is registered. */
  | { readonly kind: 'class'; readonly gtin: string; readonly batch?: string | undefined }
  | { readonly kind: 'none' | 'foreign' | 'unreadable' }

export type ResolvedLines = { readonly block: BlockId | null; readonly resolutions: readonly Resolution[] }

/** Items with one serial that are read; a page that lists more helps no one. */
const mostItems = 5
/** Statements that wait for the database at one time. */
const atOnce = 10

/** Resolves lines of one or more identifiers each. Throws CHAIN_UNAVAILABLE, or a fault of the database. */
export async function resolveLines(
  { verdicts, items }: LookupSite,
  lines: readonly (readonly Identifier[])[],
): Promise<ResolvedLines> {
  const named = await mapConcurrently(lines, atOnce, (line) => Promise.all(line.map((one) => tokensOf(items, one))))
  const tokenIds = [...new Set(named.flat(2))]
  const { block, answers } = await verdicts.answers(tokenIds)
  const existing = tokenIds.flatMap((tokenId, index) => {
    const answer = answers[index]
    return answer ? [{ tokenId, answer }] : []
  })
  const keyed = await mapConcurrently(existing, atOnce, async (one) => ({
    ...one,
    item: await items.itemOfToken(one.tokenId),
  }))
  const found = new Map(keyed.map((one) => [one.tokenId, one]))
  const resolutions = await mapConcurrently(lines, atOnce, (line, index) =>
    resolutionOf(
      items,
      line,
      (named[index] ?? []).map((tokens) => tokens.flatMap((tokenId) => found.get(tokenId) ?? [])),
    ),
  )
  return { block, resolutions }
}

/** Returns the tokens that may be meant. Digits alone are a token id, and a serial too where an item has it. */
async function tokensOf(items: LookupSite['items'], identifier: Identifier): Promise<readonly bigint[]> {
  switch (identifier.kind) {
    case 'token':
      return [identifier.tokenId]
    case 'item': {
      const tokenId = await items.tokenOfItem(identifier)
      return tokenId === null ? [] : [tokenId]
    }
    case 'serial':
      return tokensOfSerial(items, identifier.serial)
    case 'number': {
      const { tokenId, serial } = identifier
      return [...new Set([tokenId, ...(serial === null ? [] : await tokensOfSerial(items, serial))])]
    }
    case 'class':
    case 'batch':
    case 'foreign':
    case 'unreadable':
      return []
  }
}

async function tokensOfSerial(items: LookupSite['items'], serial: string): Promise<readonly bigint[]> {
  return (await items.itemsOfSerial(serial, mostItems)).map(({ tokenId }) => tokenId)
}

/** `found` holds the existing items of each identifier of the line. */
async function resolutionOf(
  items: LookupSite['items'],
  line: readonly Identifier[],
  found: readonly (readonly FoundItem[])[],
): Promise<Resolution> {
  const unread = line.find(({ kind }) => kind === 'foreign') ?? line.find(({ kind }) => kind === 'unreadable')
  if (unread !== undefined || line.length === 0) return { kind: unread?.kind === 'foreign' ? 'foreign' : 'unreadable' }
  const all = [...new Map(found.flat().map((one) => [one.tokenId, one])).values()]
  const [first] = all
  if (first === undefined) return (await classOf(items, line)) ?? { kind: 'none' }
  // Each identifier of the line must name this item, and no other.
  const isOne = all.length === 1 && found.every((of) => of.length === 1)
  return isOne ? { kind: 'found', ...first } : { kind: 'several', items: all }
}

async function classOf(items: LookupSite['items'], line: readonly Identifier[]): Promise<Resolution | null> {
  const [only] = line
  if (only === undefined || line.length > 1 || !('gtin' in only) || only.gtin === null || only.kind === 'item')
    return null
  if (!(await items.hasGtin(only.gtin))) return null
  return { kind: 'class', gtin: only.gtin, batch: only.kind === 'batch' ? only.batch : undefined }
}
