/**
 * The page of one item: the passport of a tap, or the on-chain record, which proves nothing about the item at hand (spec §4.5, §4.6). Below
 * the result stand the cards of the product, its history, its owner, its link, and the ways to check all of it.
 */
import type { LifecycleState, Untrusted, Verdict } from '@touchstone/verdict'
import { code, row, supplierText, textsIn, timeElement, type PageContext } from './context.ts'
import { fill, html, jsonBlock, type Html } from './html.ts'
import type { IconName } from './icons.ts'
import { countryName, type Texts } from './languages.ts'
import { documentOf } from './layout.ts'
import { qrCode } from './qr.ts'
import { reportAlarm, resultCard, stateFact, type Fact, type ReportKind, type Result, type Tone } from './result.ts'
import { searchCard, tapCard } from './search.ts'

/** The outcome of the tap in the address. Only `tapped` means that the chip is present. */
export type TapView =
  | { readonly kind: 'tapped'; readonly counter: number; readonly windowSeconds: number }
  | { readonly kind: 'untapped' | 'incomplete' | 'replayed' }

/** `at` in unix seconds; `transaction` is 32 bytes of hex. */
export type TimelineEntry = {
  readonly kind: TimelineKind
  /** The new state of `stateChanged`. */
  readonly state?: Exclude<LifecycleState, 'NONE'> | undefined
  readonly at: number | null
  readonly block: number
  readonly transaction: string
}

export type TimelineKind = keyof Texts['events']

export type ItemView = {
  readonly tap: TapView
  readonly verdict: Verdict
  /** Supplier text, cleaned; empty unless it matched the hash on the chain. */
  readonly product: Omit<Untrusted, '_warning'>
  readonly metadata: 'match' | 'mismatch' | 'none'
  /** ISO 3166-1 code of the country that `product.origin` names. */
  readonly country?: string | undefined
  readonly item: { readonly gtin: string; readonly serial: string } | null
  /** Reasons of a flag; empty when the item is not flagged. */
  readonly reports: readonly ReportKind[]
  /** The tag reports an opened seal. */
  readonly tampered: boolean
  readonly owner: 'claimed' | 'unclaimed' | 'closed'
  /** Unix seconds by the service's clock. */
  readonly checkedAt: number
  /** The item's page as a full URL and as a path, the keyless verdict as both. */
  readonly link: string
  readonly path: string
  readonly verdictLink: string
  readonly verdictPath: string
  /** Oldest first; null when the history is not certain. */
  readonly history: readonly TimelineEntry[] | null
  /** The passport as JSON, on a tapped page. */
  readonly passport: string | null
  /** Whether the passport also comes signed. */
  readonly signed: boolean
  /** The provider that the page's script may ask; null: none. */
  readonly publicRpcUrl: string | null
  /** A block explorer, such as `https://sepolia.basescan.org`; null: none. */
  readonly explorerUrl: string | null
}

/** Returns the document. `passport` is left out when the page would grow beyond `maxBytes`. */
export function itemPage(context: PageContext, view: ItemView, maxBytes = 50_000): string {
  const page = render(context, view)
  return Buffer.byteLength(page) < maxBytes || view.passport === null
    ? page
    : render(context, { ...view, passport: null })
}

function render(context: PageContext, view: ItemView): string {
  const { tap, path, link } = view
  const isTapped = tap.kind === 'tapped'
  const kind = resultKind(view)
  const result = resultOf(textsIn(context), kind, view)
  const alarm = reportAlarm(context, view.reports)
  return documentOf(context, {
    title: alarm?.title ?? result.title,
    path,
    alarm: alarm?.html,
    links: html`<link rel="canonical" href="${link}" />`,
    tap: isTapped ? 'tapped' : undefined,
    windowSeconds: isTapped ? tap.windowSeconds : undefined,
    body: html`${resultCard(context, { ...result, behindAlarm: alarm !== undefined })}
      ${view.tampered && kind !== 'tampered' && sealNotice(textsIn(context))} ${!isTapped && tapCard(context)}
      <div class="columns">
        <div>${productCard(context, view)} ${historyCard(context, view)}</div>
        <div>${ownershipCard(context, view)} ${shareCard(context, view)}</div>
      </div>
      ${checkCard(context, view)} ${!isTapped && searchCard(context)}`,
  })
}

const looks = {
  genuine: { tone: 'good', icon: 'genuine', text: 'genuineText' },
  reported: { tone: 'plain', icon: 'genuine', text: 'genuineText' },
  recycled: { tone: 'ended', icon: 'closed', text: 'recycledText' },
  tampered: { tone: 'warn', icon: 'alarm', text: 'sealText' },
  untapped: { tone: 'plain', icon: 'record', text: 'untappedText' },
  incomplete: { tone: 'warn', icon: 'tap', text: 'incompleteText', more: 'recordOnly' },
  replayed: { tone: 'warn', icon: 'again', text: 'replayedText', more: 'recordOnly' },
} as const satisfies Record<string, { tone: Tone; icon: IconName; text: keyof Texts['results']; more?: 'recordOnly' }>

