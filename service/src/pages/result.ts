/** The result of a visit comes first on every page: one sentence with icon, text and colour, then chip and chain (spec §4.4, §4.6). */
import type { LifecycleState } from '@touchstone/verdict'
import { code, textsIn, timeElement, type PageContext } from './context.ts'
import { fill, html, type Html } from './html.ts'
import { icon, type IconName } from './icons.ts'
import type { Texts } from './languages.ts'

export type Tone = 'good' | 'plain' | 'warn' | 'bad' | 'ended'

export type Result = {
  readonly tone: Tone
  readonly icon: IconName
  readonly title: string
  readonly text: Html | string
  /** A second sentence, such as one about the rest of the page. */
  readonly more?: string | undefined
  readonly facts?: readonly Fact[] | undefined
  readonly checkedAt?: number | undefined
  /** The block that the state was read at; null when no block was needed. */
  readonly block?: number | null | undefined
  /** The alarm before the result holds the h1. */
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

function checkedLine(context: PageContext, checkedAt: number, block: number | null): Html {
  const { checked, checkedChip } = textsIn(context).results
  const time = timeElement(context, checkedAt)
  return block === null ? fill(checkedChip, { time }) : fill(checked, { time, block: code(String(block)) })
}

/** Writes a state in words, as on the wire, and its meaning. Only a tapped page ticks it off. */
export function stateFact(
  { results, states }: Pick<Texts, 'results' | 'states'>,
  verdict: { readonly state: LifecycleState; readonly flagged: boolean },
  isTapped: boolean,
): Fact {
  const state = verdict.state === 'NONE' ? 'MINTED' : verdict.state
  const shown = verdict.flagged && state !== 'RECYCLED' ? 'FLAGGED' : state
  const { name, meaning } = states[shown]
  return {
    name: results.state,
    value: html`<strong>${name}</strong> ${code(state)} <span class="meaning">${meaning}</span>`,
    mark: shown === 'FLAGGED' ? 'no' : isTapped && state !== 'RECYCLED' ? 'yes' : 'open',
  }
}

/** Kinds of report, most urgent first; REPORTED stands for a flag without a known reason. */
const reportKinds = ['STOLEN_CONFIRMED', 'STOLEN', 'RECALL', 'INVESTIGATION', 'LOST', 'REPORTED'] as const
export type ReportKind = (typeof reportKinds)[number]

/** Writes the alarm of a flagged item, over the full width and before everything else: its reports and the advice for each. */
export function reportAlarm(
  context: PageContext,
  kinds: readonly ReportKind[],
): { title: string; html: Html } | undefined {
  const { reports } = textsIn(context)
  const [first, ...others] = reportKinds.filter((kind) => kinds.includes(kind))
  if (first === undefined) return undefined
  const title = reports[`${first}_title`]
  const also = others.map(
    (kind) => html`<li><strong>${reports[`${kind}_title`]}</strong> ${reports[`${kind}_text`]}</li>`,
  )
  return {
    title,
    html: html`<div class="alarm" role="alert">
      <div class="wrap">
        ${icon('alarm')}
        <div>
          <h1>${title}</h1>
          <p>${reports[`${first}_text`]}</p>
          ${
            also.length > 0 &&
            html`<h2>${reports.alsoReported}</h2>
              <ul>
                ${also}
              </ul>`
          }
        </div>
      </div>
    </div>`,
  }
}

/** Lists what a person can do now. */
export function adviceCard(context: PageContext, advice: readonly string[]): Html {
  return html`<section class="card">
    <h2>${textsIn(context).notices.whatToDo}</h2>
    <ul class="advice">
      ${advice.map((line) => html`<li>${line}</li>`)}
    </ul>
  </section>`
}
