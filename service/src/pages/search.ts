/** The ways to an item: a tap, its numbers in forms that work without script, a list (spec §4.1, §4.6). */
import { hrefIn, textsIn, type PageContext } from './context.ts'
import { html, type Html } from './html.ts'
import { icon, tapDrawing } from './icons.ts'
import { bulkPath } from './lookup/bulk.ts'

/** The text that was typed before, and the field that was wrong. */
export type SearchView = {
  readonly token?: string | undefined
  readonly gtin?: string | undefined
  readonly serial?: string | undefined
  /** Id of a brand of the operator's list, and the serial that was typed beside it. */
  readonly brand?: string | undefined
  readonly brandSerial?: string | undefined
  readonly wrong?: 'token' | 'gtin' | 'serial' | 'brand' | 'brandSerial' | undefined
}

/** A brand of the operator's list. */
export type Brand = { readonly id: string; readonly name: string }

/** How to tap, with each kind of phone, below a drawing. */
export function tapHelp(context: PageContext, drawing: Html | false = tapDrawing): Html {
  const { search } = textsIn(context)
  return html`<div class="taphow">
    ${drawing}
    <dl>
      <div>
        <dt>iPhone</dt>
        <dd>${search.tapIphone}</dd>
      </div>
      <div>
        <dt>Android</dt>
        <dd>${search.tapAndroid}</dd>
      </div>
    </dl>
    <p class="hint">${search.tapWhere}</p>
  </div>`
}

export function tapCard(context: PageContext, drawing: Html | false = tapDrawing): Html {
  return html`<section class="card tap" aria-labelledby="tap">
    <h2 id="tap">${textsIn(context).search.tapHow}</h2>
    ${tapHelp(context, drawing)}
  </section>`
}

/** `brands` are offered beside a serial; without them the form is left out. */
export function searchCard(context: PageContext, view: SearchView = {}, brands: readonly Brand[] = []): Html {
  const { search, product, bulk } = textsIn(context)
  const token = { name: 'token', label: product.token, hint: search.tokenHint, numeric: true, max: 78 } as const
  return html`<section class="card search" aria-labelledby="search">
    <h2 id="search">${search.title}</h2>
    <div class="forms">
      <form action="/" method="get" aria-label="${search.byToken}">
        ${languageField(context)} ${field(token, view, search.badToken)}
        <button>${search.button}</button>
      </form>
      ${itemForm(context, view)} ${brands.length > 0 && brandForm(context, view, brands)}
    </div>
    <p class="many">
      <a href="${hrefIn(context, bulkPath)}">${icon('layers')}<span>${bulk.link}</span></a>
    </p>
  </section>`
}

/** The second form alone, as on the page of a class. */
export function itemForm(context: PageContext, view: SearchView): Html {
  const { search, product } = textsIn(context)
  const gtin = { name: 'gtin', label: product.gtin, hint: search.gtinHint, numeric: true, max: 20 } as const
  return html`<form action="/" method="get" aria-label="${search.byItem}">
    ${languageField(context)} ${field(gtin, view, search.badGtin)}
    ${field(serialField(context), view, search.badSerial)}
    <button>${search.button}</button>
  </form>`
}

/** The brand comes from the operator's list, so that no maker's text decides which items it stands for. */
function brandForm(context: PageContext, view: SearchView, brands: readonly Brand[]): Html {
  const { search, product } = textsIn(context)
  return html`<form action="/" method="get" aria-label="${search.byBrand}">
    ${languageField(context)}
    <label for="brand">${product.brand}</label>
    <select id="brand" name="brand" required>
      ${brands.map(({ id, name }) => html`<option value="${id}" ${id === view.brand && html` selected`}>${name}</option>`)}
    </select>
    ${view.wrong === 'brand' && html`<p class="error">${search.badBrand}</p>`}
    ${field({ ...serialField(context), id: 'brandSerial' }, view, search.badSerial)}
    <button>${search.button}</button>
  </form>`
}

/** A browser replaces the query of a form's address by its fields, so the language is one of them. */
function languageField({ chosen, language }: PageContext): Html | false {
  return chosen && html`<input type="hidden" name="lang" value="${language}" />`
}

type Field = {
  readonly name: 'token' | 'gtin' | 'serial'
  /** Left out: the name. */
  readonly id?: 'token' | 'gtin' | 'serial' | 'brandSerial'
  readonly label: string
  readonly hint: string
  readonly numeric: boolean
  readonly max: number
}

function serialField(context: PageContext): Field {
  const { search, product } = textsIn(context)
  return { name: 'serial', label: product.serial, hint: search.serialHint, numeric: false, max: 40 }
}

function field({ name, id = name, label, hint, numeric, max }: Field, view: SearchView, error: string): Html {
  const isWrong = view.wrong === id
  return html`<label for="${id}">${label}</label>
    <input
      id="${id}"
      name="${name}"
      dir="ltr"
      value="${view[id] ?? ''}"
      maxlength="${max}"
      required
      aria-describedby="${isWrong && `${id}-error `}${id}-hint"
      ${numeric && html` inputmode="numeric"`}${isWrong && html` aria-invalid="true" autofocus`}
      autocomplete="off"
      spellcheck="false"
      autocapitalize="off"
    />
    ${isWrong && html`<p class="error" id="${id}-error">${error}</p>`}
    <p class="hint" id="${id}-hint">${hint}</p>`
}
