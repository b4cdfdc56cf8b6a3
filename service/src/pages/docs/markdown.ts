/**
 * Renders a source of the documentation: anchors, highlighted code, tables that scroll, links to the served pages. The sources hold no text
 * of a caller or supplier. Raw HTML in them is left out all the same.
 */
import { Marked } from 'marked'
import { html, markupOf, trustedHtml, type Html } from '../html.ts'
import { highlight } from './highlight.ts'

/** Returns the first heading of a source. Throws when it has none. */
export function titleOf(markdown: string): string {
  const [, title] = /^# (.+)$/m.exec(markdown) ?? []
  if (title === undefined) throw new Error('A page of the documentation has no title.')
  return title
}

export const docsPath = (name: string): string => (name === '' ? '/docs' : `/docs/${name}`)

/** Returns the heading of the first level, and the rest of the page. */
export function renderedDocs(markdown: string): { readonly heading: Html; readonly text: Html } {
  const [heading = '', text = ''] = bodyOf(markdown).split(/(?<=<\/h1>\n)/, 2)
  return { heading: trustedHtml(heading), text: trustedHtml(text) }
}

/** Makes the anchor of a heading as GitHub does, so that a link works in both places. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}

/** Matches the code or setting that begins a row of a table. Its first row on a page has an anchor, unless a heading has it. */
export const rowName = /^`(\w+)`/

const marked = new Marked({
  gfm: true,
  renderer: {
    heading({ tokens, depth, text }) {
      return `<h${depth} id="${anchorOf(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`
    },
    link({ href, tokens }) {
      return `<a href="${addressOf(href)}">${this.parser.parseInline(tokens)}</a>`
    },
    code: ({ text, lang = '' }) => markupOf(codeBlock(text, lang)),
    html: () => '',
  },
})

/** Turns a link to a neighbouring source file into a link to its page. */
function addressOf(href: string): string {
  const [, name = '', anchor = ''] = /^([a-z-]+)\.md(#.*)?$/.exec(href) ?? []
  return name === '' ? href : `${docsPath(name === 'index' ? '' : name)}${anchor}`
}

/** Commands stand in blocks without a language or in `sh`; `answer` is what the commands above it print. */
function codeBlock(text: string, language: string): Html {
  if (language === 'answer')
    return html`<div class="code printed" role="group" aria-label="Answer">
        <pre tabindex="0"><code>${highlight(text, /^[[{]/.test(text) ? 'json' : 'text')}</code></pre>
      </div>
      ${'\n'}`
  const isCommand = language === '' || language === 'sh'
  return html`<div class="code">
      <pre tabindex="0"><code>${highlight(text, isCommand ? 'bash' : language)}</code></pre>
      <button type="button" data-copy hidden>Copy</button>
    </div>
    ${'\n'}`
}

/** Wide tables scroll on their own, also with the keyboard. */
function bodyOf(markdown: string): string {
  const parsed = marked.parse(markdown, { async: false })
  const known = new Set([...parsed.matchAll(/<h\d id="([^"]+)"/g)].map(([, id = '']) => id))
  return parsed
    .replaceAll('<table>', '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>')
    .replaceAll('</table>', '</table></div>')
    .replaceAll('<th>', '<th scope="col">')
    .replace(/<tr>\n<td><code>(\w+)<\/code>/g, (row, name: string) => {
      const id = name.toLowerCase()
      if (known.has(id)) return row
      known.add(id)
      return `<tr id="${id}">\n<td><code>${name}</code>`
    })
}
