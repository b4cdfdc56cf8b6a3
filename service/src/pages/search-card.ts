/** Looking an item up by token id, or by GTIN and serial: two forms that work without script (spec §4.1, §4.6). */
import { textsIn, type PageContext } from './context.ts'
import { html, type Html } from './html.ts'

/** What was typed before, and what was wrong with it. */
export type SearchView = {
  readonly token?: string | undefined
  readonly gtin?: string | undefined
  readonly serial?: string | undefined
  readonly wrong?: 'token' | 'gtin' | 'serial' | undefined
}

export function searchCard(context: PageContext, search: SearchView = {}): Html {
  const texts = textsIn(context)
  return html`<section class="card search" aria-labelledby="search">
    <h2 id="search">${texts.search}</h2>
    <div class="forms">
      <form action="/" method="get" aria-label="${texts.searchToken}">
        ${languageField(context)}
        ${field({ name: 'token', label: texts.token, hint: texts.searchTokenHint, value: search.token, numeric: true, most: 78, error: search.wrong === 'token' ? texts.badToken : undefined })}
        <button>${texts.searchButton}</button>
      </form>
      ${itemForm(context, search)}
    </div>
  </section>`
}

/** The second form alone, as on the page of a class. */
export function itemForm(context: PageContext, search: SearchView): Html {
  const texts = textsIn(context)
  return html`<form action="/" method="get" aria-label="${texts.searchItem}">
    ${languageField(context)}
    ${field({ name: 'gtin', label: texts.gtin, hint: texts.searchGtinHint, value: search.gtin, numeric: true, most: 20, error: search.wrong === 'gtin' ? texts.badGtin : undefined })}
    ${field({ name: 'serial', label: texts.serial, hint: texts.searchSerialHint, value: search.serial, numeric: false, most: 40, error: search.wrong === 'serial' ? texts.badSerial : undefined })}
    <button>${texts.searchButton}</button>
  </form>`
}

/** A query in the address of a form is replaced by its fields, so the language is one of them. */
function languageField({ chosen, language }: PageContext): Html | false {
  return chosen && html`<input type="hidden" name="lang" value="${language}" />`
}

type Field = {
  readonly name: string
  readonly label: string
  readonly hint: string
  readonly value: string | undefined
  readonly numeric: boolean
  readonly most: number
  readonly error: string | undefined
}

function field({ name, label, hint, value, numeric, most, error }: Field): Html {
  const described = error === undefined ? `${name}-hint` : `${name}-error ${name}-hint`
  return html`<label for="${name}">${label}</label>
    <input
      id="${name}"
      name="${name}"
      dir="ltr"
      value="${value ?? ''}"
      maxlength="${most}"
      required
      aria-describedby="${described}"
      ${numeric && html` inputmode="numeric"`}${error !== undefined && html` aria-invalid="true" autofocus`}
      autocomplete="off"
      spellcheck="false"
      autocapitalize="off"
    />
    ${error !== undefined && html`<p class="error" id="${name}-error">${error}</p>`}
    <p class="hint" id="${name}-hint">${hint}</p>`
}
