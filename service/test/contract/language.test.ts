/** Plain English: comments and messages open with a subject, are short, and use the words of the field (CONTRIBUTING.md). */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parseSync, type ParseResult } from 'oxc-parser'
import { parse as parseYaml } from 'yaml'

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
/** Words that no name has, alone or as a part of it. */
const privateName =
  /(?:\b|_)(?:doors?|twins?|hears|(?:un)?told)(?=\b|_|[A-Z])|(?:Doors?|Twins?|Hears|(?:Un)?[Tt]old)(?=\b|_|[A-Z])/g

/** The most words of the first sentence of a comment, and of any sentence that people read. */
const longest = { opening: 20, sentence: 25 } as const

/** Messages of failures, which say what to write instead. */
const shortSentences = `the first sentence of a comment has at most ${longest.opening} words, one of a message or a document ${longest.sentence}`
const ownWords = 'write British spelling, and none of the words of `terms` in language.test.ts'

/** British spelling, but for words of standards and of the wire: authorize, finalized, initialize, serialize. */
const american =
  /\b(?:colors?|gray|behaviors?|favou?rite|catalogs|licenses|centers?|jewelry|recogniz\w+|organiz\w+|reorganiz\w+|normaliz\w+|minimiz\w+|optimiz\w+|personaliz\w+|summariz\w+|canceled|canceling|labeled|fulfill)\b/

/** A doc comment above an empty line. */
const apartComment = /^[ \t]*\/\*\*(?:[^*]|\*(?!\/))*\*\/\n[ \t]*\n/gm

/** The source that was parsed last. */
let parsed: { readonly file: string; readonly result: ParseResult } = { file: '', result: parseSync('', '') }

/** Configuration of servers, whose comments begin with a number sign or a semicolon. */
const deployed = [
  'deploy/**/*.{yaml,yml,conf,cfg,ini,env,example,sh}',
  'deploy/**/{Dockerfile,.env.example,touchstone.service}',
]
const isConfiguration = (file: string): boolean =>
  /\.(?:ya?ml|conf|cfg|ini|env|example|sh|service)$|Dockerfile$/.test(file)

const files = globSync(
  [
    'service/{src,test}/**/*.{ts,graphql,js,css}',
    'verdict/{src,test}/**/*.ts',
    'contracts/{src,test}/**/*.sol',
    '{contracts,deploy}/*.ts',
    ...deployed,
    'bench/**/*.ts',
    'scripts/**/*.ts',
  ],
  { cwd: root, exclude: (name) => name.includes('node_modules') || name.endsWith('language.test.ts') },
)

describe('plain English', () => {
  for (const file of files) {
    const comments = commentsOf(file)
    const messages = messagesOf(file)
    const texts = [...comments, ...messages]

    it(`${file} opens each comment and message with its subject`, () =>
      assert.deepEqual(texts.filter(({ text }) => openings.test(text)).map(show), [], 'begin with a subject'))

    it(`${file} uses the words of the field`, () => {
      const wrong = texts.filter(({ text }) => privateWord.test(text) && !text.startsWith(fixedText))
      assert.deepEqual(wrong.map(showTerm), [])
    })

    it(`${file} has the words of the field in its names`, () =>
      assert.deepEqual(readSource(file).match(privateName) ?? [], []))

    it(`${file} names files that exist`, () => {
      const named = comments.flatMap(({ line, text }) =>
        Array.from(text.matchAll(fileName), ([name]) => ({ line, text: name })),
      )
      assert.deepEqual(
        named.filter(({ text }) => !sources.some((source) => `/${source}`.endsWith(`/${text}`))).map(show),
        [],
      )
    })

    it(`${file} has each doc comment at what it documents`, () => {
      const apart = Array.from(readSource(file).matchAll(apartComment)).filter(({ index }) => index > 0)
      assert.deepEqual(
        apart.map(([text]) => text.trim()),
        [],
        'only the comment at the head of a file stands above an empty line',
      )
    })

    it(`${file} has short sentences`, () => {
      const long = comments.filter(({ text }) => wordsOf(sentencesOf(text)[0] ?? '') > longest.opening)
      assert.deepEqual([...long, ...messages.flatMap(longSentences)].map(show), [], shortSentences)
    })
  }
})