function resultKind({ tap, verdict, reports, tampered }: ItemView): keyof typeof looks {
  if (tap.kind !== 'tapped') return tap.kind
  if (reports.length > 0 || verdict.flagged) return 'reported'
  if (verdict.state === 'RECYCLED') return 'recycled'
  return tampered ? 'tampered' : 'genuine'
}

function resultOf({ results, states }: Texts, kind: keyof typeof looks, view: ItemView): Result {
  const { tap, verdict, checkedAt } = view
  const { tone, icon, text, ...look } = looks[kind]
  return {
    tone,
    icon,
    title: results[`${kind}Title`],
    text: results[text],
    more: 'more' in look ? results[look.more] : undefined,
    facts: [chipFact(results, tap), stateFact({ results, states }, verdict, tap.kind === 'tapped')],
    checkedAt,
    block: verdict.chainRef.block_number,
  }
}

function chipFact(results: Texts['results'], tap: ItemView['tap']): Fact {
  const name = results.chip
  if (tap.kind === 'tapped')
    return { name, value: fill(results.chipPresent, { tap: code(String(tap.counter)) }), mark: 'yes' }
  const { chipUntapped: untapped, chipIncomplete: incomplete, chipReplayed: replayed } = results
  return { name, value: { untapped, incomplete, replayed }[tap.kind], mark: 'open' }
}

function sealNotice({ results }: Texts): Html {
  return html`<div class="warning wide">
    <h2>${results.sealTitle}</h2>
    <p>${results.sealText}</p>
  </div>`
}

/** The page cuts a longer description, in code points; the passport holds all of it. */
const maxDescription = 1_500

/** The product as its maker describes it: cleaned text in elements of its own, marked as not checked (spec §2.3). */
function productCard(context: PageContext, view: ItemView): Html {
  const texts = textsIn(context).product
  const { product, metadata, country, item, verdict } = view
  const { name, brand, sku, size, origin, image, description } = product
  const tokenId = verdict.token_id
  const shortId = tokenId.length <= 20 ? tokenId : `${tokenId.slice(0, 8)}…${tokenId.slice(-8)}`
  return html`<section class="card product" aria-labelledby="product">
    <h2 id="product" class="eyebrow">${texts.title}</h2>
    <p class="name">${name === undefined ? fill(texts.unnamed, { token: code(shortId) }) : supplierText(name)}</p>
    ${metadata === 'match' && html`<p class="note">${texts.note}</p>`}
    ${metadata === 'none' && html`<p class="note">${texts.noText}</p>`}
    ${
      metadata === 'mismatch' &&
      html`<div class="warning">
        <h3>${texts.withheldTitle}</h3>
        <p>${texts.withheldText}</p>
      </div>`
    }
    ${description !== undefined && html`<p class="description">${supplierText(cut(description))}</p>`}
    <dl class="rows">
      ${row(texts.brand, brand && supplierText(brand))} ${row(texts.model, sku && supplierText(sku))}
      ${row(texts.size, size && supplierText(size))}
      ${row(texts.origin, origin && originText(context, origin, country))}
      ${row(texts.picture, image && pictureLink(texts.pictureLink, image))} ${row(texts.gtin, item && code(item.gtin))}
      ${row(texts.serial, item && code(item.serial))} ${row(texts.token, code(tokenId))}
    </dl>
  </section>`
}

function cut(text: string): string {
  const points = Array.from(text)
  if (points.length <= maxDescription) return text
  const kept = points.slice(0, maxDescription - 1).join('')
  return `${kept.trimEnd()}…`
}

/** Writes the maker's word unchanged, and the country that it names in the visitor's language. */
function originText(context: PageContext, origin: string, code: string | undefined): Html {
  const country = code === undefined ? undefined : countryName(context.language, code)
  return country === undefined || country === origin
    ? supplierText(origin)
    : html`${supplierText(origin)} <span class="meaning">${country}</span>`
}

/** The page never loads the picture: following the link shows its host the visitor's address and nothing more. */
function pictureLink(text: string, image: string): Html {
  if (!image.startsWith('https:')) return code(image)
  const label = fill(text, { host: code(URL.parse(image)?.host ?? '') })
  return html`<a href="${image}" rel="noreferrer noopener nofollow">${label}</a>`
}

/** A page has room for so many events: the first ones show the item's origin, the last ones its present state. */
const [firstEvents, lastEvents] = [5, 20]

