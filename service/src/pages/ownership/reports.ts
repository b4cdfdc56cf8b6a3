/**
 * Loss and theft, reported and lifted by the owner's own wallet (spec §3, FLAGGED). The contract lets the owner of a claimed item and the
 * maker set and clear LOST and STOLEN; the other reports are the maker's alone.
 */
import { fold, textsIn, type PageContext } from '../context.ts'
import { fill, html, type Html } from '../html.ts'
import type { ItemView, OwnerReports } from '../item/view.ts'
import type { Places } from '../verdict/card.ts'
import { networkName as network, walletForm } from './wallet-form.ts'

export function reportActs(
  context: PageContext,
  view: ItemView,
  { isReported, places }: { readonly isReported: boolean; readonly places: Places },
): readonly Html[] {
  const { item, loss } = textsIn(context)
  const { ownerReports: reports } = view
  if (reports === null)
    return isReported ? [] : [fold('bell', item.lossHow, item.lossWhat, fill(item.lossText, places))]
  const { lost, stolen, lift, isMakers } = reports
  const form = (call: OwnerReports['lift'], button: string) =>
    call !== null && walletForm(context, { step: 'call', data: callData(view, reports, call), button, passkeys: false })
  const raise =
    (lost !== null || stolen !== null) &&
    fold(
      'bell',
      item.lossHow,
      item.lossWhat,
      html`<ul>
          ${loss.effects.map((effect) => html`<li>${fill(effect, { ...places, network })}</li>`)}
        </ul>
        ${view.passkeys && html`<p>${fill(loss.passkey, places)}</p>`} ${form(lost, loss.lostButton)}
        ${form(stolen, loss.stolenButton)}`,
    )
  const clear =
    (lift !== null || isMakers) &&
    fold(
      'check',
      loss.liftHow,
      loss.liftWhat,
      html`${lift !== null && html`<p>${fill(loss.liftText, { ...places, network })}</p>`}
      ${isMakers && html`<p>${fill(loss.makers, places)}</p>`} ${form(lift, loss.liftButton)}`,
    )
  return [clear, raise].filter((act) => act !== false)
}

function callData({ verdictPath }: ItemView, { contract }: OwnerReports, call: string): Html {
  return html`data-call="${call}" data-contract="${contract}" data-record="${verdictPath}"`
}
