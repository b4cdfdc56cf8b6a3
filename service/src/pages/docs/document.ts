/** The pages of the documentation as HTML documents (spec §9 leaves their form open): a source, the results of a search, a frame for both. */
import { html, markupOf, type Html } from '../html.ts'
import { mark } from '../icons.ts'
import { anchorOf, docsPath, renderedDocs } from './markdown.ts'
import { maxQuery, type DocsHit } from './search.ts'

/**
 * `name` is the last part of the page's path, empty for the first page. `title` its first heading; `group` its place in the list of pages.
 */
export type DocsEntry = { readonly name: string; readonly title: string; readonly group: string }

type Frame = {
  readonly pages: readonly DocsEntry[]
  /** The folder of style, script and icon. */
  readonly assets: string
}

/** Returns the page of a source. `pages` lists all pages in their order. */
export function docsDocument({
  markdown,
  page,
  ...frame
}: Frame & { readonly markdown: string; readonly page: DocsEntry }): string {
  const { heading, text } = renderedDocs(markdown)
  const markdownPath = `${page.name === '' ? '/docs/index' : docsPath(page.name)}.md`
  return framed(frame, {
    title: page.title,
    name: page.name,
    head: html`<link rel="alternate" type="text/markdown" href="${markdownPath}" />`,
    main: html`${heading} ${onThisPage(markdown)} ${text} ${around(page, frame.pages)}`,
    foot: html` <a href="${markdownPath}">This page as Markdown</a>`,
  })
}

/** Returns the page of results. `hits` is null when the search did not run. */
export function docsSearchDocument({
  query,
  hits,
  ...frame
}: Frame & { readonly query: string; readonly hits: readonly DocsHit[] | null }): string {
  const found =
    hits === null
      ? html`<p>Type a word, a setting or an error code into the field above.</p>`
      : hits.length === 0
        ? html`<p>Nothing matches “${query}”.</p>`
        : html`<ol class="hits">
            ${hits.map(
              ({ path, page, heading, excerpt }) =>
                html`<li>
                  <a href="${path}">${heading}</a>${heading !== page && html` <small>${page}</small>`}
                  <p>${excerpt}</p>
                </li>`,
            )}
          </ol>`
  return framed(frame, {
    title: hits === null ? 'Search' : `${query} · Search`,
    query,
    head: html`<meta name="robots" content="noindex" />`,
    main: html`<h1>Search</h1>
      ${found}`,
  })
}

type Parts = {
  readonly title: string
  /** The page in the list of pages; left out for a page that is not in it. */
  readonly name?: string
  readonly query?: string
  readonly head: Html
  readonly main: Html
  readonly foot?: Html
}

/** Puts the parts into the frame of all pages. The script copies code; every page is complete without it. */
function framed({ pages, assets }: Frame, { title, name, query = '', head, main, foot }: Parts): string {
  return markupOf(
    html`<!doctype html>
      <html lang="en">
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width, initial-scale=1" />
          <meta name="color-scheme" content="light dark" />
          <title>${title} · Touchstone</title>
          <link rel="stylesheet" href="${assets}/page.css" />
          <link rel="stylesheet" href="${assets}/docs.css" />
          <link rel="icon" type="image/svg+xml" href="${assets}/icon.svg" />
          ${head}
          <script type="module" src="${assets}/docs.js"></script>
        </head>
        <body>
          <a class="skip" href="#page">To the text</a>
          <header>
            <div class="top wrap">
              <a class="home" href="/" aria-label="Touchstone, start page">${mark}<span>Touchstone</span></a
              ><a href="/docs">Documentation</a>
              <form class="find" role="search" action="/docs/search">
                <input
                  type="search"
                  name="q"
                  value="${query}"
                  maxlength="${maxQuery}"
                  placeholder="Search"
                  aria-label="Search the documentation"
                />
                <button>Search</button>
              </form>
            </div>
          </header>
          <div class="docs wrap">
            ${navigation(name, pages)}
            <main id="page" tabindex="-1">${main}</main>
          </div>
          <footer>
            <div class="wrap">
              <p>Test network only, contracts unaudited.${foot}</p>
            </div>
          </footer>
        </body>
      </html> `,
  )
}

/** Writes the list twice: folded on a phone, open beside the text on a wide screen. */
function navigation(current: string | undefined, pages: readonly DocsEntry[]): Html {
  const groups = [...Map.groupBy(pages, ({ group }) => group)].map(
    ([group, entries]) =>
      html`<li>
        <b>${group}</b>
        <ul>
          ${entries.map(
            ({ name, title }) =>
              html`<li>
                <a href="${docsPath(name)}" ${name === current && html` aria-current="page"`}
                  >${name === '' ? 'Overview' : title}</a
                >
              </li>`,
          )}
        </ul>
      </li>`,
  )
  return html`<nav class="pages" aria-label="Pages">
    <details>
      <summary>All pages</summary>
      <ul>
        ${groups}
      </ul>
    </details>
    <ul>
      ${groups}
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
