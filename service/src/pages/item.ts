/** The page of one item: the passport of a tap, or the on-chain record, which proves nothing about the item at hand (spec §4.5, §4.6). */
import { checkCard } from './cards/check.ts'
import { historyCard } from './cards/history.ts'
import { productCard } from './cards/product.ts'
import { reportAlarm, resultCard, stateFact, type Fact, type Result, type Tone } from './cards/result.ts'
import { searchCard, tapCard } from './cards/search.ts'
import { ownershipCard, shareCard } from './cards/side.ts'
import { code, textsIn, type PageContext } from './context.ts'
import { fill, html, type Html } from './html.ts'
import type { IconName } from './icons.ts'
import type { ItemView } from './item-view.ts'
import type { Texts } from './languages.ts'
import { documentOf } from './layout.ts'

/** Returns the document. `passport` is left out when the page would grow beyond `maxBytes`. */
export function itemPage(context: PageContext, view: ItemView, maxBytes = 50_000): string {
  const page = render(context, view)
  return Buffer.byteLength(page) < maxBytes || view.passport === null
    ? page
    : render(context, { ...view, passport: null })
}

function render(context: PageContext, view: ItemView): string {
  const { tap, path, link } = view
  const isTapped = tap.kind === 'tapped'
  const kind = resultKind(view)
  const result = resultOf(textsIn(context), kind, view)
  const alarm = reportAlarm(context, view.reports)
  return documentOf(context, {
    title: alarm?.title ?? result.title,
    path,
    alarm: alarm?.html,
    links: html`<link rel="canonical" href="${link}" />`,
    tap: isTapped ? 'tapped' : undefined,
    windowSeconds: isTapped ? tap.windowSeconds : undefined,
    body: html`${resultCard(context, { ...result, behindAlarm: alarm !== undefined })}
      ${view.tampered && kind !== 'tampered' && sealNotice(textsIn(context))} ${!isTapped && tapCard(context)}
      <div class="columns">
        <div>${productCard(context, view)} ${historyCard(context, view)}</div>
        <div>${ownershipCard(context, view)} ${shareCard(context, view)}</div>
      </div>
      ${checkCard(context, view)} ${!isTapped && searchCard(context)}`,
  })
}

const looks = {
  genuine: { tone: 'good', icon: 'genuine', text: 'genuineText' },
  reported: { tone: 'plain', icon: 'genuine', text: 'genuineText' },
  recycled: { tone: 'ended', icon: 'closed', text: 'recycledText' },
  tampered: { tone: 'warn', icon: 'alarm', text: 'sealText' },
  untapped: { tone: 'plain', icon: 'record', text: 'untappedText' },
  incomplete: { tone: 'warn', icon: 'tap', text: 'incompleteText', more: 'recordOnly' },
  replayed: { tone: 'warn', icon: 'again', text: 'replayedText', more: 'recordOnly' },
} as const satisfies Record<string, { tone: Tone; icon: IconName; text: keyof Texts['results']; more?: 'recordOnly' }>

function resultKind({ tap, verdict, reports, tampered }: ItemView): keyof typeof looks {
  if (tap.kind !== 'tapped') return tap.kind
  if (reports.length > 0 || verdict.flagged) return 'reported'
  if (verdict.state === 'RECYCLED') return 'recycled'
  return tampered ? 'tampered' : 'genuine'
}

function resultOf({ results, states }: Texts, kind: keyof typeof looks, view: ItemView): Result {
  const { tap, verdict, checkedAt } = view
  const { tone, icon, text, ...look } = looks[kind]
  return {
    tone,
    icon,
    title: results[`${kind}Title`],
    text: results[text],
    more: 'more' in look ? results[look.more] : undefined,
    facts: [chipFact(results, tap), stateFact({ results, states }, verdict, tap.kind === 'tapped')],
    checkedAt,
    block: verdict.chainRef.block_number,
  }
}

function chipFact(results: Texts['results'], tap: ItemView['tap']): Fact {
  const name = results.chip
  if (tap.kind === 'tapped')
    return { name, value: fill(results.chipPresent, { tap: code(String(tap.counter)) }), mark: 'yes' }
  const { chipUntapped: untapped, chipIncomplete: incomplete, chipReplayed: replayed } = results
  return { name, value: { untapped, incomplete, replayed }[tap.kind], mark: 'open' }
}

function sealNotice({ results }: Texts): Html {
  return html`<div class="warning wide">
    <h2>${results.sealTitle}</h2>
    <p>${results.sealText}</p>
  </div>`
}
