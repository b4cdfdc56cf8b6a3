/**
 * Renders the page of a standing offer (spec §4.9), which the owner shows and the other side opens. The other side sees
 * what is passed on, and accepts with a wallet. The page proves nothing about the item, because nothing was tapped.
 * Neither account stands on it.
 */
import type { Untrusted } from '@touchstone/verdict'
import { fold, hrefIn, textsIn, timeElement, type PageContext } from '../context.ts'
import { fill, html, jsonBlock, type Html } from '../html.ts'
import { makerWords, numbersOf } from '../item/about.ts'
import { makerFrame } from '../item/frame.ts'
import { documentOf } from '../layout.ts'
import { qrCode } from '../qr.ts'
import type { PageTheme } from '../theme.ts'
import { placesFor, plainVerdict } from '../verdict/card.ts'
import { transferPath, walletData, walletForm } from './wallet-form.ts'
import type { ItemKey } from '../../domain/gs1/serial.ts'

export type OfferPageView = {
  readonly transferId: string
  /** The item is reported: the offer can be ended, not accepted. */
  readonly isHeld: boolean
  /** The tag reports an opened seal: the offer can be accepted, by somebody who knows it. */
  readonly tampered: boolean
  /** Unix seconds at which the offer ends. */
  readonly until: number
  /** Supplier text, cleaned; empty unless it matched the hash on the chain. */
  readonly product: Omit<Untrusted, '_warning'>
  readonly item: ItemKey | null
  readonly tokenId: string
  /** The page itself, as a path and as a full URL. */
  readonly path: string
  readonly link: string
  /** Path of the item's page, and of its keyless verdict. */
  readonly record: string
  readonly verdictPath: string
  /** The brand in the operator's list; null: none. */
  readonly theme: PageTheme | null
  /** Passkeys may sign in place of a wallet. */
  readonly passkeys: boolean
  /** The provider by which a wallet adds the network; null: none. */
  readonly publicRpcUrl: string | null
}

export function offerPage(context: PageContext, view: OfferPageView): string {
  const { transfer, verdict, script } = textsIn(context)
  const { copied, notCopied } = script
  const { isHeld, tampered, path, until, theme } = view
  const time = timeElement(context, until)
  const title = isHeld ? transfer.heldTitle : transfer.title
  return documentOf(context, {
    title: `${title}${theme === null ? '' : `: ${theme.name}`}`,
    path,
    theme,
    field: 'empty',
    body: html`<div class="flow">
      ${plainVerdict({
        tone: isHeld ? 'stop' : 'none',
        title,
        text: isHeld ? transfer.heldText : fill(transfer.say, { time }),
        more: isHeld ? undefined : transfer.proof,
        note: tampered ? verdict.sealOpened : undefined,
        eyebrow: verdict.noProof,
      })}
      ${whatCard(context, view)} ${answersCard(context, view)} ${showCard(context, view)} ${walletData(context, view)}
      ${jsonBlock('texts', 'application/json', JSON.stringify({ copied, notCopied }))}
    </div>`,
  })
}

/** Describes the item by its numbers and in the maker’s words. */
function whatCard(context: PageContext, { product, item, tokenId, record, theme }: OfferPageView): Html {
  const { transfer } = textsIn(context)
  const words = makerWords(context, { product }, false)
  return html`<section class="card product" aria-labelledby="what">
    <h2 id="what">${transfer.what}</h2>
    ${words !== null && makerFrame(context, placesFor(context, { theme }), words)} ${numbersOf(context, item, tokenId)}
    <p class="btns"><a class="btn quiet" href="${hrefIn(context, record)}">${transfer.openItem}</a></p>
  </section>`
}

function answersCard(context: PageContext, { transferId, isHeld, verdictPath, passkeys }: OfferPageView): Html {
  const { transfer } = textsIn(context)
  const data = html`data-path="${transferPath}" data-transfer="${transferId}" data-record="${verdictPath}"`
  const accept = walletForm(context, {
    step: 'accept',
    data,
    text: transfer.acceptText,
    button: transfer.acceptButton,
    passkeys,
  })
  const withdraw = walletForm(context, {
    step: 'withdraw',
    data,
    text: transfer.withdrawText,
    button: transfer.withdrawButton,
    passkeys,
  })
  return html`<section class="card" aria-labelledby="answers">
    <h2 id="answers">${transfer.answers}</h2>
    <div class="acts">
      ${!isHeld && fold('key', transfer.acceptHow, transfer.acceptWhat, accept)}
      ${fold('cross', transfer.withdrawHow, transfer.withdrawWhat, withdraw)}
    </div>
  </section>`
}

/** The link names the offer only: it is no secret. */
function showCard(context: PageContext, { link, verdictPath }: OfferPageView): Html {
  const { transfer, item, notices } = textsIn(context)
  const over = `${notices.offerOverTitle}. ${notices.offerOverText}`
  return html`<section class="card share" aria-labelledby="show">
    <h2 id="show">${transfer.show}</h2>
    <div class="qr">${qrCode(link, item.qrLabel.replace('{url}', link))}</div>
    <p class="link"><code dir="ltr" id="link">${link}</code></p>
    <p class="hint">${transfer.showText}</p>
    <p class="passed" role="status" data-watch="${verdictPath}" data-text="${transfer.passed}" data-over="${over}"></p>
    <p class="buttons">
      <button type="button" data-copy="link" hidden>${item.copyLink}</button>
      <button type="button" data-share="${link}" hidden>${item.shareButton}</button>
    </p>
  </section>`
}
