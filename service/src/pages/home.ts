/** The start page and the page of a class of products: the meaning of a tap, and the search for an item (spec §1, §4.6). */
import type { LifecycleState } from '@touchstone/verdict'
import { code, hrefIn, supplierText, textsIn, type PageContext } from './context.ts'
import { html, type Html } from './html.ts'
import { icon, tapDrawing } from './icons.ts'
import { documentOf } from './layout.ts'
import { itemForm, searchCard, tapCard, type SearchView } from './search.ts'
import { plainVerdict } from './verdict/card.ts'
import { seal } from './verdict/seals.ts'
import { tones } from './verdict/situation.ts'

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
  return documentOf(context, {
    title: home.title,
    path: '/',
    body: html`<section class="hero">
        <div>
          ${tapDrawing}
          <h1>${home.title}</h1>
          <p>${home.lead}</p>
          <p class="only">${home.only}</p>
        </div>
      </section>
      <div class="flow wide">
        ${tapCard(context, false)} ${searchCard(context, search)} ${colours(context)}
        ${examples.length > 0 && examplesCard(context, examples)}
      </div>`,
  })
}

/** The page that a GTIN's own link leads to: `/01/{gtin}`. */
export function classPage(
  context: PageContext,
  { gtin, path }: { readonly gtin: string; readonly path: string },
): string {
  const { home, product } = textsIn(context)
  const { classTitle: title, classText: text, classSerial } = home
  return documentOf(context, {
    title,
    path,
    field: 'empty',
    body: html`<div class="flow">
      ${plainVerdict(context, { tone: 'none', title, text })}
      <dl class="facts2">
        <div>
          <dt>${product.gtin}</dt>
          <dd>${code(gtin)}</dd>
        </div>
      </dl>
      ${tapCard(context)}
      <section class="card search" aria-labelledby="search">
        <h2 id="search">${classSerial}</h2>
        <div class="forms">${itemForm(context, { gtin })}</div>
      </section>
    </div>`,
  })
}

function colours(context: PageContext): Html {
  const { home } = textsIn(context)
  return html`<section class="card colours" aria-labelledby="colours">
    <h2 id="colours">${home.colours}</h2>
    <ul>
      ${tones.map(
        (tone) =>
          html`<li class="tone-${tone}">
            <div class="sealed">${seal(tone)}</div>
            <div>
              <h3>${home[tone]}</h3>
              <p>${home[`${tone}Text`]}</p>
            </div>
          </li>`,
      )}
    </ul>
  </section>`
}

function examplesCard(context: PageContext, examples: readonly Example[]): Html {
  const { home, product, states } = textsIn(context)
  return html`<details class="proof">
    <summary>
      ${icon('layers')}<span><b>${home.examples}</b><small>${home.examplesText}</small></span
      >${icon('down', 'turn')}
    </summary>
    <ul class="examples in">
      ${examples.map(
        ({ path, tokenId, state, name = product.unnamed.replace('{token}', tokenId) }) =>
          html`<li>
            <a href="${hrefIn(context, path)}">${supplierText(name)}</a>
            <span class="state ${state.toLowerCase()}">${states[state]}</span>
          </li>`,
      )}
    </ul>
  </details>`
}
