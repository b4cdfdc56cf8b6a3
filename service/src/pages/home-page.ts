/** The start page and the page of a class of products: what a tap does, and how to look an item up (spec §1, §4.6). */
import type { LifecycleState } from '@touchstone/verdict'
import { code, hrefIn, supplied, textsIn, type PageContext } from './context.ts'
import { html, type Html } from './html.ts'
import { icon } from './icons.ts'
import { documentOf } from './layout.ts'
import { resultCard } from './result.ts'
import { itemForm, searchCard, type SearchView } from './search-card.ts'
import { tapCard } from './side-cards.ts'

export type Example = {
  readonly path: string
  /** Cleaned supplier text, if there is any. */
  readonly name: string | undefined
  readonly tokenId: string
  readonly state: Exclude<LifecycleState, 'NONE'>
}

export type HomeView = { readonly search: SearchView; readonly examples: readonly Example[] }

export function homePage(context: PageContext, { search, examples }: HomeView): string {
  const texts = textsIn(context)
  const steps = [
    ['tap', texts.homeStepTap, texts.homeStepTapText],
    ['genuine', texts.homeStepRead, texts.homeStepReadText],
    ['record', texts.homeStepCheck, texts.homeStepCheckText],
  ] as const
  return documentOf(context, {
    title: texts.homeTitle,
    path: '/',
    body: html`<section class="hero">
        <h1>${texts.homeTitle}</h1>
        <p>${texts.homeLead}</p>
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

/** `/01/{gtin}`: where a GTIN's own link leads. */
export function classPage(
  context: PageContext,
  { gtin, path }: { readonly gtin: string; readonly path: string },
): string {
  const texts = textsIn(context)
  const title = texts.classTitle
  return documentOf(context, {
    title,
    path,
    body: html`${resultCard(context, { tone: 'plain', icon: 'record', title, text: texts.classText, facts: [{ name: texts.gtin, value: code(gtin), mark: 'open' }] })}
      ${tapCard(context)}
      <section class="card search" aria-labelledby="search">
        <h2 id="search">${texts.classSerial}</h2>
        <div class="forms">${itemForm(context, { gtin })}</div>
      </section>`,
  })
}

function examplesCard(context: PageContext, examples: readonly Example[]): Html {
  const texts = textsIn(context)
  return html`<section class="card" aria-labelledby="examples">
    <h2 id="examples">${texts.examples}</h2>
    <p class="hint">${texts.examplesText}</p>
    <ul class="examples">
      ${examples.map(({ path, name, tokenId, state }) => {
        const shown = name === undefined ? texts.productUnnamed.replace('{token}', tokenId) : name
        return html`<li>
          <a href="${hrefIn(context, path)}">${supplied(shown)}</a>
          <span class="state ${state.toLowerCase()}">${texts[state]}</span>
        </li>`
      })}
    </ul>
  </section>`
}
