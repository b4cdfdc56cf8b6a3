/**
 * Renders the page of one item: the passport of a tap, or the record (spec §4.5, §4.6). The record proves nothing about
 * the item at hand. Below the verdict stand the next steps, the comparison, the maker's text in its frame, the history,
 * ownership, and the ways to check all of it.
 */
import type { LifecycleState } from '@touchstone/verdict'
import { dateElement, textsIn, timeElement, type PageContext } from '../context.ts'
import { fill, html, jsonBlock, type Html } from '../html.ts'
import { documentOf } from '../layout.ts'
import { ownershipCard } from '../ownership/card.ts'
import { searchCard, tapHelp } from '../search.ts'
import {
  nextSteps,
  placesFor,
  tapFact,
  uncheckedFact,
  verdictCard,
  type CardFact,
  type Places,
} from '../verdict/card.ts'
import { isDoubtful, sortedReports, situationOf, stageOf, type Situation, variantsOf } from '../verdict/situation.ts'
import { aboutCard, careCard, recallCard } from './about.ts'
import { compareCard, hasComparison, reportFormId } from './compare.ts'
import { historyCard } from './history.ts'
import { stageOfItem } from './picture.ts'
import { proofCard } from './proof.ts'
import { shareCard } from './share.ts'
import type { ItemView, TapView, TimelineKind } from './view.ts'

/** A larger page is slow to load where the network is. */
const mostBytes = 50_000

/** Returns the document. Its data are left out when the page would grow beyond 50 kB. */
export function itemPage(context: PageContext, view: ItemView): string {
  const page = render(context, view)
  return Buffer.byteLength(page) < mostBytes ? page : render(context, { ...view, passport: null, information: null })
}

function render(context: PageContext, view: ItemView): string {
  const { tap, path, link, theme } = view
  const texts = textsIn(context)
  const facts = factsFor(view)
  const [situation, inDoubt] = [situationOf(facts), isDoubtful(facts)]
  const isTapped = tap.kind === 'tapped'
  const places = placesOf(context, view)
  const words = variantsOf(texts, situation)[0]?.word ?? ''
  return documentOf(context, {
    title: `${words.replace('{genuine}', places.genuine)}${theme === null ? '' : `: ${theme.name}`}`,
    path,
    theme,
    field: stageOf(situation),
    links: html`<link rel="canonical" href="${link}" />`,
    tap: isTapped ? 'tapped' : undefined,
    windowSeconds: isTapped ? tap.windowSeconds : undefined,
    checkedAt: view.checkedAt,
    stage: stageOfItem(context, view, { situation, places }),
    body: html`<div class="flow">
      ${verdictCard(context, {
        situation,
        inDoubt,
        places,
        eyebrow: isTapped ? texts.verdict.checked : texts.verdict.noProof,
        facts: [isTapped ? tapFact(context, tap) : uncheckedFact(context, tap.kind), recordFact(context, view)],
        name: view.product.name,
        brand: theme?.name,
        say: isTapped || stageOf(situation) !== 'stop' ? undefined : reportSentence(context, tap.kind),
        notes: [...(inDoubt ? [texts.verdict.historyUnread] : []), ...notesOf(context, view, situation)],
        form: hasReportForm(view) ? reportFormId : undefined,
      })}
      ${nextSteps(context, { situation, places }, asksForTap(tap, situation) && tapHelp(context))}
      ${compareCard(context, view, { situation, places })} ${recallCard(context, view, places)}
      ${aboutCard(context, view, { situation, places })} ${historyCard(context, view)}
      ${ownershipCard(context, view, places)} ${careCard(context, view, places)} ${shareCard(context, view)}
      ${proofCard(context, view)} ${!isTapped && searchCard(context)}
      ${view.information !== null && jsonBlock('information', 'application/ld+json', view.information)}
    </div>`,
  })
}

/** Returns whether the page holds the form that reports a difference. */
export function hasReportForm(view: ItemView): boolean {
  return view.reportTicket !== null && hasComparison(view, situationOf(factsFor(view)))
}

/** A report is in the record also without a tap, which alone would show that it is about this item. */
function reportSentence(context: PageContext, kind: Exclude<TapView['kind'], 'tapped'>): string {
  const { verdict } = textsIn(context)
  return kind === 'untapped' ? verdict.reportUntapped : verdict.reportTapAgain
}

function asksForTap({ kind }: TapView, situation: Situation): boolean {
  return kind !== 'tapped' && stageOf(situation) === 'record' && situation !== 'chipless'
}

