/** What happened to an item, from the contract's events: time with zone, block, transaction (spec §2.5, §3). No account is named. */
import { code, textsIn, timeElement, type PageContext } from './context.ts'
import { fill, html, type Html } from './html.ts'
import type { ItemView, TimelineEntry } from './item-view.ts'

/** Events that a page has room for: the first ones tell where the item came from, the last ones where it is. */
const firstShown = 5
const lastShown = 20

export function historyCard(
  context: PageContext,
  { history, explorerUrl }: Pick<ItemView, 'history' | 'explorerUrl'>,
): Html {
  const texts = textsIn(context)
  const entry = (it: TimelineEntry) => timelineEntry(context, it, explorerUrl)
  return html`<section class="card" aria-labelledby="history">
    <h2 id="history">${texts.history}</h2>
    ${
      history === null
        ? html`<p>${texts.historyMissing}</p>`
        : html`<ol class="timeline">
            ${shownOf(history).map((it) => (it === 'gap' ? html`<li class="gap">…</li>` : entry(it)))}
          </ol>`
    }
  </section>`
}

function shownOf(history: readonly TimelineEntry[]): readonly (TimelineEntry | 'gap')[] {
  if (history.length <= firstShown + lastShown) return history
  return [...history.slice(0, firstShown), 'gap', ...history.slice(-lastShown)]
}

function timelineEntry(context: PageContext, entry: TimelineEntry, explorerUrl: string | null): Html {
  const texts = textsIn(context)
  const { kind, state, at, block, transaction } = entry
  const label = fill(texts[`event_${kind}`], { state: state === undefined ? '' : texts[state] })
  const hash = code(`${transaction.slice(0, 10)}…${transaction.slice(-8)}`)
  const proof =
    explorerUrl === null ? hash : html`<a href="${explorerUrl}/tx/${transaction}" rel="noreferrer noopener">${hash}</a>`
  return html`<li>
    <strong>${label}</strong>${at !== null && html` <span class="when">${timeElement(context, at)}</span>`}
    <span class="proof"
      ><span>${texts.block} ${code(String(block))}</span> <span>${texts.transaction} ${proof}</span></span
    >
  </li>`
}
