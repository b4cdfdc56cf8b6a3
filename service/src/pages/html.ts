/**
 * HTML as a type of its own. `html` escapes every string, and only values of the type `Html` enter a page unescaped. Supplier text is
 * always a string, so it cannot become markup (spec §2.3).
 */
const markup = Symbol('html')

/** Finished markup. Neither JSON nor supplier text can be one: the key is a symbol of this file. */
export type Html = { readonly [markup]: string }
type Value = Html | string | number | bigint | false | null | undefined | readonly Value[]

/** Builds markup: text is escaped for element content and for quoted attributes; false, null and undefined write nothing. */
export function html(strings: TemplateStringsArray, ...values: readonly Value[]): Html {
  return trustedHtml(dense(strings).reduce((before, part, index) => before + textOf(values[index - 1]) + part))
}

/** Removes the indentation of the source. */
function dense(strings: TemplateStringsArray): readonly string[] {
  const known = densed.get(strings)
  if (known !== undefined) return known
  const made = strings.map((part) => part.replace(/\n\s+/g, '\n'))
  densed.set(strings, made)
  return made
}

const densed = new WeakMap<TemplateStringsArray, readonly string[]>()

/** Marks text as markup of this program. It must never be supplier text; a test lists the callers. */
export function trustedHtml(text: string): Html {
  return { [markup]: text }
}

export function markupOf(value: Html): string {
  return value[markup]
}

/**
 * Fills the `{name}` places of a text. The text is escaped, and so are the values unless they are markup. A place in parentheses is left
 * out with them when its value is empty.
 */
export function fill(text: string, values: Readonly<Record<string, Value>>): Html {
  const shown = text.replace(/ \(\{(\w+)\}\)/g, (place, name: string) => (values[name] === '' ? '' : place))
  const parts = shown.split(/\{(\w+)\}/)
  return html`${parts.map((part, index) => (index % 2 === 0 ? part : values[part]))}`
}

/**
 * Writes JSON as a data block, which browsers do not run, so that the policy needs no exception. `<`, `>`, `&` and the line separators are
 * escaped, so that no text ends the element.
 */
export function jsonBlock(id: string, type: 'application/ld+json' | 'application/json', json: string): Html {
  const safe = json.replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  return html`<script type="${type}" id="${id}">
    ${trustedHtml(safe)}
  </script>`
}

function textOf(value: Value): string {
  if (value === false || value === null || value === undefined) return ''
  if (typeof value === 'object') return isList(value) ? value.map(textOf).join('') : value[markup]
  return String(value).replace(/[&<>"']/g, (character) => entities[character] ?? '')
}

function isList(value: Html | readonly Value[]): value is readonly Value[] {
  return Array.isArray(value)
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
