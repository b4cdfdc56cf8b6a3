/** The timeline of an item from the contract's events: time with zone, block, transaction (spec §2.5, §3). It names no account. */
import { code, textsIn, timeElement, type PageContext } from '../context.ts'
import { fill, html, type Html } from '../html.ts'
import type { ItemView, TimelineEntry } from '../item-view.ts'

/** A page has room for so many events: the first ones show the item's origin, the last ones its present state. */
const [firstEvents, lastEvents] = [5, 20]

export function historyCard(
  context: PageContext,
  { history, explorerUrl }: Pick<ItemView, 'history' | 'explorerUrl'>,
): Html {
  const { item } = textsIn(context)
  const isCut = history !== null && history.length > firstEvents + lastEvents
  const entries = (events: readonly TimelineEntry[]) => events.map((event) => entryLine(context, event, explorerUrl))
  return html`<section class="card" aria-labelledby="history">
    <h2 id="history">${item.history}</h2>
    ${
      history === null
        ? html`<p>${item.historyMissing}</p>`
        : html`<ol class="timeline">
            ${entries(isCut ? history.slice(0, firstEvents) : history)}${isCut && html`<li class="gap">…</li>`}${isCut && entries(history.slice(-lastEvents))}
          </ol>`
    }
  </section>`
}

function entryLine(context: PageContext, event: TimelineEntry, explorerUrl: string | null): Html {
  const { check, events, states } = textsIn(context)
  const { kind, state, at, block, transaction } = event
  const label = fill(events[kind], { state: state === undefined ? '' : states[state].name })
  const hash = code(`${transaction.slice(0, 10)}…${transaction.slice(-8)}`)
  const proof =
    explorerUrl === null ? hash : html`<a href="${explorerUrl}/tx/${transaction}" rel="noreferrer noopener">${hash}</a>`
  return html`<li>
    <strong>${label}</strong>${at !== null && html` <span class="when">${timeElement(context, at)}</span>`}
    <span class="proof"
      ><span>${check.block} ${code(String(block))}</span> <span>${check.transaction} ${proof}</span></span
    >
  </li>`
}
