/** The product as its maker describes it: cleaned text in elements of its own, marked as not checked (spec §2.3). */
import { code, row, supplierText, textsIn, type PageContext } from '../context.ts'
import { fill, html, type Html } from '../html.ts'
import type { ItemView } from '../item-view.ts'
import { countryName } from '../languages.ts'

type ProductView = Pick<ItemView, 'product' | 'metadata' | 'country' | 'item' | 'verdict'>

/** The page cuts a longer description, in code points; the passport holds all of it. */
const maxDescription = 1_500

export function productCard(context: PageContext, view: ProductView): Html {
  const texts = textsIn(context).product
  const { product, metadata, country, item, verdict } = view
  const { name, brand, sku, size, origin, image, description } = product
  const tokenId = verdict.token_id
  const shortId = tokenId.length <= 20 ? tokenId : `${tokenId.slice(0, 8)}…${tokenId.slice(-8)}`
  return html`<section class="card product" aria-labelledby="product">
    <h2 id="product" class="eyebrow">${texts.title}</h2>
    <p class="name">${name === undefined ? fill(texts.unnamed, { token: code(shortId) }) : supplierText(name)}</p>
    ${metadata === 'match' && html`<p class="note">${texts.note}</p>`}
    ${metadata === 'none' && html`<p class="note">${texts.noText}</p>`}
    ${
      metadata === 'mismatch' &&
      html`<div class="warning">
        <h3>${texts.withheldTitle}</h3>
        <p>${texts.withheldText}</p>
      </div>`
    }
    ${description !== undefined && html`<p class="description">${supplierText(cut(description))}</p>`}
    <dl class="rows">
      ${row(texts.brand, brand && supplierText(brand))} ${row(texts.model, sku && supplierText(sku))}
      ${row(texts.size, size && supplierText(size))}
      ${row(texts.origin, origin && originText(context, origin, country))}
      ${row(texts.picture, image && pictureLink(texts.pictureLink, image))} ${row(texts.gtin, item && code(item.gtin))}
      ${row(texts.serial, item && code(item.serial))} ${row(texts.token, code(tokenId))}
    </dl>
  </section>`
}

function cut(text: string): string {
  const points = Array.from(text)
  if (points.length <= maxDescription) return text
  const kept = points.slice(0, maxDescription - 1).join('')
  return `${kept.trimEnd()}…`
}

/** Writes the maker's word unchanged, and the country that it names in the visitor's language. */
function originText(context: PageContext, origin: string, code: string | undefined): Html {
  const country = code === undefined ? undefined : countryName(context.language, code)
  return country === undefined || country === origin
    ? supplierText(origin)
    : html`${supplierText(origin)} <span class="meaning">${country}</span>`
}

/** The page never loads the picture: following the link shows its host the visitor's address and nothing more. */
function pictureLink(text: string, image: string): Html {
  if (!image.startsWith('https:')) return code(image)
  const label = fill(text, { host: code(URL.parse(image)?.host ?? '') })
  return html`<a href="${image}" rel="noreferrer noopener nofollow">${label}</a>`
}
