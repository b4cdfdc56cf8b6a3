/** The brand's look of a page. Name and theme come from the operator's list, never from metadata. */
import type { Html } from './html.ts'

export type PageTheme = {
  /** Names the style sheet and the theme's attribute: letters, digits and hyphens. */
  readonly id: string
  /** The brand as the operator spells it. */
  readonly name: string
  /** Path of its style sheet. */
  readonly stylesheet: string
  /** One-colour drawing. */
  readonly mark: Html
}
