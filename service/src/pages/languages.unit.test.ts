import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  countryName,
  formatPercent,
  formatSeconds,
  formatTime,
  type Language,
  languages,
  negotiateLanguage,
  parseLanguage,
  textsOf,
} from './languages.ts'

describe('negotiateLanguage', () => {
  for (const [header, language] of [
    [undefined, 'en'],
    ['', 'en'],
    ['de', 'de'],
    ['de-AT,de;q=0.9,en;q=0.8', 'de'],
    ['fr-CH, fr;q=0.9, en;q=0.8, de;q=0.7, *;q=0.5', 'fr'],
    ['ja,ar-EG;q=0.5,es;q=0.4', 'ar'],
    ['en;q=0.1,es;q=0.2', 'es'],
    ['de;q=0,fr;q=0.1', 'fr'],
    ['zh-CN', 'en'],
    ['DE-de', 'de'],
    [`${'x,'.repeat(5_000)}de`, 'en'],
  ] as const)
    it(`answers ${language} to «${header?.slice(0, 40)}»`, () => assert.equal(negotiateLanguage(header), language))

  it('knows only its own names', () => {
    assert.deepEqual(
      [parseLanguage('AR'), parseLanguage('xx'), parseLanguage('constructor'), parseLanguage(null)],
      ['ar', null, null, null],
    )
  })
})

/** The sentences of a catalogue by their path, such as `product.brand`. */
function sentencesOf(texts: object, path = ''): Record<string, string> {
  const entries = Object.entries(texts).map(([key, value]: [string, string | object]) =>
    typeof value === 'string' ? { [path + key]: value } : sentencesOf(value, `${path}${key}.`),
  )
  return Object.assign({}, ...entries) as Record<string, string>
}

