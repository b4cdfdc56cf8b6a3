/** The page of a look-up that leads to no single item. None fits, several do, or the code names no item here. */
import { textsIn, type PageContext } from '../context.ts'
import { html } from '../html.ts'
import { documentOf } from '../layout.ts'
import { searchCard } from '../search.ts'
import { plainVerdict } from '../verdict/card.ts'
import { itemLink, stateOf } from './bulk.ts'
import type { LookupItem } from './row.ts'

export type FindView = {
  readonly kind: 'none' | 'several' | 'foreign' | 'unreadable'
  /** The text that was looked up, cleaned: hostile text. */
  readonly typed: string
  readonly items: readonly LookupItem[]
}

export function findPage(context: PageContext, { kind, typed, items }: FindView): string {
  const { find } = textsIn(context)
  const title = find[`${kind}Title`]
  return documentOf(context, {
    title,
    path: '/',
    field: 'empty',
    links: html`<link rel="stylesheet" href="${context.assets}/lookup.css" />`,
    body: html`<div class="flow">
      ${plainVerdict({ tone: 'none', title, text: find[`${kind}Text`] })}
      <section class="card read" aria-labelledby="read">
        <h2 id="read">${find.read}</h2>
        <p><bdi class="typed">${typed}</bdi></p>
        ${
          items.length > 0 &&
          html`<ul class="found">
            ${items.map((item) => html`<li>${itemLink(context, item)} <span class="state">${stateOf(context, item)}</span></li>`)}
          </ul>`
        }
      </section>
      ${searchCard(context)}
    </div>`,
  })
}
