/** Ownership of an item: claimed or not, nothing more, because a commitment to an owner is personal data (spec §2.1). */
import { fold, summary, textsIn, type PageContext } from '../context.ts'
import { fill, html, type Html } from '../html.ts'
import { icon } from '../icons.ts'
import { tool } from '../item/proof.ts'
import type { ItemView } from '../item/view.ts'
import type { Places } from '../verdict/card.ts'
import { reportActs } from './reports.ts'
import { claimPath, offersPrefix, transferPath, walletData, walletForm } from './wallet-form.ts'

/** Lists what can be done in the item's state; what cannot be done is left out. */
export function ownershipCard(context: PageContext, view: ItemView, places: Places): Html | false {
  const { item } = textsIn(context)
  const { owner, verdict, reports, tampered, claimTicket, transfers } = view
  if (owner === 'unknown') return false
  const isReported = verdict.flagged || reports.length > 0
  const found = fold('found', item.foundHow, item.foundWhat, fill(item.foundText, places))
  const reporting = reportActs(context, view, { isReported, places })
  const acts = {
    claimed: isReported ? [...reporting, found] : [...transferActs(context, view), ...reporting, found],
    unclaimed: verdict.state === 'ACTIVATED' && !isReported && !tampered ? [claimAct(context, view, places)] : [],
    closed: [],
  }[owner]
  const sentence = { claimed: item.ownerClaimed, unclaimed: item.ownerUnclaimed, closed: item.ownerClosed }[owner]
  const hasTransfers = transfers !== null && owner === 'claimed' && !isReported
  const hasForms = claimTicket !== null || hasTransfers || view.ownerReports !== null
  return html`<section class="card" aria-labelledby="ownership">
    <h2 id="ownership">${item.ownership}</h2>
    <p class="lead">${sentence}</p>
    ${(acts.length > 0 || owner === 'claimed') && html`<div class="acts">${owner === 'claimed' && ownerTest(context, view)}${acts}</div>`}
    ${hasForms && walletData(context, view)}
  </section>`
}

function claimAct(context: PageContext, { claimTicket, verdictPath, theme, passkeys }: ItemView, places: Places): Html {
  const { item, claim } = textsIn(context)
  const { claim: url } = theme?.links ?? {}
  const form =
    claimTicket !== null &&
    walletForm(context, {
      step: 'claim',
      data: html`data-path="${claimPath}" data-ticket="${claimTicket}" data-record="${verdictPath}"`,
      text: claim.text,
      button: claim.button,
      passkeys,
    })
  return fold(
    'key',
    item.claimHow,
    item.claimWhat,
    html`${form || html`<p>${fill(item.claimText, places)}</p>`}
    ${url !== undefined && html`<p class="btns"><a class="btn quiet" href="${url}" rel="noreferrer noopener">${fill(item.claimLink, places)}</a></p>`}`,
  )
}

/** Offering, withdrawing and receiving. An offer needs a fresh tap; the address of a wallet needs none. */
function transferActs(context: PageContext, { transfers, passkeys }: ItemView): readonly Html[] {
  const { item, transfer } = textsIn(context)
  if (transfers === null) return [fold('give', item.transferHow, item.transferWhat, item.transferText)]
  const receive = fold(
    'swap',
    transfer.receiveHow,
    transfer.receiveWhat,
    walletForm(context, {
      step: 'address',
      data: html``,
      text: transfer.receiveText,
      button: transfer.receiveButton,
      passkeys,
    }),
  )
  const { ticket } = transfers
  if (ticket === null) {
    const text = html`<p>${item.transferText} ${transfer.tapFirst}</p>`
    return [fold('give', item.transferHow, item.transferWhat, text), receive]
  }
  const step = {
    data: html`data-path="${transferPath}" data-ticket="${ticket}" data-offers="${offersPrefix}"`,
    passkeys,
  }
  const offer = walletForm(context, {
    ...step,
    step: 'offer',
    text: html`${transfer.offerText} ${item.transferText}`,
    button: transfer.offerButton,
    fields: recipientField(context),
  })
  const withdraw = walletForm(context, {
    ...step,
    step: 'withdraw',
    text: transfer.voidText,
    button: transfer.withdrawButton,
  })
  return [
    fold('give', item.transferHow, item.transferWhat, offer),
    fold('retry', transfer.voidHow, transfer.voidWhat, withdraw),
    receive,
  ]
}

/** The address of the recipient is typed, or read from a code. It is hidden until there is a script, because a browser would send it in the URL. */
function recipientField(context: PageContext): Html {
  const { transfer, scan } = textsIn(context)
  return html`<label for="to" data-scripted hidden>${transfer.to}</label>
    <input
      id="to"
      data-scripted
      hidden
      name="to"
      dir="ltr"
      placeholder="0x…"
      maxlength="200"
      aria-describedby="to-hint"
      autocomplete="off"
      spellcheck="false"
      autocapitalize="off"
    />
    <p class="hint" id="to-hint" data-scripted hidden>${transfer.toHint}</p>
    <button type="button" class="btn quiet" data-scan-to hidden>
      ${icon('camera')}<span>${transfer.scanTo}</span>
    </button>
    <div class="viewer" hidden>
      <video muted playsinline aria-hidden="true"></video>
      <button type="button" class="btn quiet" data-stop>${scan.stop}</button>
    </div>`
}

/** A form that only the script can run, so that it is hidden until there is one. */
function ownerTest(context: PageContext, { verdictPath }: ItemView): Html {
  const { proof, item } = textsIn(context)
  return html`<details data-scripted hidden>
    ${summary('lock', item.testOwner, item.testOwnerHow)}
    <div>
      ${tool({
        data: html`data-owner="${verdictPath}"`,
        name: 'address',
        label: proof.ownerLabel,
        attributes: html`placeholder="0x…" maxlength="200"`,
        hint: proof.ownerText,
        button: proof.ownerButton,
      })}
    </div>
  </details>`
}