/** Faults of the type in any language. */
const badType = { 'a straight mark': /['"]/, 'three points': /\.\.\./ }
const openingSpace = /(?<![\u{a0}\u{202f}])[;!?»]|(?<![\u{a0}]|https?|\beip155):(?!\S)/u
const badTypeOf: Readonly<Record<Language, Readonly<Record<string, RegExp>>>> = {
  en: { 'a mark of another language': /[«»„]/, 'a space before …': /\s…/ },
  de: { 'a mark of another language': /[«»”]/, 'no space before …': /\S…/ },
  fr: {
    'a mark of another language': /[“”„]/,
    'a space before …': /\s…/,
    'a space at which a line breaks': openingSpace,
    'no space behind «': /«(?!\u{a0})/u,
  },
  es: { 'a mark of another language': /[“”„]/, 'a space before …': /\s…/ },
  ar: { 'a mark of another language': /[“”„,;?]/, 'a space before …': /\s…/ },
}

/** Words that stand for an item and have a gender. */
const pronouns: Readonly<Record<Exclude<Language, 'en'>, RegExp>> = {
  de: /(?<!gibt )\bes\b/i,
  fr: /\b(?:il|elle)\b|-l[ea]\b|\bl’(?!article)\p{L}|\b(?:ne|vous) l[ea] /iu,
  es: /\p{L}(?:[aeiáéí]|[aei]r|se)l[oa]s?\b|\bl[oa] (?:ha|use|compre|venda)\b|\bsuy[oa]\b/iu,
  ar: /\p{L}{2,}ها(?!\p{L})/u,
}

describe('the texts', () => {
  const english = sentencesOf(textsOf.en)
  /** Some languages name the maker without the name, which then stands in parentheses behind it. */
  const places = (text = '') => (text.replaceAll('({brand})', '{maker}').match(/\{\w+\}/g) ?? []).toSorted()
  for (const language of languages)
    it(`of ${language} are complete, with the same places as in English, without a stray space`, () => {
      const sentences = sentencesOf(textsOf[language])
      assert.deepEqual(Object.keys(sentences), Object.keys(english))
      for (const [name, text] of Object.entries(sentences)) {
        assert.deepEqual(places(text), places(english[name]), name)
        assert.equal(text, text.trim().replace(/ {2,}/g, ' '), name)
        assert.notEqual(text, '', name)
      }
    })

  it('are set in the type of their language: quotation marks, spaces before punctuation, marks that open a question', () => {
    for (const language of languages)
      for (const [name, text] of Object.entries(sentencesOf(textsOf[language])))
        for (const [fault, pattern] of Object.entries({ ...badType, ...badTypeOf[language] }))
          assert.doesNotMatch(text, pattern, `${language} ${name}: ${fault}`)
    for (const [name, text] of Object.entries(sentencesOf(textsOf.es)))
      assert.equal(text.split('¿').length, text.split('?').length, name)
  })

  it('put no noun behind a number whose form would depend on it in Arabic', () => {
    for (const [name, text] of Object.entries(sentencesOf(textsOf.ar)))
      assert.doesNotMatch(text, /\{(?:count|left|most|taps)\} \p{L}/u, name)
    for (const language of languages)
      for (const [name, text] of Object.entries(sentencesOf(textsOf[language])))
        assert.doesNotMatch(text, /\{seconds\} (?:sec|sek|seg|ثا|ثو)/i, `${language} ${name}: the span has its word`)
  })

  it('name the item behind its kind by no pronoun, because kinds have different genders', () => {
    for (const [language, pattern] of Object.entries(pronouns))
      for (const [name, text] of Object.entries(sentencesOf(textsOf[language as Language]))) {
        const [, ...behind] = text.split('{this}')
        assert.doesNotMatch(behind.join('{this}'), pattern, `${language} ${name}`)
      }
  })

  it('use «the maker» only where its article and its case fit', () => {
    for (const [language, pattern] of [
      ['de', /\b(?:bei|von|mit|dem|den|zu) \{maker\}|Sie .*: \{maker\}/i],
      ['fr', /\b(?:à|de) \{maker\}/],
    ] as const)
      for (const [name, text] of Object.entries(sentencesOf(textsOf[language])))
        assert.doesNotMatch(text, pattern, `${language} ${name}`)
  })

  it('call nothing checked at the foot, which pages without a tap have too', () => {
    for (const language of languages)
      assert.doesNotMatch(textsOf[language].frame.checkedBy, /check|geprüft|vérifi|comprob|verific|فحص|تحقق/i, language)
  })

  it('forbid a payment in every language where there is no answer', () => {
    const forbids = { en: /Do not pay/, de: /Bezahlen Sie nicht/, fr: /Ne payez pas/, es: /No pague/, ar: /لا تدفع/ }
    for (const language of languages) {
      const { notices, situations } = textsOf[language]
      for (const text of [notices.offlineText, situations.chain.new.steps[1], situations.kept.new.steps[2]])
        assert.match(text ?? '', forbids[language], language)
    }
  })

  it('are translated: hardly any is the same as in English', () => {
    for (const language of languages.filter((one) => one !== 'en')) {
      const sentences = Object.entries(sentencesOf(textsOf[language]))
      const same = sentences.filter(([name, text]) => english[name] === text)
      assert.ok(same.length < 8, `${language}: ${same.map(([name]) => name).join(' ')}`)
    }
  })

  it('say that a record without a tap proves nothing, in every language', () => {
    for (const language of languages) assert.ok(textsOf[language].situations.untapped.new.say.length > 30, language)
    assert.match(textsOf.en.situations.untapped.new.say, /proves nothing about the item in front of you/)
  })

  it('say in the same words beside a report, and in its place, that nothing was tapped yet', () => {
    for (const language of languages) {
      const { situations, verdict } = textsOf[language]
      const [sentence = ''] = situations.untapped.new.say.split('.')
      assert.ok(verdict.reportUntapped.includes(sentence), language)
    }
  })
})

describe('formats', () => {
  it('write a time with its zone', () => {
    for (const language of languages) assert.match(formatTime(language, 1_795_168_212), /2026.*UTC|UTC.*2026/)
    assert.equal(formatTime('de', 0), '1. Januar 1970 um 00:00 UTC')
  })

  it('write a span of seconds in the plural form of the language', () => {
    assert.deepEqual(
      [1, 2, 5, 30].map((seconds) => formatSeconds('ar', seconds)),
      ['ثانية', 'ثانيتان', '5 ثوان', '30 ثانية'],
    )
    assert.deepEqual(
      [1, 30].map((seconds) => formatSeconds('en', seconds)),
      ['1 second', '30 seconds'],
    )
    assert.equal(formatSeconds('de', 1), '1 Sekunde')
  })

  it('write a percentage with the decimal mark of the language, and all of its digits', () => {
    assert.deepEqual(
      languages.map((language) => formatPercent(language, 12.123456).replace(/[\s\u{200e}]/gu, '')),
      ['12.123456%', '12,123456%', '12,123456%', '12,123456%', '12.123456%'],
    )
  })

  it('name a country in the language of the page', () => {
    assert.deepEqual(
      [countryName('fr', 'CH'), countryName('de', 'CH'), countryName('en', 'QQ')],
      ['Suisse', 'Schweiz', undefined],
    )
  })

  it('promises no absence of cookies, because TAP_BIND and TAP_CHALLENGE set one', () => {
    for (const language of languages)
      assert.doesNotMatch(textsOf[language].frame.privacy, /cookie|تعريف ارتباط/i, language)
  })
})
