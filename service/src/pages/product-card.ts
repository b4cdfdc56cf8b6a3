/** The product as its maker describes it: cleaned text in elements of its own, marked as not checked (spec §2.3). */
import { code, supplied, textsIn, type PageContext } from './context.ts'
import { fill, html, type Html } from './html.ts'
import type { ItemView } from './item-view.ts'
import { countryIn } from './languages.ts'

type ProductView = Pick<ItemView, 'product' | 'metadata' | 'country' | 'item' | 'verdict'>

/** Longest description on the page, in code points: the whole one is in the passport. */
const longestDescription = 1_500

export function productCard(context: PageContext, view: ProductView): Html {
  const texts = textsIn(context)
  const { product, metadata, item, verdict } = view
  const name =
    product.name === undefined
      ? fill(texts.productUnnamed, { token: code(shortened(verdict.token_id)) })
      : supplied(product.name)
  const supplierRows = [
    row(texts.brand, product.brand && supplied(product.brand)),
    row(texts.model, product.sku && supplied(product.sku)),
    row(texts.size, product.size && supplied(product.size)),
    row(texts.origin, product.origin && originOf(context, product.origin, view.country)),
    row(texts.picture, product.image && pictureLink(context, product.image)),
  ]
  return html`<section class="card product" aria-labelledby="product">
    <h2 id="product" class="eyebrow">${texts.product}</h2>
    <p class="name">${name}</p>
    ${metadata === 'match' && html`<p class="note">${texts.productNote}</p>`}
    ${metadata === 'none' && html`<p class="note">${texts.noMetadata}</p>`}
    ${
      metadata === 'mismatch' &&
      html`<div class="warning">
        <h3>${texts.mismatchTitle}</h3>
        <p>${texts.mismatchText}</p>
      </div>`
    }
    ${product.description !== undefined && html`<p class="description">${supplied(cut(product.description))}</p>`}
    <dl class="rows">
      ${supplierRows}
      ${item && row(texts.gtin, code(item.gtin))}${item && row(texts.serial, code(item.serial))}${row(texts.token, code(verdict.token_id))}
    </dl>
  </section>`
}

function row(name: string, value: Html | '' | undefined): Html | undefined {
  return value
    ? html`<div>
        <dt>${name}</dt>
        <dd>${value}</dd>
      </div>`
    : undefined
}

/** The maker's word as it is, and the country it names in the visitor's language. */
function originOf(context: PageContext, origin: string, code: string | undefined): Html {
  const country = code === undefined ? undefined : countryIn(context.language, code)
  return country === undefined || country === origin
    ? supplied(origin)
    : html`${supplied(origin)} <span class="meaning">${country}</span>`
}

/** Never loaded by the page: whoever opens it tells its host that they did, and nothing more. */
function pictureLink(context: PageContext, image: string): Html {
  const host = URL.parse(image)?.host ?? ''
  const label = fill(textsIn(context).pictureLink, { host: code(host) })
  return image.startsWith('https:')
    ? html`<a href="${image}" rel="noreferrer noopener nofollow">${label}</a>`
    : code(image)
}

function cut(text: string): string {
  const points = Array.from(text)
  return points.length <= longestDescription
    ? text
    : `${points
        .slice(0, longestDescription - 1)
        .join('')
        .trimEnd()}…`
}

function shortened(tokenId: string): string {
  return tokenId.length <= 20 ? tokenId : `${tokenId.slice(0, 8)}…${tokenId.slice(-8)}`
}
