/**
 * `/?find=…`, the text of a scanned code, and `/?brand=…&serial=…` lead to the one item that fits. With no item, and with several, a page says
 * so. A link of another host is shown as text and never followed.
 */
import { cleanText } from '@touchstone/verdict'
import { historyUnavailable, type Minters } from '../../../assets/history.ts'
import { isRegistrableSerial } from '../../../domain/gs1/serial.ts'
import { hasGtin, themeOf } from '../../../pages/brands/theme.ts'
import { findPage } from '../../../pages/lookup/find.ts'
import type { PageContext } from '../../../pages/context.ts'
import type { SearchView } from '../../../pages/search.ts'
import { maxIdentifierLength, parseIdentifier } from '../../../passport/identifier.ts'
import type { ItemSite } from '../pages/item.ts'
import { type LookupSite, resolveLines } from './resolve.ts'
import { lookupItem, pathOfClass } from './table.ts'
import { withoutQueries } from './lines.ts'

export type FindSite = LookupSite & Pick<ItemSite, 'baseUrl' | 'pages'> & { readonly minters: Minters }

export type LookupResult =
  | { readonly kind: 'path'; readonly path: string }
  | { readonly kind: 'page'; readonly status: number; readonly html: string }

/** Finds the item of one text. Throws CHAIN_UNAVAILABLE, or a fault of the database. */
export async function findText(site: FindSite, context: PageContext, text: string): Promise<LookupResult> {
  const identifier = parseIdentifier(text.slice(0, maxIdentifierLength + 1), site.baseUrl)
  // An item that a link names has its page whatever the page then says of it.
  if (identifier.kind === 'token') return { kind: 'path', path: `/token/${identifier.tokenId}` }
  const { resolutions } = await resolveLines(site, [[identifier]])
  const [resolution = { kind: 'unreadable' } as const] = resolutions
  if (resolution.kind === 'found') return { kind: 'path', path: lookupItem(resolution).path }
  if (resolution.kind === 'class') return { kind: 'path', path: pathOfClass(resolution) }
  const typed = cleanText(withoutQueries(text), { max: 200 })
  const items = resolution.kind === 'several' ? resolution.items.map(lookupItem) : []
  const html = findPage(context, { kind: resolution.kind, typed, items })
  return { kind: 'page', status: statuses[resolution.kind], html }
}

const statuses = { several: 200, none: 404, foreign: 400, unreadable: 400 } as const

/** Items with one serial whose accounts are compared. Beyond them only the product number names one. */
const mostOfSerial = 1_000
/** Items of a brand that are read. */
const mostOfBrand = 20

/**
 * Finds the items with a serial that accounts of one brand minted. Throws HISTORY_UNAVAILABLE where the index does not say who minted.
 */
export async function findOfBrand(
  site: FindSite,
  context: PageContext,
  { brand, serial }: { readonly brand: string; readonly serial: string },
): Promise<LookupResult | { readonly kind: 'wrong'; readonly view: SearchView }> {
  const view = { brand, brandSerial: serial }
  const { themes } = site.pages
  const theme = themes.find(({ id }) => id === brand)
  if (theme === undefined) return { kind: 'wrong', view: { ...view, wrong: 'brand' } }
  if (!isRegistrableSerial(serial)) return { kind: 'wrong', view: { ...view, wrong: 'brandSerial' } }
  const sameSerial = await site.items.itemsOfSerial(serial, mostOfSerial)
  const candidates = sameSerial.filter(({ gtin }) => hasGtin(theme, gtin))
  const minters = await site.minters(
    candidates.map(({ tokenId }) => tokenId),
    theme.issuers,
  )
  const minted = candidates.filter(({ tokenId }) => (minters.get(tokenId) ?? null) !== null)
  const unknown = candidates.filter(({ tokenId }) => !minters.has(tokenId))
  const read = [...minted.slice(0, mostOfBrand), ...unknown]
  const { answers } = await site.verdicts.answers(read.map(({ tokenId }) => tokenId))
  const items = read.flatMap(({ tokenId, ...item }, index) => {
    const answer = answers[index]
    if (!answer) return []
    const minter = minters.get(tokenId)
    if (minter === undefined) throw historyUnavailable('no mint in the index')
    const themed = { gtin: item.gtin, brand: answer.verdict.untrusted?.brand ?? null }
    const isOfBrand = themeOf(themes, themed, (account) => account === minter)?.id === brand
    return isOfBrand ? [lookupItem({ tokenId, item, answer })] : []
  })
  const isWhole = sameSerial.length < mostOfSerial && minted.length <= mostOfBrand
  const [only] = items
  if (only !== undefined && items.length === 1 && isWhole) return { kind: 'path', path: only.path }
  const kind = items.length === 0 && isWhole ? 'none' : 'several'
  const html = findPage(context, { kind, typed: `${theme.name} ${serial}`, items })
  return { kind: 'page', status: statuses[kind], html }
}
