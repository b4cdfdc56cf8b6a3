/** Full-text search over the documentation: each section and each row of a reference table is a result of its own. */
import { Marked, type Token, type Tokens } from 'marked'
import MiniSearch from 'minisearch'
import { anchorOf, docsPath, rowName } from './markdown.ts'

export type DocsSource = { readonly name: string; readonly title: string; readonly markdown: string }
export type DocsHit = {
  readonly path: string
  readonly page: string
  readonly heading: string
  /** A part of the text, near the first word that was searched for. */
  readonly excerpt: string
}

type Section = { readonly id: string; readonly page: string; readonly heading: string; text: string }

/** Characters of a query; the rest is ignored. */
export const maxQuery = 80
const maxWords = 8
const maxHits = 20

/** Indexes the sources. Takes about a tenth of a second. */
export function createDocsSearch(sources: readonly DocsSource[]): (query: string) => readonly DocsHit[] {
  const sections = sources.flatMap(sectionsOf)
  const index = new MiniSearch<Section>({
    fields: ['heading', 'page', 'text'],
    searchOptions: {
      boost: { heading: 4, page: 2 },
      prefix: (term) => term.length > 2,
      fuzzy: (term) => (term.length > 4 ? 0.2 : false),
    },
  })
  index.addAll(sections)
  const byId = new Map(sections.map((section) => [section.id, section]))
  return (query) => {
    const words = query.slice(0, maxQuery).split(/\s+/).filter(Boolean).slice(0, maxWords)
    const text = words.join(' ')
    const all = index.search(text, { combineWith: 'AND' })
    return (all.length > 0 ? all : index.search(text)).slice(0, maxHits).flatMap(({ id, terms }) => {
      const section = byId.get(String(id))
      if (section === undefined) return []
      const { page, heading } = section
      return [{ path: section.id, page, heading, excerpt: excerptOf(section.text, terms) }]
    })
  }
}

const lexer = new Marked({ gfm: true })

function sectionsOf({ name, title, markdown }: DocsSource): readonly Section[] {
  const path = docsPath(name)
  let current: Section = { id: path, page: title, heading: title, text: '' }
  const sections = [current]
  const tokens = lexer.lexer(markdown)
  const headings = tokens.flatMap((token) => (isHeading(token) ? [anchorOf(token.text)] : []))
  const known = new Set<string>()
  const begin = (anchor: string, heading: string): Section => {
    const id = `${path}#${anchor}`
    const section = { id, page: title, heading, text: '' }
    if (!known.has(id)) sections.push(section)
    known.add(id)
    return section
  }
  for (const token of tokens) {
    if (isHeading(token)) {
      if (token.depth > 1) current = begin(anchorOf(token.text), plainText(token.text))
    } else if (token.type === 'table')
      for (const row of (token as Tokens.Table).rows) {
        const text = row.map((cell) => plainText(cell.text)).join(' · ')
        const [, word] = rowName.exec(row[0]?.text ?? '') ?? []
        if (word === undefined || headings.includes(word.toLowerCase())) current.text += ` ${text}`
        else begin(word.toLowerCase(), word).text = text
      }
    else if (token.type !== 'html') current.text += ` ${plainText(token.raw)}`
  }
  return sections
}

const isHeading = (token: Token): token is Tokens.Heading => token.type === 'heading'

/** Removes the marks of Markdown, and the fences of code. */
function plainText(markdown: string): string {
  return markdown
    .replace(/^```.*$/gm, '')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[`*|]/g, '')
    .replace(/\s+/g, ' ')
    .trim()
}

const excerptLength = 180

function excerptOf(text: string, terms: readonly string[]): string {
  const lower = text.toLowerCase()
  const places = terms.map((term) => lower.indexOf(term)).filter((place) => place >= 0)
  const first = places.length === 0 ? 0 : Math.min(...places)
  const start = first < excerptLength / 2 ? 0 : text.lastIndexOf(' ', first - 40) + 1
  const end = start + excerptLength < text.length ? text.lastIndexOf(' ', start + excerptLength) : text.length
  return `${start > 0 ? '… ' : ''}${text.slice(start, end).trim()}${end < text.length ? ' …' : ''}`
}
