import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { fill, html, jsonBlock, markupOf, trustedHtml, type Html } from './html.ts'

const hostile = fc.stringMatching(/^[<>&"'`=/{}\sa-z\u2028]{0,30}$/)

describe('html', () => {
  it('lets no text leave its element or its attribute', () => {
    fc.assert(
      fc.property(hostile, hostile, (title, text) => {
        const made = markupOf(html`<p title="${title}">${text}</p>`)
        const [, attribute, content] = /^<p title="([^"]*)">([^<]*)<\/p>$/s.exec(made) ?? []
        assert.deepEqual([decoded(attribute), decoded(content)], [title, text])
      }),
    )
  })

  it('takes markup only from `html`: an object of the same look is refused by its type and shows nothing', () => {
    const forged = JSON.parse('{"markup":"<b>","Symbol(html)":"<b>"}') as Html
    assert.equal(markupOf(html`<p>${forged}</p>`), '<p>undefined</p>')
    assert.equal(markupOf(html`<p>${[html`<b>${'<'}</b>`, 1, 2n, null, false, undefined]}</p>`), '<p><b>&lt;</b>12</p>')
  })

  it('sends no indentation of the source, and keeps that of values', () => {
    const value = 'a\n   b'
    const made = html`<ul>
      <li>${value}</li>
    </ul>`
    assert.equal(markupOf(made), '<ul>\n<li>a\n   b</li>\n</ul>')
  })

  it('fills places by name, in the order of the language', () => {
    assert.equal(markupOf(fill('Ask ({a}), ({b}).', { a: '', b: 'B' })), 'Ask, (B).')
    assert.equal(markupOf(fill('<{b}> {a}', { a: html`<i>1</i>`, b: '&' })), '&lt;&amp;&gt; <i>1</i>')
  })

  it('writes JSON that no text in it can end, and that reads back the same', () => {
    fc.assert(
      fc.property(fc.dictionary(hostile, hostile), (value) => {
        const made = markupOf(jsonBlock('x', 'application/ld+json', JSON.stringify(value)))
        const [, json = ''] =
          /^<script type="application\/ld\+json" id="x">([^<>&\u2028\u2029]*)<\/script>$/.exec(made) ?? []
        assert.deepEqual(JSON.parse(json), JSON.parse(JSON.stringify(value)))
      }),
    )
    assert.match(
      markupOf(jsonBlock('x', 'application/json', '{"a":"</script><!--"}')),
      /u003c\/script\\u003e\\u003c!--/,
    )
  })

  it('takes trusted markup as it is, from six files: here, the documentation and its code, the icons, the seals, the marks of brands', () => {
    assert.equal(markupOf(html`${trustedHtml('<path d="M0"/>')}`), '<path d="M0"/>')
    const source = new URL('../', import.meta.url)
    const callers = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter(
      (name) => /(?<!\.test)\.ts$/.test(name) && readFileSync(new URL(name, source), 'utf8').includes('trustedHtml('),
    )
    assert.deepEqual(callers.toSorted(), [
      'pages/brands/theme.ts',
      'pages/docs/highlight.ts',
      'pages/docs/markdown.ts',
      'pages/html.ts',
      'pages/icons.ts',
      'pages/verdict/seals.ts',
    ])
  })
})

function decoded(text: string | undefined): string | undefined {
  const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }
  return text?.replace(/&(amp|lt|gt|quot|#39);/g, (_all, name: string) => entities[name] ?? '')
}
