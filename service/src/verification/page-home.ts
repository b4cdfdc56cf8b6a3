/** The start page: its search leads to an item's page, its examples are tokens with their states (spec §4.1, §4.6). */
import type { Verdicts } from '../asset/verdicts.ts'
import { itemPath, type ItemKey } from '../passport/digital-link.ts'
import { hrefIn, type PageContext } from '../pages/context.ts'
import { homePage, type Example } from '../pages/home-page.ts'
import type { PageOptions } from './page-item.ts'
import { pageResponse } from './page-respond.ts'
import { searchOf } from './page-search.ts'

export type HomeSite = {
  readonly verdicts: Pick<Verdicts, 'answer'>
  readonly items: { readonly itemOfToken: (tokenId: bigint) => Promise<ItemKey | null> }
  readonly pages: Pick<PageOptions, 'examples'>
}

export async function homeResponse(
  site: HomeSite,
  context: PageContext,
  query: URLSearchParams,
  headers: Readonly<Record<string, string>>,
): Promise<Response> {
  const search = searchOf(query)
  if (search.kind === 'found')
    return new Response(null, {
      status: 303,
      headers: { ...headers, Location: hrefIn(context, search.path), 'Cache-Control': 'no-store' },
    })
  const view = search.kind === 'wrong' ? search.view : {}
  const html = homePage(context, { search: view, examples: await examplesOf(site) })
  return pageResponse(context, { status: search.kind === 'wrong' ? 400 : 200, html, search: true }, headers)
}

/** Those that exist; none at all while the chain cannot be read, because the start page must open. */
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
