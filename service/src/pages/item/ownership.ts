/** Ownership and what to keep: claimed or not, nothing more, because a commitment to an owner is personal data (spec §2.1). */
import { code, textsIn, timeElement, type PageContext } from '../context.ts'
import { fill, html, jsonBlock, type Html } from '../html.ts'
import { icon } from '../icons.ts'
import { qrCode } from '../qr.ts'
import type { Places } from '../verdict/card.ts'
import { fold } from './about.ts'
import type { ItemView } from './view.ts'
import { tool } from './proof.ts'

/** Lists what can be done in the item's state; what cannot be done is left out. */
export function ownershipCard(context: PageContext, view: ItemView, places: Places): Html | false {
  const { item } = textsIn(context)
  const { owner, verdict, reports, theme } = view
  const isReported = verdict.flagged || reports.length > 0
  const claimUrl = theme?.links.claim
  const claim = fold(
    'key',
    item.claimHow,
    item.claimWhat,
    html`${claimForm(context, view) || html`<p>${fill(item.claimText, places)}</p>`}
    ${claimUrl !== undefined && html`<p><a href="${claimUrl}" rel="noreferrer noopener">${fill(item.claimLink, places)}</a></p>`}`,
  )
  const transfer = fold('give', item.transferHow, item.transferWhat, item.transferText)
  const loss = fold('bell', item.lossHow, item.lossWhat, fill(item.lossText, places))
  const found = fold('found', item.foundHow, item.foundWhat, fill(item.foundText, places))
  const acts = {
    claimed: isReported ? [found] : [transfer, loss, found],
    unclaimed: verdict.state === 'ACTIVATED' && !isReported ? [claim] : [],
    closed: [],
  }[owner]
  const sentence = { claimed: item.ownerClaimed, unclaimed: item.ownerUnclaimed, closed: item.ownerClosed }[owner]
  return html`<section class="card" aria-labelledby="ownership">
    <h2 id="ownership">${item.ownership}</h2>
    <p class="lead">${sentence}</p>
    ${(acts.length > 0 || owner === 'claimed') && html`<div class="acts">${owner === 'claimed' && ownerTest(context, view)}${acts}</div>`}
  </section>`
}

/** Path that claims are sent to. */
export const claimPath = '/claim'

/** Lets a wallet claim the item. Without a script it says what a claim needs. */
function claimForm(context: PageContext, { claimTicket, verdictPath }: ItemView): Html | false {
  const { claim } = textsIn(context)
  if (claimTicket === null) return false
  return html`<form class="tool" data-claim="${claimPath}" data-ticket="${claimTicket}" data-record="${verdictPath}">
    <p>${claim.text}</p>
    <p class="buttons"></p>
    <div role="status" class="outcome">${claim.none}</div>
    ${jsonBlock('claim-texts', 'application/json', JSON.stringify(claim))}
  </form>`
}

/** A form that only the script can run, so that it is hidden until there is one. */
function ownerTest(context: PageContext, { verdictPath }: ItemView): Html {
  const { check, item } = textsIn(context)
  return html`<details data-scripted hidden>
    <summary>
      ${icon('lock')}<span><b>${item.testOwner}</b><small>${item.testOwnerHow}</small></span
      >${icon('down', 'turn')}
    </summary>
    <div>
      ${tool({
        data: html`data-owner="${verdictPath}"`,
        name: 'address',
        label: check.ownerLabel,
        attributes: html`placeholder="0x…" maxlength="42"`,
        hint: check.ownerText,
        button: check.ownerButton,
      })}
    </div>
  </details>`
}

/** The link to keep, and the passport as data (spec §4.6). */
export function shareCard(context: PageContext, { link, passport, verdict, checkedAt, signed }: ItemView): Html {
  const { item } = textsIn(context)
  const block = code(String(verdict.chainRef.block_number))
  return html`<section class="card share" aria-labelledby="share">
    <h2 id="share">${item.share}</h2>
    <div class="qr">${qrCode(link, item.qrLabel.replace('{url}', link))}</div>
    <p class="link"><code dir="ltr" id="link">${link}</code></p>
    <p class="hint">${item.shareText}</p>
    <p class="buttons">
      <button type="button" data-copy="link" hidden>${item.copyLink}</button>
      <button type="button" data-share="${link}" hidden>${item.shareButton}</button>
      <button type="button" data-print hidden>${item.print}</button>
    </p>
    <p class="printed">${fill(item.printed, { block, time: timeElement(context, checkedAt) })}</p>
    ${
      passport !== null &&
      html`<div class="passport">
        <p class="hint">${item.passport} ${!signed && item.unsigned}</p>
        <p class="buttons"><button type="button" data-download="passport" hidden>${item.download}</button></p>
        ${jsonBlock('passport', 'application/ld+json', passport)}
      </div>`
    }
  </section>`
}
