/** The comparison of item and record: a genuine chip proves nothing about the item around it, so the visitor looks (spec §1). */
import { supplierText, textsIn, type PageContext } from '../context.ts'
import { fill, html, type Html } from '../html.ts'
import { icon } from '../icons.ts'
import { spoken, type Places } from '../verdict/card.ts'
import { stageOf, type Situation } from '../verdict/situation.ts'
import { makerFrame } from './frame.ts'
import { altOf, pictureElement } from './picture.ts'
import type { ItemView } from './view.ts'

/** Returns whether the page asks for the comparison: the chip proved itself, and the record has a picture or features. */
export function hasComparison({ details }: Pick<ItemView, 'details'>, situation: Situation): boolean {
  if (stageOf(situation) !== 'proven') return false
  return details?.picture !== undefined || (details?.features ?? []).length > 0
}

/** The answer is two radio buttons, so that it needs no script. It is neither stored nor sent. */
export function compareCard(
  context: PageContext,
  view: ItemView,
  { situation, places }: { readonly situation: Situation; readonly places: Places },
): Html | false {
  const { compare } = textsIn(context)
  const features = view.details?.features ?? []
  if (!hasComparison(view, situation)) return false
  const words = (text: string) => supplierText(text, view.details?.language)
  const line = (text: string) => html`<li>${fill(text, places)}</li>`
  return html`<section class="card compare" id="compare" aria-labelledby="compare-title">
    <h2 id="compare-title">${compare.title}</h2>
    <p class="lead">${compare.lead}</p>
    ${makerFrame(
      context,
      places,
      html`${pinned(context, view, places)}
      ${
        features.length > 0 &&
        html`<ol class="features">
          ${features.map(
            ({ title, text, picture }) =>
              html`<li class="${picture && 'seen'}">
                ${picture && pictureElement(picture, { alt: altOf(context, picture, places), look: 'lens' })}
                <div>
                  <h3>${words(title)}</h3>
                  ${text !== undefined && html`<p>${words(text)}</p>`}
                </div>
              </li>`,
          )}
        </ol>`
      }`,
    )}
    <div class="answers" role="radiogroup" aria-labelledby="compare-title">
      <label
        ><input type="radio" name="looks" id="looks-yes" value="yes" autocomplete="off" /><span class="btn quiet"
          >${icon('check')}${compare.yes}</span
        ></label
      >
      <label
        ><input type="radio" name="looks" id="looks-no" value="no" autocomplete="off" /><span class="btn quiet"
          >${icon('cross')}${compare.no}</span
        ></label
      >
    </div>
    ${spoken('.answer h3, .answer > p')}
    <div class="answer yes tone-go">
      <h3>${compare.yesTitle}</h3>
      <p>${fill(compare.yesText, places)}</p>
    </div>
    <div class="answer no tone-stop">
      <h3>${compare.noTitle}</h3>
      <p>${fill(compare.noText, places)}</p>
      <ul>
        ${compare.noSteps.map(line)}
      </ul>
      ${reportForm(context, view.reportTicket)}
    </div>
  </section>`
}

export const reportPath = '/report'
/** Id of the form, by which the answer to «What are you doing?» belongs to it. */
export const reportFormId = 'report'

/** The form works without a script, asks for no name, and may be sent empty. */
function reportForm(context: PageContext, ticket: string | null): Html | false {
  const { compare } = textsIn(context)
  if (ticket === null) return false
  return html`<form
    class="report"
    id="${reportFormId}"
    method="post"
    action="${reportPath}?lang=${context.language}"
    autocomplete="off"
  >
    <input type="hidden" name="ticket" value="${ticket}" />
    <label for="note">${compare.reportNote}</label>
    <textarea id="note" name="note" rows="2" maxlength="300" aria-describedby="note-hint"></textarea>
    <p class="hint" id="note-hint">${compare.reportHint}</p>
    <button>${compare.reportButton}</button>
  </form>`
}

/** The picture, with the number of each feature at its place. The numbers repeat those of the list. */
function pinned(context: PageContext, { details }: ItemView, places: Places): Html | false {
  const { picture, features = [] } = details ?? {}
  if (picture === undefined) return false
  const { width, height } = picture
  const unit = Math.max(width, height) / 100
  const pins = features.map(({ x, y }, index) => {
    if (x === undefined || y === undefined) return false
    const [left, top] = [(x * width) / 100, (y * height) / 100].map((at) => at.toFixed(1))
    return html`<circle cx="${left}" cy="${top}" r="${(4.2 * unit).toFixed(1)}" /><text
        x="${left}"
        y="${top}"
        dy=".36em"
        font-size="${(5 * unit).toFixed(1)}"
        >${index + 1}</text
      >`
  })
  return html`<div class="pinned">
    ${pictureElement(picture, { alt: altOf(context, picture, places), look: 'photo' })}
    ${
      pins.some((pin) => pin !== false) &&
      html`<svg class="pins" viewBox="0 0 ${width} ${height}" aria-hidden="true" focusable="false">${pins}</svg>`
    }
  </div>`
}
