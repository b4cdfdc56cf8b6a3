/** A page context holds the language and the asset folder of a page. The helpers here write the small pieces that all cards share. */
import { formatSecond } from '../domain/text.ts'
import { formatClock, formatDate, formatTime, textsOf, type Language, type Texts } from './languages.ts'
import { html, type Html } from './html.ts'
import { icon, type IconName } from './icons.ts'

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
  return html`<time datetime="${formatSecond(seconds)}">${formatTime(language, seconds)}</time>`
}

/** Writes the day of unix seconds for people, and the moment for machines. */
export function dateElement({ language }: PageContext, seconds: number): Html {
  return html`<time datetime="${formatSecond(seconds)}" data-day>${formatDate(language, seconds)}</time>`
}

/** Writes the time of day of unix seconds for people, and the moment for machines. */
export function clockElement({ language }: PageContext, seconds: number): Html {
  return html`<time datetime="${formatSecond(seconds)}" data-clock>${formatClock(language, seconds)}</time>`
}

/** Cuts a text in code points. */
export function cut(text: string, most: number): string {
  const points = Array.from(text)
  if (points.length <= most) return text
  const kept = points.slice(0, most - 1).join('')
  return `${kept.trimEnd()}…`
}

/** Isolates the direction of supplier text, so that it cannot reorder the text around it. `language` is the tag that its maker gave. */
export function supplierText(text: string, language?: string): Html {
  return html`<bdi dir="auto" ${language !== undefined && html` lang="${language}"`}>${text}</bdi>`
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

/** A line that opens: icon, title, what it is. */
export function fold(name: IconName, title: string, what: string, body: Html | string | false): Html {
  return html`<details>
    ${summary(name, title, what)}
    <div>${body}</div>
  </details>`
}

/** Writes the line of what opens. */
export function summary(name: IconName, title: string, what: string): Html {
  return html`<summary>
    ${icon(name)}<span><b>${title}</b><small>${what}</small></span
    >${icon('down', 'turn')}
  </summary>`
}

/** Writes the button that loads the page once more. */
export function retryButton(context: PageContext): Html {
  return html`<p class="btns">
    <a class="btn" href="" data-retry>${icon('retry')}<span>${textsIn(context).verdict.tryAgain}</span></a>
  </p>`
}
