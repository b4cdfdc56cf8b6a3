/**
 * A page of the documentation: Markdown of this project as HTML (spec §9 leaves its form open). The sources hold no text of a caller or
 * supplier. Raw HTML in them is left out all the same.
 */
import { Marked } from 'marked'
import { html, markupOf, trustedHtml, type Html } from './html.ts'
import { mark } from './icons.ts'

/** `name` is the last part of the page's path, empty for the first page; `title` its first heading. */
export type DocsEntry = { readonly name: string; readonly title: string }

/** Returns the first heading of a source. Throws when it has none. */
export function titleOf(markdown: string): string {
  const [, title] = /^# (.+)$/m.exec(markdown) ?? []
  if (title === undefined) throw new Error('A page of the documentation has no title.')
  return title
}

export const docsPath = (name: string): string => (name === '' ? '/docs' : `/docs/${name}`)

/** Returns the page as a document. `assets` is the folder of style and icon, `pages` lists all pages in their order. */
export function docsDocument({
  markdown,
  page,
  pages,
  assets,
}: {
  readonly markdown: string
  readonly page: DocsEntry
  readonly pages: readonly DocsEntry[]
  readonly assets: string
}): string {
  const [heading = '', text = ''] = bodyOf(markdown).split(/(?<=<\/h1>\n)/, 2)
  const markdownPath = `${page.name === '' ? '/docs/index' : docsPath(page.name)}.md`
  return markupOf(
    html`<!doctype html>
      <html lang="en">
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width, initial-scale=1" />
          <meta name="color-scheme" content="light dark" />
          <title>${page.title} · Touchstone</title>
          <link rel="stylesheet" href="${assets}/page.css" />
          <link rel="stylesheet" href="${assets}/docs.css" />
          <link rel="icon" type="image/svg+xml" href="${assets}/icon.svg" />
          <link rel="alternate" type="text/markdown" href="${markdownPath}" />
        </head>
        <body>
          <a class="skip" href="#text">To the text</a>
          <header>
            <div class="top wrap">
              <a class="home" href="/" aria-label="Touchstone, start page">${mark}<span>Touchstone</span></a
              ><a href="/docs">Documentation</a>
            </div>
          </header>
          <div class="docs wrap">
            ${navigation(page, pages)}
            <main id="text" tabindex="-1">
              ${trustedHtml(heading)} ${onThisPage(markdown)} ${trustedHtml(text)} ${around(page, pages)}
            </main>
          </div>
          <footer>
            <div class="wrap">
              <p>Test network only, contracts unaudited. <a href="${markdownPath}">This page as Markdown</a></p>
            </div>
          </footer>
        </body>
      </html> `,
  )
}

/** Writes the list twice: folded on a phone, open beside the text on a wide screen. */
function navigation(page: DocsEntry, pages: readonly DocsEntry[]): Html {
  const links = pages.map(
    ({ name, title }) =>
      html`<li>
        <a href="${docsPath(name)}" ${name === page.name && html` aria-current="page"`}
          >${name === '' ? 'Overview' : title}</a
        >
      </li>`,
  )
  return html`<nav class="pages" aria-label="Pages">
    <details>
      <summary>All pages</summary>
      <ul>
        ${links}
      </ul>
    </details>
    <ul>
      ${links}
    </ul>
  </nav>`
}

function onThisPage(markdown: string): Html | false {
  const headings = markdown
    .split(/^```.*$/m)
    .filter((_, index) => index % 2 === 0)
    .flatMap((text) => [...text.matchAll(/^## (.+)$/gm)])
    .map(([, text = '']) => text)
  if (headings.length < 3) return false
  const items = headings.map((text) => html`<li><a href="#${anchorOf(text)}">${text}</a></li>`)
  return html`<nav class="contents" aria-label="On this page">
    <ul>
      ${items}
    </ul>
  </nav>`
}

function around(page: DocsEntry, pages: readonly DocsEntry[]): Html {
  const at = pages.findIndex(({ name }) => name === page.name)
  const [before, after] = [pages[at - 1], pages[at + 1]]
  return html`<nav class="around" aria-label="Next pages">
    ${before && html`<a rel="prev" href="${docsPath(before.name)}">← ${before.title}</a>`}
    ${after && html`<a rel="next" href="${docsPath(after.name)}">${after.title} →</a>`}
  </nav>`
}

/** Makes the anchor of a heading as GitHub does, so that a link works in both places. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}

const marked = new Marked({
  gfm: true,
  renderer: {
    heading({ tokens, depth, text }) {
      return `<h${depth} id="${anchorOf(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`
    },
    link({ href, tokens }) {
      return `<a href="${addressOf(href)}">${this.parser.parseInline(tokens)}</a>`
    },
    html: () => '',
  },
})

/** Turns a link to a neighbouring source file into a link to its page. */
function addressOf(href: string): string {
  const [, name = '', anchor = ''] = /^([a-z-]+)\.md(#.*)?$/.exec(href) ?? []
  return name === '' ? href : `${docsPath(name === 'index' ? '' : name)}${anchor}`
}

/** Renders a source. Wide tables and long commands scroll on their own, also with the keyboard; a code or setting that begins a row gets an id. */
function bodyOf(markdown: string): string {
  const known = new Set<string>()
  return marked
    .parse(markdown, { async: false })
    .replaceAll('<table>', '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>')
    .replaceAll('</table>', '</table></div>')
    .replaceAll('<th>', '<th scope="col">')
    .replaceAll('<pre>', '<pre tabindex="0">')
    .replace(/<tr>\n<td><code>(\w+)<\/code>/g, (row, name: string) => {
      const id = name.toLowerCase()
      if (known.has(id)) return row
      known.add(id)
      return `<tr id="${id}">\n<td><code>${name}</code>`
    })
}