/** The timeline holds time with zone, block and transaction of each event (spec §2.5, §3). It names no account. */
function historyCard(context: PageContext, { history, explorerUrl }: ItemView): Html {
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

/** Shows claimed or not, nothing more: a commitment to an owner is personal data. */
function ownershipCard(context: PageContext, { owner }: ItemView): Html {
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

/** The link to keep, and the passport as data (spec §4.6). */
function shareCard(context: PageContext, { link, passport, signed, verdict, checkedAt }: ItemView): Html {
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
        <p>${item.passport} ${!signed && item.unsigned}</p>
        <p class="buttons"><button type="button" data-download="passport" hidden>${item.download}</button></p>
        ${jsonBlock('passport', 'application/ld+json', passport)}
      </div>`
    }
  </section>`
}

/** The card shows how anyone repeats the result without this service: contract, block, commands, a recheck in the browser (spec §1, §2.2). */
function checkCard(context: PageContext, view: ItemView): Html {
  const { check, product, script } = textsIn(context)
  const { verdict, verdictLink, publicRpcUrl } = view
  const { contract, token_id, block_number, block_hash } = verdict.chainRef
  const rpc = publicRpcUrl ?? 'RPC_URL'
  const cast = `cast call ${contract} "getAsset(uint256)(address,uint64,uint8,uint8,uint16)" ${token_id} --block ${block_number} --rpc-url ${rpc}`
  const npx = `npx touchstone verify ${verdictLink} --rpc ${rpc} --contract ${contract}`
  return html`<section class="card" aria-labelledby="check">
    <h2 id="check">${check.title}</h2>
    <p>${check.text}</p>
    <dl class="rows">
      ${row(check.contract, code(contract))} ${row(product.token, code(token_id))}
      ${row(check.block, code(String(block_number)))} ${row(check.blockHash, code(block_hash))}
    </dl>
    <p><a href="${verdictLink}">${check.verdictLink}</a></p>
    <div class="ways">
      <div>
        ${command('cast', check.cast, cast, check.copy)} ${command('npx', check.verify, npx, check.copy)}
        <p class="hint">${fill(check.commandHint, { place: code(rpc) })}</p>
      </div>
      <div>${publicRpcUrl !== null && recheckForm(context, view, publicRpcUrl)} ${ownerForm(context, view)}</div>
    </div>
    ${jsonBlock('texts', 'application/json', JSON.stringify(script))}
  </section>`
}

function command(id: string, label: string, line: string, copy: string): Html {
  return html`<figure class="command">
    <figcaption id="${id}-label">${label}</figcaption>
    <pre tabindex="0" role="region" aria-labelledby="${id}-label" dir="ltr"><code id="${id}">${line}</code></pre>
    <button type="button" data-copy="${id}" aria-describedby="${id}-label" hidden>${copy}</button>
  </figure>`
}

function recheckForm(context: PageContext, { verdict, verdictPath }: ItemView, publicRpcUrl: string): Html {
  const { check } = textsIn(context)
  const { chainRef, state, flagged } = verdict
  return tool({
    data: html`data-recheck="${verdictPath}" data-contract="${chainRef.contract}" data-state="${state}"
    data-flagged="${String(flagged)}"`,
    before: html`<h3>${check.recheck}</h3>
      <p>${check.recheckText}</p>`,
    name: 'provider',
    label: check.recheckProvider,
    attributes: html`type="url" value="${publicRpcUrl}"`,
    hint: fill(check.recheckHint, { origin: code(new URL(publicRpcUrl).origin) }),
    button: check.recheckButton,
  })
}

function ownerForm(context: PageContext, { verdictPath }: ItemView): Html {
  const { check } = textsIn(context)
  return tool({
    data: html`data-owner="${verdictPath}"`,
    before: html`<h3>${check.owner}</h3>`,
    name: 'address',
    label: check.ownerLabel,
    attributes: html`placeholder="0x…" maxlength="42"`,
    hint: check.ownerText,
    button: check.ownerButton,
  })
}

type Tool = {
  readonly data: Html
  readonly before: Html
  readonly name: string
  readonly label: string
  readonly attributes: Html
  readonly hint: Html | string
  readonly button: string
}

/** Writes a form of one field that only the script can run, so that it is hidden until there is one. */
function tool({ data, before, name, label, attributes, hint, button }: Tool): Html {
  return html`<form class="tool" ${data} novalidate hidden>
    ${before}
    <label for="${name}">${label}</label>
    <input
      id="${name}"
      name="${name}"
      dir="ltr"
      ${attributes}
      aria-describedby="${name}-hint"
      spellcheck="false"
      autocomplete="off"
    />
    <p class="hint" id="${name}-hint">${hint}</p>
    <button>${button}</button>
    <div role="status" class="outcome"></div>
  </form>`
}