describe('the documentation', () => {
  const pages = globSync(
    ['{docs,decisions}/*.md', '{README,CONTRIBUTING,SECURITY,ARCHITECTURE,contracts/README,verdict/README}.md'],
    { cwd: root },
  )

  for (const page of pages) {
    const texts = proseOf(readSource(page))

    it(`${page} has short sentences`, () =>
      assert.deepEqual(texts.flatMap(longSentences).map(show), [], shortSentences))

    it(`${page} opens each sentence with its subject`, () => {
      const wrong = texts.flatMap(({ line, text }) => sentencesOf(text).map((sentence) => ({ line, text: sentence })))
      assert.deepEqual(
        wrong.filter(({ text }) => openings.test(text) && /[.:]$/.test(text)).map(show),
        [],
        'begin with a subject',
      )
    })

    it(`${page} is in British English, in the words of the field`, () => {
      const isWrong = (text: string) => american.test(text) || privateWord.test(text.replaceAll(/\bnobody\b/gi, ''))
      assert.deepEqual(texts.filter(({ text }) => isWrong(text)).map(show), [], ownWords)
    })
  }
})

describe('descriptions, page texts and alerts', () => {
  for (const file of ['service/openapi.yaml', 'service/src/pages/texts/en.json', 'deploy/prometheus/alerts.yaml']) {
    const texts = proseIn(parseYaml(readSource(file), { maxAliasCount: -1 }), file.endsWith('.json'))

    it(`${file} has short sentences`, () =>
      assert.deepEqual(texts.flatMap(longSentences).map(show), [], shortSentences))

    it(`${file} is in British English, in the words of the field`, () => {
      const isWrong = (text: string) =>
        american.test(text) || privateWord.test(text.replaceAll(/\bnobody\b|\bTell\b/gi, '').replaceAll(fixedText, ''))
      assert.deepEqual(texts.filter(({ text }) => isWrong(text)).map(show), [], ownWords)
    })
  }
})

type Text = { readonly line: number; readonly text: string }

/** Names a source in a comment. A migration keeps its comments, also where a file of that time has another name now. */
const fileName = /(?<![\w*./:@{}-])[\w-]+(?:[./][\w-]+)*\.(?:ts|sol)\b/g
const sources = globSync('**/*.{ts,sol}', { cwd: root, exclude: (name) => name.includes('node_modules') })

const showTerm = ({ line, text }: Text): string => {
  const [, term] = Object.entries(terms).find(([word]) => new RegExp(`\\b(?:${word})\\b`, 'i').test(text)) ?? []
  return `${show({ line, text })} → ${term}`
}
const show = ({ line, text }: Text): string => `line ${line}: ${text.slice(0, 120)}`

function readSource(file: string): string {
  return readFileSync(root + file, 'utf8')
}

/** Parses a source, once for its comments and its messages. */
function parse(file: string): ParseResult {
  if (parsed.file !== file) parsed = { file, result: parseSync(file, readSource(file)) }
  return parsed.result
}

function lineOf(source: string, at: number): number {
  return source.slice(0, at).split('\n').length
}

function joinLines(text: string): string {
  return text.replaceAll(/\n\s*\*?\s?/g, ' ').trim()
}

