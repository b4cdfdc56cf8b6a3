/** Pages without an item: taps that lead to none, links that cannot be read, faults. None of them guesses a verdict (spec §4.4, §7). */
import { hrefIn, retryButton, textsIn, type PageContext } from './context.ts'
import { fill, html, type Html } from './html.ts'
import { formatSeconds } from './languages.ts'
import { documentOf } from './layout.ts'
import { searchCard } from './search.ts'
import {
  nextSteps,
  placesFor,
  plainVerdict,
  tapFact,
  uncheckedFact,
  type Opened,
  verdictCard,
  type VerdictView,
} from './verdict/card.ts'
import { type ViewerRole, type Situation, variantsOf } from './verdict/situation.ts'

export type Notice =
  | { readonly kind: 'counterfeit' | 'other'; readonly checkedAt: number; readonly record?: string | undefined }
  | ({ readonly kind: 'unbound'; readonly checkedAt: number; readonly block: number } & Opened)
  | { readonly kind: 'challenge' | 'limited'; readonly seconds: number }
  /** `role` is what the visitor was doing. */
  | { readonly kind: 'reported' | 'reportsFull'; readonly role: ViewerRole }
  | {
      readonly kind:
        | 'certificateExpired'
        | 'certificateRefused'
        | 'passNotOffered'
        | 'reportExpired'
        | 'badLink'
        | 'badToken'
        | 'noPage'
        | 'unknown'
        | 'fault'
        | 'prefetch'
        | 'incomplete'
        | 'replayed'
    }
  /** `record`: path of the item's page. */
  | { readonly kind: 'offerOver' | 'offerExpired'; readonly record?: string | undefined }
  /** `tap`: what became of the tap of the visit; null where the page is about none. */
  | { readonly kind: 'chain'; readonly tap: TapFate | null }
  /** `record`: path of the untapped page. */
  | { readonly kind: 'notConfigured'; readonly record?: string | undefined }

/** A tap that is `kept` stays good for another try. */
export type TapFate = 'kept' | Parameters<typeof uncheckedFact>[1]

export type NoticeKind = Notice['kind']

/** Returns the notice of a fault by its code. `tap` counts where the chain could not be read. */
export function faultNotice(code: string, tap: TapFate | null): Notice {
  return code === 'CHAIN_UNAVAILABLE' ? { kind: 'chain', tap } : { kind: 'fault' }
}

/** Returns the document. `path` is the page's own path, without query; null for the answer to a form, to which no link leads. */
export function noticePage(context: PageContext, path: string | null, notice: Notice): string {
  const { notices } = textsIn(context)
  const situation = notice.kind === 'chain' && notice.tap === 'kept' ? 'kept' : situations[notice.kind]
  const { title, body } =
    situation === undefined ? plainNotice(context, notice) : situationOf(context, notice, situation)
  const record = 'record' in notice ? notice.record : undefined
  const isRetry = path !== null && retried.includes(notice.kind)
  return documentOf(context, {
    title,
    path: path ?? '/',
    field: 'empty',
    tap: isRetry ? 'retry' : undefined,
    checkedAt: 'checkedAt' in notice ? notice.checkedAt : undefined,
    body: html`<div class="flow">
      ${body} ${isRetry && retryButton(context)}
      ${record !== undefined && html`<p class="btns"><a class="btn quiet" href="${hrefIn(context, record)}">${notices.openRecord}</a></p>`}
      ${hasSearch(notice.kind) && searchCard(context)}
    </div>`,
  })
}

/** Notices that depend on what the visitor is doing. */
const situations: Readonly<Partial<Record<NoticeKind, Situation>>> = {
  counterfeit: 'counterfeit',
  other: 'other',
  unbound: 'unbound',
  chain: 'chain',
  replayed: 'replayed',
  incomplete: 'incomplete',
}

const retried: readonly NoticeKind[] = ['limited', 'chain', 'fault', 'notConfigured']

/** Returns whether the page holds a search form: its policy must let the form go. */
export function hasSearch(kind: NoticeKind): boolean {
  return ['badLink', 'badToken', 'noPage', 'unknown'].includes(kind)
}

function situationOf(context: PageContext, notice: Notice, situation: Situation): { title: string; body: Html } {
  const texts = textsIn(context)
  const { verdict } = texts
  const isUnread = notice.kind === 'chain'
  const isProof = 'checkedAt' in notice
  const view: VerdictView = {
    situation,
    places: placesFor(context, {}),
    eyebrow: isProof ? verdict.checked : isUnread ? verdict.undecided : verdict.noProof,
    facts: factsOf(context, notice),
    seal: isUnread ? 'wait' : undefined,
  }
  return {
    title: variantsOf(texts, situation)[0]?.word ?? '',
    body: html`${verdictCard(context, view)} ${nextSteps(context, view)}`,
  }
}

/** Chip and record in two cells where the chip was looked at. */
function factsOf(context: PageContext, notice: Notice): VerdictView['facts'] {
  const { verdict } = textsIn(context)
  const hidden = { name: verdict.recordHidden, detail: verdict.recordNoMatch, mark: 'open' } as const
  if (notice.kind === 'counterfeit')
    return [{ name: verdict.chipFalse, detail: verdict.chipWrongCode, mark: 'no' }, hidden]
  if (notice.kind === 'other') return [{ name: verdict.chipGenuine, detail: verdict.chipOther, mark: 'no' }, hidden]
  if (notice.kind === 'unbound')
    return [tapFact(context, notice), { name: verdict.recordNone, detail: verdict.recordNoneWhy, mark: 'open' }]
  if (notice.kind !== 'chain' || notice.tap === null) return []
  return [
    notice.tap === 'kept'
      ? { name: verdict.chipRead, detail: verdict.chipKept, mark: 'open' }
      : uncheckedFact(context, notice.tap),
    { name: verdict.recordUnread, detail: verdict.recordAway, mark: 'open' },
  ]
}

const reportedNext = { new: 'reportedNew', second: 'reportedSecond', mine: 'reportedMine' } as const

function plainNotice(context: PageContext, notice: Notice): { title: string; body: Html } {
  const { notices, search } = textsIn(context)
  const name = notice.kind as 'badLink'
  const isToken = notice.kind === 'badToken'
  const title = isToken ? notices.badLinkTitle : notices[`${name}Title`]
  const text = isToken ? search.badToken : notices[`${name}Text`]
  const filled = 'seconds' in notice ? fill(text, { seconds: formatSeconds(context.language, notice.seconds) }) : text
  const isWait = retried.includes(notice.kind)
  const more = 'role' in notice ? notices[reportedNext[notice.role]] : undefined
  const card = { tone: 'none', title, text: filled, more, seal: isWait ? 'wait' : undefined } as const
  return { title, body: plainVerdict(card) }
}
