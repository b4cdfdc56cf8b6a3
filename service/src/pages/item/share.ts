/**
 * Renders the card of things to keep of an item (spec §4.6). They are its link as a QR code, a print, and the passport
 * as data.
 */
import { certificatePath, checkPath } from '../certificate/check.ts'
import { code, hrefIn, textsIn, timeElement, type PageContext } from '../context.ts'
import { fill, html, jsonBlock, type Html } from '../html.ts'
import { qrCode } from '../qr.ts'
import type { ItemView } from './view.ts'

/** The link to keep, and the passport as data (spec §4.6). */
export function shareCard(context: PageContext, view: ItemView): Html {
  const { item } = textsIn(context)
  const { link, passport, verdict, checkedAt, signed } = view
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
    ${certificateForm(context, view)}
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

/** Asks for the signed certificate of this check. The form works without a script. */
function certificateForm(context: PageContext, { certificateTicket: ticket, wallets }: ItemView): Html | false {
  const { certificate } = textsIn(context)
  if (ticket === null) return false
  return html`<form class="certificate" method="post" action="${certificatePath}?lang=${context.language}">
    <input type="hidden" name="ticket" value="${ticket}" />
    <h3>${certificate.keep}</h3>
    <p class="hint">${certificate.keepText} <a href="${hrefIn(context, checkPath)}">${certificate.checkLink}</a></p>
    <p class="buttons">
      <button name="as" value="pdf">${certificate.pdf}</button>
      <button name="as" value="jwt">${certificate.jwt}</button>
      ${wallets.map((wallet) => html`<button name="as" value="${wallet}">${certificate[wallet]}</button>`)}
    </p>
  </form>`
}
