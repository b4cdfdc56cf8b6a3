/** The result of a visit, first on every page: one sentence with icon, text and colour, chip and chain on lines of their own (spec §4.4, §4.6). */
import type { LifecycleState } from '@touchstone/verdict'
import { checkedLine, code, textsIn, type PageContext } from './context.ts'
import { html, type Html } from './html.ts'
import { icon, type IconName } from './icons.ts'
import type { Texts } from './texts/en.ts'

export type Tone = 'good' | 'plain' | 'warn' | 'bad' | 'ended'

export type Result = {
  readonly tone: Tone
  readonly icon: IconName
  readonly title: string
  readonly text: Html | string
  /** A second sentence, such as what the rest of the page is. */
  readonly more?: string | undefined
  readonly facts?: readonly Fact[] | undefined
  readonly checkedAt?: number | undefined
  /** The block that the state was read at; null when no block was needed. */
  readonly block?: number | null | undefined
  /** Behind an alarm the page has its h1 already. */
  readonly behindAlarm?: boolean | undefined
}

export type Fact = { readonly name: string; readonly value: Html | string; readonly mark: 'yes' | 'no' | 'open' }

export function resultCard(context: PageContext, result: Result): Html {
  const { tone, title, text, more, facts = [], checkedAt, block = null, behindAlarm } = result
  const heading = behindAlarm ? html`<h2 id="verdict">${title}</h2>` : html`<h1 id="verdict">${title}</h1>`
  return html`<section class="result ${tone}" aria-labelledby="verdict">
    <div class="sentence">
      ${icon(result.icon)}
      <div>
        ${heading}
        <p>${text}</p>
        ${more && html`<p>${more}</p>`}
      </div>
    </div>
    ${
      facts.length > 0 &&
      html`<dl class="facts">
        ${facts.map(
          (fact) =>
            html`<div class="${fact.mark}">
              <dt>${fact.name}</dt>
              <dd>${fact.value}</dd>
            </div>`,
        )}
      </dl>`
    }
    ${checkedAt !== undefined && html`<p class="checked">${checkedLine(context, checkedAt, block)}</p>`}
  </section>`
}

/** «Claimed CLAIMED it belongs to an owner»: the word for people, the word on the wire, what it means. Nothing is ticked off without a tap. */
export function stateFact(
  texts: Texts,
  of: { readonly state: Exclude<LifecycleState, 'NONE'>; readonly flagged: boolean; readonly isTapped: boolean },
): Fact {
  const { state, flagged, isTapped } = of
  const shown = flagged && state !== 'RECYCLED' ? 'FLAGGED' : state
  return {
    name: texts.state,
    value: html`<strong>${texts[shown]}</strong> ${code(state)} <span class="meaning">${texts[`${shown}_text`]}</span>`,
    mark: shown === 'FLAGGED' ? 'no' : isTapped && state !== 'RECYCLED' ? 'yes' : 'open',
  }
}

/** Kinds of report, most urgent first; REPORTED stands for a flag whose reason is not known. */
const reportKinds = ['STOLEN_CONFIRMED', 'STOLEN', 'RECALL', 'INVESTIGATION', 'LOST', 'REPORTED'] as const
export type ReportKind = (typeof reportKinds)[number]

/** The alarm of a flagged item, over the full width and before everything else: what is reported, what to do. */
export function alarmOf(
  context: PageContext,
  reports: readonly ReportKind[],
): { title: string; html: Html } | undefined {
  const texts = textsIn(context)
  const [first, ...others] = reportKinds.filter((kind) => reports.includes(kind))
  if (first === undefined) return undefined
  const title = texts[`${first}_title`]
  const also = others.map((kind) => html`<li><strong>${texts[`${kind}_title`]}</strong> ${texts[`${kind}_text`]}</li>`)
  return {
    title,
    html: html`<div class="alarm" role="alert">
      <div class="wrap">
        ${icon('alarm')}
        <div>
          <h1>${title}</h1>
          <p>${texts[`${first}_text`]}</p>
          ${
            also.length > 0 &&
            html`<h2>${texts.alsoReported}</h2>
              <ul>
                ${also}
              </ul>`
          }
        </div>
      </div>
    </div>`,
  }
}

/** What a person can do now. */
export function adviceCard(context: PageContext, advice: readonly string[]): Html {
  return html`<section class="card">
    <h2>${textsIn(context).whatToDo}</h2>
    <ul class="advice">
      ${advice.map((line) => html`<li>${line}</li>`)}
    </ul>
  </section>`
}
