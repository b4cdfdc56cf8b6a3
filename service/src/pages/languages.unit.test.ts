import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { countryName, formatTime, languages, negotiateLanguage, parseLanguage, textsOf } from './languages.ts'

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
})

describe('formats', () => {
  it('write a time with its zone', () => {
    for (const language of languages) assert.match(formatTime(language, 1_795_168_212), /2026.*UTC|UTC.*2026/)
    assert.equal(formatTime('de', 0), '1. Januar 1970 um 00:00 UTC')
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
