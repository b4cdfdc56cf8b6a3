/** Highlights code on the server, as elements with classes that the style sheet colours. The pages need no script for it. */
import { createRequire } from 'node:module'
import { html, trustedHtml, type Html } from '../html.ts'

/** A part of highlight.js. Its own types would bring those of a browser into the whole program. */
type Highlighter = {
  readonly getLanguage: (name: string) => object | undefined
  readonly highlight: (
    code: string,
    options: { language: string; ignoreIllegals: boolean },
  ) => { readonly value: string }
}

const require = createRequire(import.meta.url)
let loaded: Highlighter | undefined

/** Loads the languages at the first page, because loading takes a part of a start. */
function highlighter(): Highlighter {
  return (loaded ??= require('highlight.js/lib/common') as Highlighter)
}

/** Returns the code as markup. A language that is not known is shown plain. */
export function highlight(code: string, language: string): Html {
  const { getLanguage, highlight: marked } = highlighter()
  if (getLanguage(language) === undefined) return html`${code}`
  return trustedHtml(marked(code, { language, ignoreIllegals: true }).value)
}