/** Returns the text of each comment, joined over its lines; line comments below one another are one. */
function commentsOf(file: string): Text[] {
  const code = readSource(file)
  if (file.endsWith('.sol') || isConfiguration(file))
    return lineCommentsOf(code, isConfiguration(file) ? /^[#;]+ ?(.*)/ : /^\/\/\/? ?(.*)/)
  if (!/\.[jt]s$/.test(file)) {
    const pattern = file.endsWith('.css') ? /\/\*([^]*?)\*\// : /"""([^]*?)"""|"((?:[^"\\\n]|\\.)*)"/
    return [...code.matchAll(new RegExp(pattern, 'g'))].map((match) => ({
      line: lineOf(code, match.index),
      text: joinLines(match[1] ?? match[2] ?? ''),
    }))
  }
  const found: { start: number; end: number; text: string }[] = []
  for (const { type, value, start, end } of parse(file).comments) {
    const last = found.at(-1)
    if (type === 'Line' && last !== undefined && code.slice(last.end, start).trim() === '') {
      last.text += ` ${value.trim()}`
      last.end = end
    } else found.push({ start, end, text: joinLines(value.replace(/^\*/, '')) })
  }
  return found.map(({ start, text }) => ({ line: lineOf(code, start), text }))
}

/** Returns comments that run to the end of their line. Those below one another are one; an indented line in them is a command. */
function lineCommentsOf(code: string, pattern: RegExp): Text[] {
  const found: Text[] = []
  let isOpen = false
  for (const [index, line] of code.split('\n').entries()) {
    const [, comment] = pattern.exec(line.trim()) ?? []
    const last = found.at(-1)
    if (comment !== undefined && isOpen && last !== undefined)
      found[found.length - 1] = {
        line: last.line,
        text: `${last.text}${/^(?:$| )/.test(comment) ? '\n\n' : ' '}${comment.trim()}`,
      }
    else if (comment !== undefined) found.push({ line: index + 1, text: comment.trim() })
    isOpen = comment !== undefined
  }
  return found
}

/** Returns texts in quotes that are sentences: errors, help, logs, test names. A long template of a test is a program or a page. */
function messagesOf(file: string): Text[] {
  if (!file.endsWith('.ts')) return []
  const code = readSource(file)
  const found: Text[] = []
  const isTest = /[./]test[./]/.test(file)
  const keep = (at: number, text: string) => {
    if (text.includes(' ') && !(isTest && text.includes('\n')))
      found.push({ line: lineOf(code, at), text: text.trim() })
  }
  visit(parse(file).program)
  return found

  function visit(node: unknown): void {
    if (typeof node !== 'object' || node === null) return
    if ('type' in node && 'start' in node) {
      const at = Number(node.start)
      if (node.type === 'Literal' && 'value' in node && typeof node.value === 'string') keep(at, node.value)
      if (node.type === 'TemplateLiteral' && 'quasis' in node)
        keep(at, (node.quasis as { value: { raw: string } }[]).map(({ value }) => value.raw).join('x'))
    }
    for (const member of Object.values(node)) visit(member)
  }
}

/** Returns the paragraphs, items and cells of a Markdown page, without code and links. */
function proseOf(page: string): Text[] {
  const found: Text[] = []
  let isCode = false
  let isOpen = false
  for (const [index, line] of page.split('\n').entries()) {
    if (/^\s*```/.test(line)) isCode = !isCode
    const text = line.replaceAll(/\]\([^)]*\)/g, ']').replaceAll(/`[^`]*`/g, '`x`')
    const starts = !isOpen || /^\s*(?:[-*]|\d+\.)\s/.test(line)
    if (isCode || /^\s*(?:```|#|\||<|>|\[\d+\]|$)/.test(line)) {
      isOpen = false
      if (!isCode && line.startsWith('|'))
        for (const cell of text.split('|')) found.push({ line: index + 1, text: cell.trim() })
      continue
    }
    if (starts) found.push({ line: index + 1, text: text.replace(/^\s*(?:[-*]|\d+\.)\s/, '').trim() })
    else {
      const last = found.pop() as Text
      found.push({ line: last.line, text: `${last.text} ${text.trim()}` })
    }
    isOpen = true
  }
  return found
}

/** Returns the texts of a document: all of them, or those under a name for prose. They have no line. */
function proseIn(value: unknown, isProse: boolean): Text[] {
  if (typeof value === 'string') return isProse ? [{ line: 0, text: value }] : []
  if (typeof value !== 'object' || value === null) return []
  const isList = Array.isArray(value)
  return Object.entries(value).flatMap(([name, member]) =>
    proseIn(member, isProse || (!isList && ['description', 'summary'].includes(name))),
  )
}

/** Returns the sentences of a text. A full stop in an abbreviation or a number ends none. */
function sentencesOf(text: string): string[] {
  return text
    .split(/(?<=[.!?][)»”*]*)\s+(?=[\p{Lu}`«"'([*@<]|\d|- )|\n\s*\n|\n {2,}|(?<=[.;]) {2,}/u)
    .map((sentence) => sentence.replaceAll(/\s+/g, ' ').trim())
}

/** Counts the words. Code is one word; what stands in brackets does not count. */
function wordsOf(sentence: string): number {
  const plain = sentence.replaceAll(/`[^`]*`/g, 'x').replaceAll(/\([^()]*\)|\[[^[\]]*\]/g, '')
  return plain.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length
}

/** Returns the sentences that are too long. A text that is code or a list of names is no sentence. */
function longSentences({ line, text }: Text): Text[] {
  return sentencesOf(text)
    .filter(
      (sentence) =>
        /^[\p{Lu}*«"'(-]/u.test(sentence) &&
        /[.:!?]$/.test(sentence) &&
        !/[{}=<>|;]\s*\w+\(|=>|\w\|\w|[$\\]/.test(sentence),
    )
    .filter((sentence) => wordsOf(sentence) > longest.sentence)
    .map((sentence) => ({ line, text: sentence }))
}
