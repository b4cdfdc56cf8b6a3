/** The brand's look of a page. Name and theme come from the operator's list, never from metadata. */
import type { Html } from './html.ts'

/** Each is https or mailto; left out: none. */
type ThemeLinks = {
  readonly contact?: string | undefined
  readonly support?: string | undefined
  readonly claim?: string | undefined
  readonly privacy?: string | undefined
}

export type PageTheme = {
  /** Names the style sheet and the theme's attribute: letters, digits and hyphens. */
  readonly id: string
  /** The brand as the operator spells it. */
  readonly name: string
  /** Path of its style sheet. */
  readonly stylesheet: string
  /** One-colour drawing. */
  readonly mark: Html
  /** Addresses of the brand's own pages. */
  readonly links: ThemeLinks
  /** The style sheet loads a typeface from this host. */
  readonly hasTypeface: boolean
}
