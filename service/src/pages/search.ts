/** The two ways to an item: a tap, or its token id or GTIN and serial in forms that work without script (spec §4.1, §4.6). */
import { textsIn, type PageContext } from './context.ts'
import { html, type Html } from './html.ts'
import { tapDrawing } from './icons.ts'

/** The text that was typed before, and the field that was wrong. */
export type SearchView = {
  readonly token?: string | undefined
  readonly gtin?: string | undefined
  readonly serial?: string | undefined
  readonly wrong?: 'token' | 'gtin' | 'serial' | undefined
}

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

export function searchCard(context: PageContext, view: SearchView = {}): Html {
  const { search, product } = textsIn(context)
  const token = { name: 'token', label: product.token, hint: search.tokenHint, numeric: true, max: 78 } as const
  return html`<section class="card search" aria-labelledby="search">
    <h2 id="search">${search.title}</h2>
    <div class="forms">
      <form action="/" method="get" aria-label="${search.byToken}">
        ${languageField(context)} ${field(token, view, search.badToken)}
        <button>${search.button}</button>
      </form>
      ${itemForm(context, view)}
    </div>
  </section>`
}

/** The second form alone, as on the page of a class. */
export function itemForm(context: PageContext, view: SearchView): Html {
  const { search, product } = textsIn(context)
  const gtin = { name: 'gtin', label: product.gtin, hint: search.gtinHint, numeric: true, max: 20 } as const
  const serial = { name: 'serial', label: product.serial, hint: search.serialHint, numeric: false, max: 40 } as const
  return html`<form action="/" method="get" aria-label="${search.byItem}">
    ${languageField(context)} ${field(gtin, view, search.badGtin)} ${field(serial, view, search.badSerial)}
    <button>${search.button}</button>
  </form>`
}

/** A browser replaces the query of a form's address by its fields, so the language is one of them. */
function languageField({ chosen, language }: PageContext): Html | false {
  return chosen && html`<input type="hidden" name="lang" value="${language}" />`
}

type Field = {
  readonly name: 'token' | 'gtin' | 'serial'
  readonly label: string
  readonly hint: string
  readonly numeric: boolean
  readonly max: number
}

function field({ name, label, hint, numeric, max }: Field, view: SearchView, error: string): Html {
  const isWrong = view.wrong === name
  return html`<label for="${name}">${label}</label>
    <input
      id="${name}"
      name="${name}"
      dir="ltr"
      value="${view[name] ?? ''}"
      maxlength="${max}"
      required
      aria-describedby="${isWrong && `${name}-error `}${name}-hint"
      ${numeric && html` inputmode="numeric"`}${isWrong && html` aria-invalid="true" autofocus`}
      autocomplete="off"
      spellcheck="false"
      autocapitalize="off"
    />
    ${isWrong && html`<p class="error" id="${name}-error">${error}</p>`}
    <p class="hint" id="${name}-hint">${hint}</p>`
}
