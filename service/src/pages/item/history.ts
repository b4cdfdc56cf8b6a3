/** The history of an item in words, newest last. Blocks and transactions stand in the folded proof; no account is named (spec §2.5, §3). */
import { code, dateElement, textsIn, type PageContext } from '../context.ts'
import { fill, html, type Html } from '../html.ts'
import type { ItemView, TimelineEntry } from './view.ts'

/** A page has room for so many events. The first ones show the item's origin, the last ones its present state. */
const [firstEvents, lastEvents] = [5, 20]

export function historyCard(context: PageContext, { history }: ItemView): Html {
  const { item } = textsIn(context)
  return html`<section class="card" aria-labelledby="history">
    <h2 id="history">${item.history}</h2>
    <p class="lead">${history === null ? item.historyMissing : item.historyFrom}</p>
    ${
      history !== null &&
      html`<ol class="timeline">
        ${shortened(history).map((event, index, all) =>
          event === null
            ? html`<li class="gap">…</li>`
            : html`<li${index === all.length - 1 && html` class="now"`}>
                <h3>${labelOf(context, event)}</h3>
                <p class="when">
                  ${event.at !== null && dateElement(context, event.at)}${index === all.length - 1 && html`<span class="pill">${item.now}</span>`}
                </p>
              </li>`,
        )}
      </ol>`
    }
  </section>`
}

/** The same events with block and transaction, for the folded proof. */
export function eventRows(context: PageContext, { history, explorerUrl }: ItemView): Html | false {
  const { proof } = textsIn(context)
  if (history === null || history.length === 0) return false
  return html`<ol class="events">
    ${shortened(history).map((event) => {
      if (event === null) return html`<li>…</li>`
      const { transaction, block } = event
      const hash = code(`${transaction.slice(0, 10)}…${transaction.slice(-8)}`)
      const place =
        explorerUrl === null
          ? hash
          : html`<a href="${explorerUrl}/tx/${transaction}" rel="noreferrer noopener">${hash}</a>`
      return html`<li>
        ${labelOf(context, event)}: ${proof.block} ${code(String(block))}, ${proof.transaction} ${place}
      </li>`
    })}
  </ol>`
}

function shortened(history: readonly TimelineEntry[]): readonly (TimelineEntry | null)[] {
  return history.length > firstEvents + lastEvents
    ? [...history.slice(0, firstEvents), null, ...history.slice(-lastEvents)]
    : history
}

function labelOf(context: PageContext, { kind, state }: TimelineEntry): Html {
  const { events, states } = textsIn(context)
  return fill(events[kind], { state: state === undefined ? '' : states[state] })
}
