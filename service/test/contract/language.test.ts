/** Plain English: comments and error texts open with a subject, and the words of the field are used (CONTRIBUTING.md). */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../../', import.meta.url))

/** Words with which a sentence about code has no subject. A question may begin with what or where. */
const openings = /^(?:Of|What|Whatever|Who|Whoever|Where|Without|Nobody|None|How long)\b(?![^.]*\?)/

/** Private words, each with the term of the field. */
const terms: Readonly<Record<string, string>> = {
  'doors?': 'listener, guard, interface',
  'twins?': 'asset, duplicate',
  'hears?|heard(?! Island)': 'receives, is notified',
  'tells?|told|untold': 'returns, reports, sends',
  'believes?|believed': 'accepts',
  'nobody|whoever': 'name the subject',
}
/** The warning of spec §2.3 is fixed text. */
const fixedText = 'Unverified text from whoever minted this token'
const privateWord = new RegExp(`\\b(?:${Object.keys(terms).join('|')})\\b`, 'i')

/** Matches a block comment, or a run of line comments. */
const comment = /\/\*\*?([^]*?)\*\/|(?<![:'"`\w/])\/\/([^\n]*(?:\n\s*\/\/[^\n]*)*)/g

const anyText = /'((?:[^'\\\n]|\\.)* (?:[^'\\\n]|\\.)*)'|`([^`]* [^`]*)`/g
const shortText = /'((?:[^'\\\n]|\\.)* (?:[^'\\\n]|\\.)*)'|`([^`\n]* [^`\n]*)`/g

const files = globSync(
  [
    'service/{src,test}/**/*.{ts,graphql,js,css}',
    'verdict/{src,test}/**/*.ts',
    'contracts/*.ts',
    'bench/**/*.ts',
    'scripts/**/*.ts',
  ],
  { cwd: root, exclude: (name) => name.includes('node_modules') || name.endsWith('language.test.ts') },
)

describe('plain English', () => {
  for (const file of files) {
    const texts = [...commentsOf(file), ...messagesOf(file)]

    it(`${file} opens each comment and message with its subject`, () =>
      assert.deepEqual(texts.filter(({ text }) => openings.test(text)).map(show), []))

    it(`${file} uses the words of the field`, () =>
      assert.deepEqual(texts.filter(({ text }) => privateWord.test(text) && !text.startsWith(fixedText)).map(show), []))
  }
})

type Text = { readonly line: number; readonly text: string }

const show = ({ line, text }: Text): string => `line ${line}: ${text.slice(0, 120)}`

function readSource(file: string): string {
  return readFileSync(root + file, 'utf8')
}

/** Returns the text of each comment, joined over its lines. */
function commentsOf(file: string): Text[] {
  const code = readSource(file)
  const found = file.endsWith('.graphql')
    ? code.matchAll(/"""([^]*?)"""|"((?:[^"\\\n]|\\.)*)"/g)
    : code.matchAll(comment)
  return [...found].map((match) => ({
    line: code.slice(0, match.index).split('\n').length,
    text: (match[1] ?? match[2] ?? '').replaceAll(/\n\s*(?:\*|\/\/)?\s?/g, ' ').trim(),
  }))
}

/** Returns texts in quotes that are sentences: errors, help, logs, test names. A long template of a test is a program or a page. */
function messagesOf(file: string): Text[] {
  if (!file.endsWith('.ts')) return []
  const quoted = /[./]test[./]/.test(file) ? shortText : anyText
  const code = readSource(file).replaceAll(comment, (text) => text.replaceAll(/[^\n]/g, ''))
  return [...code.matchAll(quoted)].map((match) => ({
    line: code.slice(0, match.index).split('\n').length,
    text: (match[1] ?? match[2] ?? '').replaceAll(/\s+/g, ' ').trim(),
  }))
}