function factsFor(view: ItemView): Parameters<typeof situationOf>[0] {
  const { tap, verdict, reports, tampered, metadata, product, changedAt, checkedAt } = view
  return {
    tap,
    state: verdict.state,
    flagged: verdict.flagged,
    reports,
    tampered,
    described: metadata === 'unread' ? null : metadata === 'match' && product.name !== undefined,
    claimedAt: claimedAtOf(view),
    changedAt,
    returned: changesOf(view)?.some(({ kind }) => kind === 'resold') ?? null,
    now: checkedAt,
  }
}

/**
 * The kind is one of a closed list, and the maker one of the operator's. No text of a supplier stands in a sentence.
 */
function placesOf(context: PageContext, view: ItemView): Places {
  const { details, theme, tap } = view
  const claimedAt = claimedAtOf(view)
  return {
    ...placesFor(context, { kind: details?.kind, theme }),
    taps: tap.kind === 'tapped' ? String(tap.counter) : '',
    date: claimedAt === null ? '' : dateElement(context, claimedAt),
  }
}

/** Returns the time of the last claim. An item that was given back is claimed anew. */
function claimedAtOf(view: ItemView): number | null {
  return changesOf(view)?.findLast(({ kind }) => kind === 'claimed')?.at ?? null
}

function changesOf({ history, changes }: ItemView): ItemView['changes'] {
  return history ?? changes
}

/** The state or the gravest report in words, and since when it stands, or when it was read. */
function recordFact(context: PageContext, view: ItemView): CardFact {
  const { verdict: texts, states, reports: reportNames } = textsIn(context)
  const { verdict, history, tap, tampered, checkedAt } = view
  const [report] = sortedReports(view)
  const change = history?.findLast(({ kind }) => eventsOfState[verdict.state]?.includes(kind))
  // A change of reports does not say which one it added, and a recycled item was reported before.
  const isOther = change?.kind === 'flagsChanged' || (report !== undefined && verdict.state === 'RECYCLED')
  const since = isOther ? null : change?.at
  const name = report !== undefined ? reportNames[report] : states[verdict.state === 'NONE' ? 'MINTED' : verdict.state]
  const detail =
    since === undefined || since === null
      ? fill(texts.readNow, { time: timeElement(context, checkedAt) })
      : fill(texts.since, { date: dateElement(context, since) })
  const isGood = tap.kind === 'tapped' && !tampered && (verdict.state === 'ACTIVATED' || verdict.state === 'CLAIMED')
  const mark = report !== undefined || verdict.flagged ? 'no' : isGood ? 'yes' : tap.kind === 'tapped' ? 'wait' : 'open'
  return { name, detail, mark }
}

/** Events since which a state holds, or its reports. */
const eventsOfState: Readonly<Partial<Record<LifecycleState, readonly TimelineKind[]>>> = {
  MINTED: ['minted'],
  BOUND: ['bound'],
  ACTIVATED: ['activated', 'resold', 'unflagged'],
  CLAIMED: ['claimed'],
  FLAGGED: ['flagged', 'flagsChanged'],
  RECYCLED: ['recycled'],
}

/** Sentences below the facts: what the colour alone does not say. */
function notesOf(context: PageContext, view: ItemView, situation: Situation): (Html | string)[] {
  const { verdict, reports: names } = textsIn(context)
  const [first, ...others] = [...new Set(sortedReports(view).map((kind) => names[kind]))]
  const isProven = stageOf(situation) === 'proven'
  return [
    ...(isProven ? [honestLine(context, view, situation)] : []),
    ...(first === undefined ? [] : others.map((report) => fill(verdict.also, { report }))),
    ...(view.tampered && situation !== 'opened' ? [verdict.sealOpened] : []),
    ...(view.metadata === 'mismatch' ? [verdict.withheld] : []),
    ...(isProven && view.theme === null && view.metadata === 'match' ? [verdict.unlisted] : []),
  ]
}

/** The chip is genuine, not necessarily the item. Who opens a link first has its tap, wherever the chip is. */
function honestLine(context: PageContext, view: ItemView, situation: Situation): Html {
  const { verdict, kinds } = textsIn(context)
  const words = fill(verdict.caveatLink, { this: kinds[view.details?.kind ?? 'item'] })
  const link = html`<a href="${hasComparison(view, situation) ? '#compare' : '#product'}">${words}</a>`
  return html`${verdict.caveat} ${view.metadata === 'match' && link} ${verdict.sentLink}`
}
