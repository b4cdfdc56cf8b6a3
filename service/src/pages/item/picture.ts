/**
 * Pictures of a product, served from this host under the hash of their bytes. Colour is earned: only beside a chip that has just proved
 * itself is a picture in colour. Its box has its size before it arrives, so that the verdict never moves.
 */
import type { DetailsPicture } from '../../domain/product-details.ts'
import { textsIn, type PageContext } from '../context.ts'
import { fill, html, type Html } from '../html.ts'
import type { Places } from '../verdict/card.ts'
import { type Situation, stageOf } from '../verdict/situation.ts'
import type { ItemView } from './view.ts'

/** Paths of the pictures; the hash follows. */
export const picturesPrefix = '/assets/pictures/'

/**
 * Loads after the style sheets, so that it does not delay the verdict. `alt` is plain text. The maker's own description follows the label
 * that it is the maker's.
 */
export function pictureElement(
  { webp, avif, jpeg, width, height }: DetailsPicture,
  { alt, look }: { readonly alt: string; readonly look: string },
): Html {
  const path = (hash: string) => `${picturesPrefix}${hash}`
  return html`<picture
    >${avif !== undefined && html`<source srcset="${path(avif)}" type="image/avif" />`}${
      jpeg !== undefined && html`<source srcset="${path(webp)}" type="image/webp" />`
    }<img
      class="${look}"
      src="${path(jpeg ?? webp)}"
      width="${width}"
      height="${height}"
      alt="${alt}"
      decoding="async"
      loading="lazy"
  /></picture>`
}

/** Describes a picture to those who do not see it, with its label first. */
export function altOf(context: PageContext, picture: DetailsPicture, places: Places): string {
  const label = textsIn(context).product.pictureAlt.replace('{this}', places.this).replace('{maker}', places.maker)
  return picture.alt === undefined ? label : `${label}: ${picture.alt}`
}

/**
 * Returns the stage: the picture beside the verdict. Only a brand of the operator's list has one, because a picture may hold words and
 * could pose as the verdict; the picture of another maker stands in the maker's frame.
 */
export function stageOfItem(
  context: PageContext,
  { details, theme }: Pick<ItemView, 'details' | 'theme'>,
  { situation, places }: { readonly situation: Situation; readonly places: Places },
): Html | undefined {
  const field = stageOf(situation)
  if (theme === null || details === null || field === 'empty') return undefined
  const { picture, drawing } = details
  const isProven = field === 'proven'
  const shown = isProven ? (picture ?? drawing) : (drawing ?? picture)
  if (shown === undefined) return undefined
  const look = shown === drawing ? 'drawing' : 'photo'
  return html`<figure class="stage">
    ${pictureElement(shown, { alt: altOf(context, shown, places), look: `art ${look}` })}
    <figcaption class="credit">${fill(textsIn(context).product.pictureCredit, places)}</figcaption>
  </figure>`
}
