/** The page of one item: the tapped passport, or the untapped on-chain record, which proves nothing about the item in front of one (spec §4.5, §4.6). */
import { code, textsIn, type PageContext } from './context.ts'
import { checkCard } from './check-card.ts'
import { historyCard } from './history-card.ts'
import { fill, html, type Html } from './html.ts'
import type { IconName } from './icons.ts'
import type { ItemView } from './item-view.ts'
import { documentOf } from './layout.ts'
import { productCard } from './product-card.ts'
import { alarmOf, resultCard, stateFact, type Fact, type Result, type Tone } from './result.ts'
import { searchCard } from './search-card.ts'
import { ownershipCard, shareCard, tapCard } from './side-cards.ts'
import type { Texts } from './texts/en.ts'

/** The document. `passport` is left out when the page would grow beyond `mostBytes`. */
export function itemPage(context: PageContext, view: ItemView, mostBytes = 50_000): string {
  const page = render(context, view)
  return Buffer.byteLength(page) < mostBytes || view.passport === null
    ? page
    : render(context, { ...view, passport: null })
}

function render(context: PageContext, view: ItemView): string {
  const { tap, path, link } = view
  const texts = textsIn(context)
  const result = resultOf(context, view)
  const isTapped = tap.kind === 'tapped'
  const alarm = alarmOf(context, view.reports)
  return documentOf(context, {
    title: alarm?.title ?? result.title,
    path,
    alarm: alarm?.html,
    links: html`<link rel="canonical" href="${link}" />`,
    tap: isTapped ? 'tapped' : undefined,
    windowSeconds: tap.kind === 'tapped' ? tap.windowSeconds : undefined,
    body: html`${resultCard(context, { ...result, behindAlarm: alarm !== undefined })}
      ${view.tampered && result.text !== texts.tamperText && tamperNotice(texts)} ${!isTapped && tapCard(context)}
      <div class="columns">
        <div>${productCard(context, view)} ${historyCard(context, view)}</div>
        <div>${ownershipCard(context, view)} ${shareCard(context, view)}</div>
      </div>
      ${checkCard(context, view)} ${!isTapped && searchCard(context)}`,
  })
}

function resultOf(context: PageContext, { tap, verdict, checkedAt, reports, tampered }: ItemView): Result {
  const texts = textsIn(context)
  const state = verdict.state === 'NONE' ? 'MINTED' : verdict.state
  const shared = { checkedAt, block: verdict.chainRef.block_number }
  const facts = [
    chipFact(texts, tap),
    stateFact(texts, { state, flagged: verdict.flagged, isTapped: tap.kind === 'tapped' }),
  ]
  if (tap.kind !== 'tapped') return { ...untapped(texts)[tap.kind], ...shared, facts }
  if (reports.length > 0 || verdict.flagged)
    return { tone: 'plain', icon: 'genuine', title: texts.reportedTitle, text: texts.genuineText, ...shared, facts }
  if (state === 'RECYCLED')
    return { tone: 'ended', icon: 'closed', title: texts.recycledTitle, text: texts.recycledText, ...shared, facts }
  if (tampered)
    return { tone: 'warn', icon: 'alarm', title: texts.tamperedTitle, text: texts.tamperText, ...shared, facts }
  return { tone: 'good', icon: 'genuine', title: texts.genuineTitle, text: texts.genuineText, ...shared, facts }
}

type Untapped = {
  readonly tone: Tone
  readonly icon: IconName
  readonly title: string
  readonly text: string
  readonly more?: string
}

function untapped(texts: Texts): Readonly<Record<'untapped' | 'incomplete' | 'replayed', Untapped>> {
  const { recordOnly } = texts
  return {
    untapped: { tone: 'plain', icon: 'record', title: texts.untappedTitle, text: texts.untappedText },
    incomplete: {
      tone: 'warn',
      icon: 'tap',
      title: texts.incompleteTitle,
      text: texts.incompleteText,
      more: recordOnly,
    },
    replayed: { tone: 'warn', icon: 'again', title: texts.replayedTitle, text: texts.replayedText, more: recordOnly },
  }
}

function chipFact(texts: Texts, tap: ItemView['tap']): Fact {
  switch (tap.kind) {
    case 'tapped':
      return { name: texts.chip, value: fill(texts.chipPresent, { tap: code(String(tap.counter)) }), mark: 'yes' }
    case 'untapped':
      return { name: texts.chip, value: texts.chipUntested, mark: 'open' }
    case 'incomplete':
      return { name: texts.chip, value: texts.chipIncomplete, mark: 'open' }
    case 'replayed':
      return { name: texts.chip, value: texts.chipReplayed, mark: 'open' }
  }
}

function tamperNotice(texts: Texts): Html {
  return html`<div class="warning wide">
    <h2>${texts.tamperTitle}</h2>
    <p>${texts.tamperText}</p>
  </div>`
}
