/** The start page: its search leads to an item's page, its examples are tokens with their states (spec §4.1, §4.5, §4.6). */
import { parseTokenId } from '@touchstone/verdict'
import type { Verdicts } from '../../../assets/verdicts.ts'
import { parseGtin } from '../../../domain/gtin.ts'
import { isRegistrableSerial } from '../../../domain/serial.ts'
import type { SearchView } from '../../../pages/search.ts'
import { hrefIn, type PageContext } from '../../../pages/context.ts'
import { homePage, type Example } from '../../../pages/home.ts'
import { classPath, itemPath, type ItemKey } from '../../../passport/digital-link.ts'
import type { Headers } from '../request.ts'
import type { PageOptions } from './item.ts'
import { pageResponse } from './respond.ts'

export type HomeSite = {
  readonly verdicts: Pick<Verdicts, 'answer'>
  readonly items: { readonly itemOfToken: (tokenId: bigint) => Promise<ItemKey | null> }
  readonly pages: Pick<PageOptions, 'examples'>
}

export async function homeResponse(
  site: HomeSite,
  context: PageContext,
  query: URLSearchParams,
  headers: Headers,
): Promise<Response> {
  const search = parseSearch(query)
  if (search.kind === 'found')
    return new Response(null, {
      status: 303,
      headers: { ...headers, Location: hrefIn(context, search.path), 'Cache-Control': 'no-store' },
    })
  const view = search.kind === 'wrong' ? search.view : {}
  const html = homePage(context, { search: view, examples: await examplesOf(site) })
  return pageResponse(context, { status: search.kind === 'wrong' ? 400 : 200, html, search: true }, headers)
}

/** Lists the examples that exist; none while the chain cannot be read, because the start page must open. */
async function examplesOf({ verdicts, items, pages }: HomeSite): Promise<Example[]> {
  const found = await Promise.all(
    pages.examples.map(async (tokenId) => {
      const [answer, item] = await Promise.all([
        verdicts.answer(tokenId).catch(() => null),
        items.itemOfToken(tokenId).catch(() => null),
      ])
      const { state = 'NONE', untrusted } = answer?.verdict ?? {}
      if (state === 'NONE') return []
      const path = item === null ? `/token/${tokenId}` : itemPath(item)
      return [{ path, name: untrusted?.name, tokenId: String(tokenId), state }]
    }),
  )
  return found.flat()
}

/** `none`: the form was not sent. `wrong`: the form again, with the typed text. */
export type Search =
  | { readonly kind: 'none' }
  | { readonly kind: 'found'; readonly path: string }
  | { readonly kind: 'wrong'; readonly view: SearchView }

const maxTyped = 200

/** Parses the text that a person typed to the path of an item. */
export function parseSearch(query: URLSearchParams): Search {
  const typed = (name: string) => query.get(name)?.slice(0, maxTyped).trim()
  const token = typed('token')
  if (token !== undefined) {
    const tokenId = parseTokenId(token)
    return tokenId === null ? wrong({ token, wrong: 'token' }) : { kind: 'found', path: `/token/${tokenId}` }
  }
  const [gtinText, serial] = [typed('gtin'), typed('serial') ?? '']
  if (gtinText === undefined) return { kind: 'none' }
  const view = { gtin: gtinText, serial }
  const gtin = parseTypedGtin(gtinText)
  if (gtin === null) return wrong({ ...view, wrong: 'gtin' })
  if (serial === '') return { kind: 'found', path: classPath(gtin) }
  return isRegistrableSerial(serial)
    ? { kind: 'found', path: itemPath({ gtin, serial }) }
    : wrong({ ...view, wrong: 'serial' })
}

/** Pads the 8, 12 or 13 digits below a bar code, typed with or without spaces, to a GTIN-14 (GS1 General Specifications §3.3.2). */
function parseTypedGtin(text: string): string | null {
  const digits = text.replace(/[\s-]/g, '')
  if (![8, 12, 13, 14].includes(digits.length)) return null
  const parsed = parseGtin(digits.padStart(14, '0'))
  return parsed.ok ? parsed.gtin : null
}

function wrong(view: SearchView): Search {
  return { kind: 'wrong', view }
}
