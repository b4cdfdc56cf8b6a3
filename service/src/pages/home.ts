/**
 * Renders the start page and the page of a class of products (spec §1, §4.6). They show the meaning of a tap, and the
 * search for an item.
 */
import type { LifecycleState } from '@touchstone/verdict'
import type { ProductDetails } from '../domain/product-details.ts'
import { code, hrefIn, row, summary, supplierText, textsIn, type PageContext } from './context.ts'
import { fill, html, jsonBlock, type Html } from './html.ts'
import { tapDrawing } from './icons.ts'
import { careCard, makerPicture, makerWords } from './item/about.ts'
import { makerFrame } from './item/frame.ts'
import type { ItemView } from './item/view.ts'
import { documentOf } from './layout.ts'
import { scanCard } from './lookup/scan.ts'
import { itemForm, searchCard, tapCard, type Brand, type SearchView } from './search.ts'
import { placesFor, plainVerdict } from './verdict/card.ts'
import { sealPicture } from './verdict/seals.ts'
import { tones } from './verdict/situation.ts'

export type Example = {
  readonly path: string
  /** Cleaned supplier text, if there is any. */
  readonly name: string | undefined
  readonly tokenId: string
  readonly state: Exclude<LifecycleState, 'NONE'>
}

export type HomeView = {
  readonly search: SearchView
  readonly brands: readonly Brand[]
  readonly examples: readonly Example[]
}

export function homePage(context: PageContext, { search, brands, examples }: HomeView): string {
  const { home } = textsIn(context)
  return documentOf(context, {
    title: home.title,
    path: '/',
    links: html`<link rel="stylesheet" href="${context.assets}/lookup.css" />`,
    body: html`<section class="hero">
        <div>
          ${tapDrawing}
          <h1>${home.title}</h1>
          <p>${home.lead}</p>
          <p class="only">${home.only}</p>
        </div>
      </section>
      <div class="flow wide">
        ${tapCard(context, false)} ${scanCard(context)} ${searchCard(context, search, brands)} ${colours(context)}
        ${examples.length > 0 && examplesCard(context, examples)}
      </div>`,
  })
}

export type ClassView = {
  readonly gtin: string
  /** Batch or lot; left out on the page of a model. */
  readonly batch?: string | undefined
  readonly path: string
  /** The text that the items have alike, cleaned, and the same as JSON-LD; null: nothing is known. */
  readonly product:
    | (Pick<ItemView, 'product' | 'country'> & { readonly details: ProductDetails; readonly information: string })
    | null
}

/** The page that the link of a model or a batch leads to: `/01/{gtin}`, `/01/{gtin}/10/{batch}`. */
export function classPage(context: PageContext, view: ClassView): string {
  const { gtin, batch, path } = view
  const { home, product } = textsIn(context)
  const { classTitle: title, classText: text, classSerial } = home
  return documentOf(context, {
    title,
    path,
    field: 'empty',
    body: html`<div class="flow">
      ${plainVerdict({ tone: 'none', title, text })}
      <dl class="facts2">${row(product.gtin, code(gtin))} ${row(product.batch, batch && code(batch))}</dl>
      ${view.product !== null && commonCards(context, view.product)} ${tapCard(context)}
      <section class="card search" aria-labelledby="search">
        <h2 id="search">${classSerial}</h2>
        <div class="forms">${itemForm(context, { gtin })}</div>
      </section>
    </div>`,
  })
}

/** The maker's words about a model or a batch, in their frame, and the same as data. */
function commonCards(context: PageContext, view: NonNullable<ClassView['product']>): Html {
  const { product } = textsIn(context)
  const { details, information } = view
  const places = placesFor(context, { kind: details.kind })
  const words = makerWords(context, view, makerPicture(context, details, places))
  return html`${
    words !== null &&
    html`<section class="card product" aria-labelledby="product">
      <h2 id="product">${fill(product.about, places)}</h2>
      ${makerFrame(context, places, words)}
    </section>`
  }
  ${careCard(context, { details }, places)} ${jsonBlock('information', 'application/ld+json', information)}`
}

function colours(context: PageContext): Html {
  const { home } = textsIn(context)
  return html`<section class="card colours" aria-labelledby="colours">
    <h2 id="colours">${home.colours}</h2>
    <ul>
      ${tones.map(
        (tone) =>
          html`<li class="tone-${tone}">
            <div class="sealed">${sealPicture(tone)}</div>
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
    ${summary('layers', home.examples, home.examplesText)}
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
