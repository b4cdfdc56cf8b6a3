/** Pages without an item: taps that lead to none, links that cannot be read, faults. None of them guesses a verdict (spec §4.4, §7). */
import { code, hrefIn, textsIn, type PageContext } from './context.ts'
import { fill, html, type Html } from './html.ts'
import type { IconName } from './icons.ts'
import { documentOf } from './layout.ts'
import { adviceCard, resultCard, type Fact, type Tone } from './result.ts'
import { searchCard } from './search-card.ts'
import type { Texts } from './texts/en.ts'

export type Notice =
  | { readonly kind: 'counterfeit' | 'other'; readonly checkedAt: number; readonly record?: string | undefined }
  | { readonly kind: 'unbound'; readonly counter: number; readonly checkedAt: number; readonly block: number }
  | { readonly kind: 'challenge' | 'limited'; readonly seconds: number }
  | { readonly kind: 'bad-link' | 'bad-token' | 'unknown' | 'prefetch' }
  /** `tapped`: the visit carried a tap, which stays valid for another try. */
  | { readonly kind: 'chain' | 'fault'; readonly tapped: boolean }
  /** `record`: path of the untapped page. */
  | { readonly kind: 'not-configured'; readonly record: string }

export type NoticeKind = Notice['kind']

/** `path` is the page's own path, without query. */
export function noticePage(context: PageContext, path: string, notice: Notice): string {
  const texts = textsIn(context)
  const look = looks[notice.kind]
  const { title, text, more, advice = [] } = wordsOf(texts, notice)
  const checkedAt = 'checkedAt' in notice ? notice.checkedAt : undefined
  const block = notice.kind === 'unbound' ? notice.block : null
  const record = 'record' in notice ? notice.record : undefined
  return documentOf(context, {
    title,
    path,
    tap: look.retry ? 'retry' : undefined,
    body: html`${resultCard(context, { tone: look.tone, icon: look.icon, title, text, more, facts: factsOf(texts, notice), checkedAt, block })}
    ${look.retry && html`<p class="again"><a class="button" href="" data-retry>${texts.tryAgain}</a></p>`}
    ${advice.length > 0 && adviceCard(context, advice)}
    ${record !== undefined && html`<p class="again"><a href="${hrefIn(context, record)}">${texts.openRecord}</a></p>`}
    ${look.search && searchCard(context)}`,
  })
}

type Look = { readonly tone: Tone; readonly icon: IconName; readonly retry?: true; readonly search?: true }

const looks: Readonly<Record<NoticeKind, Look>> = {
  counterfeit: { tone: 'bad', icon: 'stop' },
  unbound: { tone: 'warn', icon: 'unknown' },
  other: { tone: 'bad', icon: 'apart' },
  challenge: { tone: 'plain', icon: 'tap' },
  'bad-link': { tone: 'warn', icon: 'apart', search: true },
  'bad-token': { tone: 'warn', icon: 'apart', search: true },
  unknown: { tone: 'plain', icon: 'unknown', search: true },
  limited: { tone: 'warn', icon: 'wait', retry: true },
  chain: { tone: 'warn', icon: 'wait', retry: true },
  fault: { tone: 'warn', icon: 'alarm', retry: true },
  'not-configured': { tone: 'warn', icon: 'wait', retry: true },
  prefetch: { tone: 'plain', icon: 'tap' },
}

/** Whether the page holds a search form: its policy must let the form go. */
export function hasSearch(kind: NoticeKind): boolean {
  return looks[kind].search === true
}

type Words = {
  readonly title: string
  readonly text: string | Html
  readonly more?: string
  readonly advice?: readonly string[]
}

function wordsOf(texts: Texts, notice: Notice): Words {
  switch (notice.kind) {
    case 'counterfeit':
      return {
        title: texts.counterfeitTitle,
        text: texts.counterfeitText,
        advice: [texts.counterfeitAdvice1, texts.counterfeitAdvice2, texts.counterfeitAdvice3],
      }
    case 'unbound':
      return {
        title: texts.unboundTitle,
        text: texts.unboundText,
        advice: [texts.unboundAdvice1, texts.unboundAdvice2],
      }
    case 'other':
      return { title: texts.otherTitle, text: texts.otherText, advice: [texts.otherAdvice1, texts.otherAdvice2] }
    case 'challenge':
      return { title: texts.challengeTitle, text: fill(texts.challengeText, { seconds: notice.seconds }) }
    case 'bad-link':
      return { title: texts.badLinkTitle, text: texts.badLinkText }
    case 'bad-token':
      return { title: texts.badLinkTitle, text: texts.badToken }
    case 'unknown':
      return { title: texts.unknownTitle, text: texts.unknownText }
    case 'limited':
      return { title: texts.limitedTitle, text: fill(texts.limitedText, { seconds: notice.seconds }) }
    case 'chain':
      return { title: texts.chainTitle, text: texts.chainText, ...(notice.tapped && { more: texts.chainTapText }) }
    case 'not-configured':
      return { title: texts.notConfiguredTitle, text: texts.notConfiguredText }
    case 'prefetch':
      return { title: texts.prefetchTitle, text: texts.prefetchText }
    case 'fault':
      return { title: texts.faultTitle, text: texts.faultText }
  }
}

/** Chip and chain on lines of their own, wherever a chip was looked at. */
function factsOf(texts: Texts, notice: Notice): readonly Fact[] {
  const { chip, state } = texts
  if (notice.kind === 'unbound')
    return [
      { name: chip, value: fill(texts.chipUnbound, { tap: code(String(notice.counter)) }), mark: 'yes' },
      { name: state, value: texts.stateUnregistered, mark: 'open' },
    ]
  if (notice.kind !== 'counterfeit' && notice.kind !== 'other') return []
  return [
    { name: chip, value: notice.kind === 'other' ? texts.chipOther : texts.chipCounterfeit, mark: 'no' },
    { name: state, value: texts.stateUnread, mark: 'open' },
  ]
}
