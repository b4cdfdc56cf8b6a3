/** The start page and the page of a class of products: the meaning of a tap, and the search for an item (spec §1, §4.6). */
import type { LifecycleState } from '@touchstone/verdict'
import { resultCard } from './result.ts'
import { itemForm, searchCard, tapCard, type SearchView } from './search.ts'
import { code, hrefIn, supplierText, textsIn, type PageContext } from './context.ts'
import { html, type Html } from './html.ts'
import { icon } from './icons.ts'
import { documentOf } from './layout.ts'

export type Example = {
  readonly path: string
  /** Cleaned supplier text, if there is any. */
  readonly name: string | undefined
  readonly tokenId: string
  readonly state: Exclude<LifecycleState, 'NONE'>
}

export type HomeView = { readonly search: SearchView; readonly examples: readonly Example[] }

export function homePage(context: PageContext, { search, examples }: HomeView): string {
  const { home } = textsIn(context)
  const steps = [
    ['tap', home.tapTitle, home.tapText],
    ['genuine', home.readTitle, home.readText],
    ['record', home.checkTitle, home.checkText],
  ] as const
  return documentOf(context, {
    title: home.title,
    path: '/',
    body: html`<section class="hero">
        <h1>${home.title}</h1>
        <p>${home.lead}</p>
        <ol class="steps">
          ${steps.map(
            ([name, title, text]) =>
              html`<li>
                ${icon(name)}
                <div>
                  <h2>${title}</h2>
                  <p>${text}</p>
                </div>
              </li>`,
          )}
        </ol>
      </section>
      ${searchCard(context, search)} ${examples.length > 0 && examplesCard(context, examples)} ${tapCard(context)}`,
  })
}

/** The page that a GTIN's own link leads to: `/01/{gtin}`. */
export function classPage(
  context: PageContext,
  { gtin, path }: { readonly gtin: string; readonly path: string },
): string {
  const { home, product } = textsIn(context)
  const { classTitle: title, classText: text, classSerial } = home
  const facts = [{ name: product.gtin, value: code(gtin), mark: 'open' }] as const
  return documentOf(context, {
    title,
    path,
    body: html`${resultCard(context, { tone: 'plain', icon: 'record', title, text, facts })} ${tapCard(context)}
      <section class="card search" aria-labelledby="search">
        <h2 id="search">${classSerial}</h2>
        <div class="forms">${itemForm(context, { gtin })}</div>
      </section>`,
  })
}

function examplesCard(context: PageContext, examples: readonly Example[]): Html {
  const { home, product, states } = textsIn(context)
  return html`<section class="card" aria-labelledby="examples">
    <h2 id="examples">${home.examples}</h2>
    <p class="hint">${home.examplesText}</p>
    <ul class="examples">
      ${examples.map(
        ({ path, tokenId, state, name = product.unnamed.replace('{token}', tokenId) }) =>
          html`<li>
            <a href="${hrefIn(context, path)}">${supplierText(name)}</a>
            <span class="state ${state.toLowerCase()}">${states[state].name}</span>
          </li>`,
      )}
    </ul>
  </section>`
}
