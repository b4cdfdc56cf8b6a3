/** The maker's description of an item: product, care, repair, recycling, materials, recall. It stands in frames (spec §2.3). */
import { code, cut, fold, row, supplierText, textsIn, type PageContext } from '../context.ts'
import { fill, html, type Html } from '../html.ts'
import type { IconName } from '../icons.ts'
import { countryName, formatPercent } from '../languages.ts'
import type { Places } from '../verdict/card.ts'
import type { Situation } from '../verdict/situation.ts'
import { hasComparison } from './compare.ts'
import { makerFrame, makerLink } from './frame.ts'
import { altOf, pictureElement } from './picture.ts'
import type { ItemView } from './view.ts'

export function recallCard(context: PageContext, { details, reports }: ItemView, places: Places): Html | false {
  const { product } = textsIn(context)
  const recall = details?.recall
  if (recall === undefined || !reports.includes('RECALL')) return false
  return html`<section class="card" aria-labelledby="recall">
    <h2 id="recall">${product.recall}</h2>
    ${makerFrame(
      context,
      places,
      html`<p class="lines">${supplierText(recall.text, details?.language)}</p>
        ${recall.url !== undefined && html`<p>${makerLink(recall.url)}</p>`}`,
    )}
  </section>`
}

/** The product as its maker describes it, and the numbers under which the operator registered it. */
export function aboutCard(
  context: PageContext,
  view: ItemView,
  { situation, places }: { readonly situation: Situation; readonly places: Places },
): Html {
  const texts = textsIn(context).product
  const { metadata, item, verdict, details, theme } = view
  // Elsewhere the picture stands beside the verdict, or in the comparison.
  const isHere = theme === null && !hasComparison(view, situation)
  const words = makerWords(context, view, isHere ? makerPicture(context, details, places) : false)
  return html`<section class="card product" aria-labelledby="product">
    <h2 id="product">${fill(texts.about, places)}</h2>
    ${metadata === 'none' && html`<p class="lead">${texts.noText}</p>`}
    ${metadata === 'unread' && html`<p class="lead">${texts.unreadText}</p>`}
    ${metadata === 'mismatch' && html`<p class="lead">${texts.withheldText}</p>`}
    ${words !== null && makerFrame(context, places, words)} ${numbersOf(context, item, verdict.token_id)}
  </section>`
}

/** Lists the numbers under which an item is registered. */
export function numbersOf(context: PageContext, item: ItemView['item'], tokenId: string): Html {
  const { serial, gtin, record } = textsIn(context).product
  return html`<dl class="facts2">
    ${row(serial, item && code(item.serial))} ${row(gtin, item && code(item.gtin))}
    ${row(record, code(tokenId.length <= 20 ? tokenId : `${tokenId.slice(0, 8)}…${tokenId.slice(-8)}`))}
  </dl>`
}

/** Longest description on a page, in code points; the passport holds all of it. */
const longestDescription = 1_500

/** The maker's fields, to stand in a frame; null without any. */
export function makerWords(
  context: PageContext,
  { product, country, details = null }: Pick<ItemView, 'product' | 'country'> & Partial<Pick<ItemView, 'details'>>,
  picture: Html | false,
): Html | null {
  const texts = textsIn(context).product
  const words = (text: string) => supplierText(text, details?.language)
  const { name, brand, sku, size, origin, image, description } = product
  const facts = [
    row(texts.brand, brand && words(brand)),
    row(texts.model, sku && words(sku)),
    row(texts.size, size && words(size)),
    row(texts.origin, origin && html`${words(origin)}${meaningOf(context, origin, country)}`),
    row(texts.picture, image && pictureLink(texts.pictureLink, image)),
  ].filter((one) => one !== undefined)
  const parts = [
    picture,
    name !== undefined && html`<p class="name">${words(name)}</p>`,
    description !== undefined && html`<p class="lines">${words(cut(description, longestDescription))}</p>`,
    facts.length > 0 && html`<dl class="facts2">${facts}</dl>`,
  ].filter((one) => one !== false)
  return parts.length === 0 ? null : html`${parts}`
}

/** The picture, or else the drawing, of a product as its maker supplied it. */
export function makerPicture(context: PageContext, details: ItemView['details'], places: Places): Html | false {
  const shown = details?.picture ?? details?.drawing
  if (shown === undefined) return false
  const look = shown === details?.drawing ? 'own drawing' : 'own photo'
  return pictureElement(shown, { alt: altOf(context, shown, places), look })
}

export function careCard(context: PageContext, { details }: Pick<ItemView, 'details'>, places: Places): Html | false {
  const { product } = textsIn(context)
  if (details === null) return false
  const { care = [], repair, recycling, materials = [], language } = details
  const words = (text: string) => supplierText(text, language)
  const guidance = (one: typeof repair): Html | false =>
    one !== undefined &&
    (one.text !== undefined || one.url !== undefined) &&
    html`${one.text !== undefined && html`<p class="lines">${words(one.text)}</p>`}
    ${one.url !== undefined && html`<p>${makerLink(one.url)}</p>`}`
  const parts: readonly (readonly [IconName, string, string, Html | false])[] = [
    ['drop', product.care, product.careWhat, care.length > 0 && list(care.map(words))],
    ['wrench', product.repair, product.repairWhat, guidance(repair)],
    ['loop', product.recycling, product.recyclingWhat, guidance(recycling)],
    [
      'layers',
      product.materials,
      product.materialsWhat,
      materials.length > 0 &&
        list(
          materials.map(({ name, percent, country }) => {
            const place = country === undefined ? undefined : countryName(context.language, country)
            return html`${words(name)}${percent !== undefined && ` ${formatPercent(context.language, Number(percent))}`}${place !== undefined && ` (${place})`}`
          }),
        ),
    ],
  ]
  const shown = parts.filter(([, , , body]) => body !== false)
  if (shown.length === 0) return false
  return html`<section class="card" aria-labelledby="care">
    <h2 id="care">${product.careTitle}</h2>
    ${makerFrame(
      context,
      places,
      html`<div class="acts">${shown.map(([name, title, what, body]) => fold(name, title, what, body))}</div>`,
    )}
  </section>`
}

function list(lines: readonly Html[]): Html {
  return html`<ul>
    ${lines.map((line) => html`<li>${line}</li>`)}
  </ul>`
}

/** Adds to the maker's word the country that it names, in the visitor's language. */
function meaningOf(context: PageContext, origin: string, country: string | undefined): Html | false {
  const name = country === undefined ? undefined : countryName(context.language, country)
  return name !== undefined && name !== origin && html` <span class="meaning">${name}</span>`
}

/** The page never loads a picture by address: following the link shows its host the visitor's address and nothing more. */
function pictureLink(text: string, image: string): Html {
  if (!image.startsWith('https:')) return code(image)
  const label = fill(text, { host: code(URL.parse(image)?.host ?? '') })
  return html`<a href="${image}" rel="noreferrer noopener nofollow">${label}</a>`
}
