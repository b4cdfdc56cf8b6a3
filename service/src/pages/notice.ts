/** Pages without an item: taps that lead to none, links that cannot be read, faults. None of them guesses a verdict (spec §4.4, §7). */
import { adviceCard, resultCard, type Fact, type Tone } from './result.ts'
import { searchCard } from './search.ts'
import { code, hrefIn, textsIn, type PageContext } from './context.ts'
import { fill, html, type Html } from './html.ts'
import type { IconName } from './icons.ts'
import type { Texts } from './languages.ts'
import { documentOf } from './layout.ts'

export type Notice =
  | { readonly kind: 'counterfeit' | 'other'; readonly checkedAt: number; readonly record?: string | undefined }
  | { readonly kind: 'unbound'; readonly counter: number; readonly checkedAt: number; readonly block: number }
  | { readonly kind: 'challenge' | 'limited'; readonly seconds: number }
  | { readonly kind: 'badLink' | 'badToken' | 'unknown' | 'prefetch' | 'incomplete' | 'replayed' }
  /** `tapped`: the visit carried a tap, which stays valid for another try. */
  | { readonly kind: 'chain' | 'fault'; readonly tapped: boolean }
  /** `record`: path of the untapped page. */
  | { readonly kind: 'notConfigured'; readonly record?: string | undefined }

export type NoticeKind = Notice['kind']

/** Returns the document. `path` is the page's own path, without query. */
export function noticePage(context: PageContext, path: string, notice: Notice): string {
  const texts = textsIn(context)
  const { tone, icon, retry, search } = looks[notice.kind]
  const { title, text, more, advice = [] } = wordsOf(texts, notice)
  const result = {
    tone,
    icon,
    title,
    text,
    more,
    facts: factsOf(texts.results, notice),
    checkedAt: 'checkedAt' in notice ? notice.checkedAt : undefined,
    block: notice.kind === 'unbound' ? notice.block : null,
  }
  const record = 'record' in notice ? notice.record : undefined
  const { tryAgain, openRecord } = texts.notices
  return documentOf(context, {
    title,
    path,
    tap: retry ? 'retry' : undefined,
    body: html`${resultCard(context, result)}
    ${retry && html`<p class="again"><a class="button" href="" data-retry>${tryAgain}</a></p>`}
    ${advice.length > 0 && adviceCard(context, advice)}
    ${record !== undefined && html`<p class="again"><a href="${hrefIn(context, record)}">${openRecord}</a></p>`}
    ${search && searchCard(context)}`,
  })
}

type Look = { readonly tone: Tone; readonly icon: IconName; readonly retry?: true; readonly search?: true }

const looks: Readonly<Record<NoticeKind, Look>> = {
  counterfeit: { tone: 'bad', icon: 'stop' },
  unbound: { tone: 'warn', icon: 'unknown' },
  other: { tone: 'bad', icon: 'apart' },
  challenge: { tone: 'plain', icon: 'tap' },
  badLink: { tone: 'warn', icon: 'apart', search: true },
  badToken: { tone: 'warn', icon: 'apart', search: true },
  unknown: { tone: 'plain', icon: 'unknown', search: true },
  limited: { tone: 'warn', icon: 'wait', retry: true },
  chain: { tone: 'warn', icon: 'wait', retry: true },
  fault: { tone: 'warn', icon: 'alarm', retry: true },
  notConfigured: { tone: 'warn', icon: 'wait', retry: true },
  prefetch: { tone: 'plain', icon: 'tap' },
  incomplete: { tone: 'plain', icon: 'tap' },
  replayed: { tone: 'warn', icon: 'tap' },
}

/** Returns whether the page holds a search form: its policy must let the form go. */
export function hasSearch(kind: NoticeKind): boolean {
  return looks[kind].search === true
}

type Words = {
  readonly title: string
  readonly text: string | Html
  readonly more?: string
  readonly advice?: readonly string[]
}

function wordsOf({ notices, search, results }: Texts, notice: Notice): Words {
  if (notice.kind === 'badToken') return { title: notices.badLinkTitle, text: search.badToken }
  if (notice.kind === 'incomplete' || notice.kind === 'replayed')
    return { title: results[`${notice.kind}Title`], text: results[`${notice.kind}Text`] }
  const words = { title: notices[`${notice.kind}Title`], text: notices[`${notice.kind}Text`] }
  if ('seconds' in notice) return { ...words, text: fill(words.text, { seconds: notice.seconds }) }
  if ('checkedAt' in notice) return { ...words, advice: notices[`${notice.kind}Advice`] }
  return notice.kind === 'chain' && notice.tapped ? { ...words, more: notices.chainTapText } : words
}

/** Lists chip and on-chain state on lines of their own where the chip was checked. */
function factsOf(results: Texts['results'], notice: Notice): readonly Fact[] {
  if (!('checkedAt' in notice)) return []
  const { chip, chipUnbound, chipCounterfeit, chipOther, state, stateUnregistered, stateUnread } = results
  if (notice.kind === 'unbound')
    return [
      { name: chip, value: fill(chipUnbound, { tap: code(String(notice.counter)) }), mark: 'yes' },
      { name: state, value: stateUnregistered, mark: 'open' },
    ]
  return [
    { name: chip, value: notice.kind === 'other' ? chipOther : chipCounterfeit, mark: 'no' },
    { name: state, value: stateUnread, mark: 'open' },
  ]
}
