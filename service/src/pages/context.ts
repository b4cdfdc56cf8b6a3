/** What every page is made with: its language, and where its style and script are. */
import { textsOf, timeIn, type Language } from './languages.ts'
import { fill, html, type Html } from './html.ts'
import type { Texts } from './texts/en.ts'

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

/** A path of this service, in the language that the visitor chose. */
export function hrefIn({ chosen, language }: PageContext, path: string): string {
  if (!chosen) return path
  return `${path}${path.includes('?') ? '&' : '?'}lang=${language}`
}

/** A moment in unix seconds, readable by people and by machines. */
export function timeElement({ language }: PageContext, seconds: number): Html {
  return html`<time datetime="${new Date(seconds * 1000).toISOString().slice(0, 19)}Z"
    >${timeIn(language, seconds)}</time
  >`
}

/** Text of a supplier: its own direction, never the page's, so that it cannot reorder what stands around it. */
export function supplied(text: string): Html {
  return html`<bdi dir="auto">${text}</bdi>`
}

/** Addresses, hashes and numbers, which run left to right in every language. */
export function code(text: string): Html {
  return html`<code dir="ltr">${text}</code>`
}

/** «Checked {time}, at block {block}», or without a block. */
export function checkedLine(context: PageContext, checkedAt: number, block: number | null): Html {
  const texts = textsIn(context)
  const time = timeElement(context, checkedAt)
  return block === null ? fill(texts.checkedChip, { time }) : fill(texts.checked, { time, block: code(String(block)) })
}
