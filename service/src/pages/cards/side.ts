/** The cards beside the product: ownership without names, the link to keep, the passport as data (spec §2.8, §4.6). */
import { code, textsIn, timeElement, type PageContext } from '../context.ts'
import { fill, html, jsonBlock, type Html } from '../html.ts'
import type { ItemView } from '../item-view.ts'
import { qrCode } from '../qr.ts'

/** Shows claimed or not, nothing more: a commitment to an owner is personal data. */
export function ownershipCard(context: PageContext, { owner }: Pick<ItemView, 'owner'>): Html {
  const { item } = textsIn(context)
  const claim = [item.claimHow, item.claimText] as const
  const transfer = [item.transferHow, item.transferText] as const
  const loss = [item.lossHow, item.lossText] as const
  const { sentence, help } = {
    claimed: { sentence: item.ownerClaimed, help: [transfer, loss] },
    unclaimed: { sentence: item.ownerUnclaimed, help: [claim] },
    closed: { sentence: item.ownerClosed, help: [] },
  }[owner]
  return html`<section class="card" aria-labelledby="ownership">
    <h2 id="ownership">${item.ownership}</h2>
    <p>${sentence}</p>
    ${help.map(
      ([question, answer]) =>
        html`<details>
          <summary>${question}</summary>
          <p>${answer}</p>
        </details>`,
    )}
  </section>`
}

type ShareView = Pick<ItemView, 'link' | 'passport' | 'verdict' | 'checkedAt'>

export function shareCard(context: PageContext, { link, passport, verdict, checkedAt }: ShareView): Html {
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
        <p>${item.passport} ${item.unsigned}</p>
        <p class="buttons"><button type="button" data-download="passport" hidden>${item.download}</button></p>
        ${jsonBlock('passport', 'application/ld+json', passport)}
      </div>`
    }
  </section>`
}
