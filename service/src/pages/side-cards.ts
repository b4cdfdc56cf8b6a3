/** Beside the result: ownership without names, the link to keep, the passport as data (spec §2.8, §4.6). */
import { code, textsIn, timeElement, type PageContext } from './context.ts'
import { fill, html, jsonBlock, type Html } from './html.ts'
import type { ItemView } from './item-view.ts'

/** Claimed or not, nothing more: a commitment to an owner is personal data. */
export function ownershipCard(context: PageContext, { owner }: Pick<ItemView, 'owner'>): Html {
  const texts = textsIn(context)
  const sentence = { claimed: texts.ownerClaimed, unclaimed: texts.ownerUnclaimed, closed: texts.ownerClosed }[owner]
  const help = [
    [texts.claimHow, texts.claimText],
    [texts.transferHow, texts.transferText],
    [texts.lossHow, texts.lossText],
  ] as const
  const wanted = { claimed: help.slice(1), unclaimed: help.slice(0, 1), closed: [] }[owner]
  return html`<section class="card" aria-labelledby="ownership">
    <h2 id="ownership">${texts.ownership}</h2>
    <p>${sentence}</p>
    ${wanted.map(
      ([question, answer]) =>
        html`<details>
          <summary>${question}</summary>
          <p>${answer}</p>
        </details>`,
    )}
  </section>`
}

type ShareView = Pick<ItemView, 'link' | 'qr' | 'passport' | 'verdict' | 'checkedAt'>

export function shareCard(context: PageContext, { link, qr, passport, verdict, checkedAt }: ShareView): Html {
  const texts = textsIn(context)
  const printed = fill(texts.printed, {
    block: code(String(verdict.chainRef.block_number)),
    time: timeElement(context, checkedAt),
  })
  return html`<section class="card share" aria-labelledby="share">
    <h2 id="share">${texts.share}</h2>
    <div class="qr">${qr}</div>
    <p class="link"><code dir="ltr" id="link">${link}</code></p>
    <p class="hint">${texts.shareText}</p>
    <p class="buttons">
      <button type="button" data-copy="link" hidden>${texts.copyLink}</button>
      <button type="button" data-share="${link}" hidden>${texts.shareButton}</button>
      <button type="button" data-print hidden>${texts.print}</button>
    </p>
    <p class="printed">${printed}</p>
    ${
      passport !== null &&
      html`<div class="passport">
        <p>${texts.passport} ${texts.unsigned}</p>
        <p class="buttons"><button type="button" data-download="passport" hidden>${texts.download}</button></p>
        ${jsonBlock('passport', 'application/ld+json', passport)}
      </div>`
    }
  </section>`
}

export function tapCard(context: PageContext): Html {
  const texts = textsIn(context)
  return html`<section class="card tap" aria-labelledby="tap">
    <h2 id="tap">${texts.tapHow}</h2>
    <p>${texts.tapWhere}</p>
    <div class="phones">
      <div>
        <h3>Android</h3>
        <p>${texts.tapAndroid}</p>
      </div>
      <div>
        <h3>iPhone</h3>
        <p>${texts.tapIphone}</p>
      </div>
    </div>
  </section>`
}
