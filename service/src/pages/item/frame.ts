/** Frames around the maker's words: a label before them names the maker and says that they are not checked (spec §2.3). */
import { textsIn, type PageContext } from '../context.ts'
import { fill, html, type Html } from '../html.ts'
import type { Places } from '../verdict/card.ts'

export function makerFrame(context: PageContext, { maker }: Places, body: Html): Html {
  const label = fill(textsIn(context).product.suppliedBy, { maker: html`<b>${maker}</b>` })
  return html`<div class="maker">
    <p class="tab">${label}</p>
    <div class="words">${body}</div>
  </div>`
}

/** Links a page of the maker. Following it shows the host the visitor's address and nothing more. */
export function makerLink(url: string): Html {
  return html`<a href="${url}" rel="noreferrer noopener nofollow" dir="ltr">${URL.parse(url)?.host ?? url}</a>`
}
