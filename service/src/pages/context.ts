/** A page context holds the language and the asset folder of a page. The helpers here write the small pieces that all cards share. */
import { formatDate, formatTime, textsOf, type Language, type Texts } from './languages.ts'
import { html, type Html } from './html.ts'

export type PageContext = {
  readonly language: Language
  /** The visitor asked for the language by `?lang=`, so the page's own links keep it. */
  readonly chosen: boolean
  /** Path of the folder of style, script and icon, without a slash at the end. */
  readonly assets: string
}

export function textsIn({ language }: PageContext): Texts {
  return textsOf[language]
}

/** Adds the language that the visitor chose to a path of this service. */
export function hrefIn({ chosen, language }: PageContext, path: string): string {
  if (!chosen) return path
  return `${path}${path.includes('?') ? '&' : '?'}lang=${language}`
}

/** Writes unix seconds for people and for machines. */
export function timeElement({ language }: PageContext, seconds: number): Html {
  return html`<time datetime="${new Date(seconds * 1000).toISOString().slice(0, 19)}Z"
    >${formatTime(language, seconds)}</time
  >`
}

/** Writes the day of unix seconds for people, and the moment for machines. */
export function dateElement({ language }: PageContext, seconds: number): Html {
  return html`<time datetime="${new Date(seconds * 1000).toISOString().slice(0, 19)}Z" data-day
    >${formatDate(language, seconds)}</time
  >`
}

/** Isolates the direction of supplier text, so that it cannot reorder the text around it. */
export function supplierText(text: string): Html {
  return html`<bdi dir="auto">${text}</bdi>`
}

/** Writes an address, hash or number, which runs left to right in every language. */
export function code(text: string): Html {
  return html`<code dir="ltr">${text}</code>`
}

/** Writes a row of a description list; nothing without a value. */
export function row(name: string, value: Html | '' | null | undefined): Html | undefined {
  return value
    ? html`<div>
        <dt>${name}</dt>
        <dd>${value}</dd>
      </div>`
    : undefined
}
