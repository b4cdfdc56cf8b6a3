/** The page that checks a certificate. It stands after the `#` of the address, or is pasted; the script checks it in the browser. */
import { textsIn, type PageContext } from '../context.ts'
import { html, jsonBlock } from '../html.ts'
import { icon } from '../icons.ts'
import { documentOf } from '../layout.ts'

export const certificatePath = '/certificate'
export const checkPath = '/check'

export type CheckView = {
  /** The issuer whose certificates this page checks. */
  readonly did: string
  /** A provider for the visitor's browser, asked only when the visitor wants it; null: none. */
  readonly publicRpcUrl: string | null
}

export function checkPage(context: PageContext, { did, publicRpcUrl }: CheckView): string {
  const { check, states } = textsIn(context)
  const { title, lead, needsScript, paste, pasteHint, button, provider, ...spoken } = check
  return documentOf(context, {
    title,
    path: checkPath,
    field: 'empty',
    links: html`<link rel="stylesheet" href="${context.assets}/lookup.css" />`,
    body: html`<div class="flow bulk">
      <section class="card">
        <h1>${title}</h1>
        <p class="lead">${lead}</p>
        <noscript><p class="records">${needsScript}</p></noscript>
      </section>
      <section class="card checked" role="status" data-checked data-did="${did}" hidden></section>
      ${
        publicRpcUrl !== null &&
        html`<p class="buttons" data-provider="${publicRpcUrl}" hidden>
          <button type="button">${provider.replace('{host}', new URL(publicRpcUrl).host)}</button>
        </p>`
      }
      <section class="card list" data-scripted hidden>
        <form data-check autocomplete="off">
          <label for="certificate">${paste}</label>
          <textarea
            id="certificate"
            rows="5"
            dir="ltr"
            spellcheck="false"
            autocapitalize="off"
            maxlength="20000"
            required
            aria-describedby="certificate-hint"
          ></textarea>
          <p class="hint" id="certificate-hint">${pasteHint}</p>
          <button>${icon('check')}<span>${button}</span></button>
        </form>
      </section>
      ${jsonBlock('check-texts', 'application/json', JSON.stringify({ ...spoken, states }))}
    </div>`,
  })
}
