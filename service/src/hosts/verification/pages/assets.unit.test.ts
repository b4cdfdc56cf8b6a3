import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseSync } from 'oxc-parser'
import { pageAssets } from './assets.ts'

describe('the assets of the pages', () => {
  const { folder, respond } = pageAssets()
  const get = (name: string, ifNoneMatch?: string) => respond(`${folder}/${name}`, ifNoneMatch)
  /** Visits each script once, and those that `visit` returns the specifiers of. */
  async function visited(names: readonly string[], visit: (name: string, text: string) => readonly string[]) {
    const seen = new Set(names)
    for (const name of seen) {
      const response = get(name)
      assert.equal(response.status, 200, name)
      for (const specifier of visit(name, await response.text()))
        seen.add(new URL(specifier, `http://x/${name}`).pathname.slice(1))
    }
    return seen
  }

  it('are kept for ever under the hash of their bytes, and for no other visit under another one', async () => {
    const style = get('page.css')
    assert.equal(style.headers.get('cache-control'), 'public, max-age=31536000, immutable')
    const old = respond('/assets/0123456789abcdef/page.css', undefined)
    assert.deepEqual([old.status, old.headers.get('cache-control')], [200, 'no-cache'])
    assert.equal(await old.text(), await style.text())
    assert.equal(get('page.css', style.headers.get('etag') ?? '').status, 304)
  })

  it('have their types and nothing else is below their path', () => {
    for (const [name, type] of [
      ['page.css', 'text/css; charset=utf-8'],
      ['page.js', 'text/javascript; charset=utf-8'],
      ['icon.svg', 'image/svg+xml; charset=utf-8'],
      ['offline.js', 'text/javascript; charset=utf-8'],
      ['offline.html', 'text/html; charset=utf-8'],
      ['verdict/check/recheck.js', 'text/javascript; charset=utf-8'],
    ] as const)
      assert.deepEqual(
        [get(name).headers.get('content-type'), get(name).headers.get('x-content-type-options')],
        [type, 'nosniff'],
      )
    for (const name of [
      '',
      'page.ts',
      '../page.css',
      'verdict/index.js',
      'constructor',
      'verdict/../../../package.json',
    ])
      assert.equal(get(name).status, 404, name)
  })

  it('let the worker stand for the host and load its files, and give the offline page the policy of a page', () => {
    const worker = get('offline.js').headers
    assert.equal(worker.get('service-worker-allowed'), '/')
    assert.equal(worker.get('content-security-policy'), "default-src 'none'; connect-src 'self'")
    assert.equal(get('page.js').headers.get('service-worker-allowed'), null)
    const page = get('offline.html').headers
    assert.match(page.get('content-security-policy') ?? '', /^default-src 'none'; style-src 'self'.*form-action 'none'/)
    assert.equal(page.get('referrer-policy'), 'no-referrer')
  })

  it('let pages of every origin show the icon, which the agent card and the registration name, and no other file', () => {
    const policyOf = (name: string) => get(name).headers.get('cross-origin-resource-policy')
    assert.deepEqual(['icon.svg', 'page.js', 'page.css'].map(policyOf), ['cross-origin', 'same-origin', 'same-origin'])
  })

  it('hold every module that the client library imports, as JavaScript with relative specifiers', async () => {
    const seen = await visited(['verdict/check/recheck.js', 'verdict/rules/owner.js'], (name, text) => {
      assert.ok(!/\.ts'|sourceMappingURL|^import type/m.test(text), name)
      const specifiers = [...text.matchAll(/^(?:import|export|\})[^'"\n]*\bfrom '([^']+)'/gm)].map(
        ([, one = '']) => one,
      )
      for (const specifier of specifiers) assert.match(specifier, /^\.\.?\//, name)
      return specifiers
    })
    assert.ok(seen.has('noble/hashes/sha3.js') && seen.size > 10)
  })

  it('hold nothing that the oldest browsers of docs/rest-api.md cannot parse or do not have', async () => {
    const broken: string[] = []
    const seen = await visited(['page.js', 'offline.js', 'docs.js'], (name, text) => {
      broken.push(...newerIn(name, text).map((what) => `${name}: ${what}`))
      return [...text.matchAll(/(?:\bfrom |\bimport\(|^import )'(\.\.?\/[^']+)'/gm)].map(([, one = '']) => one)
    })
    for (const name of ['passkey.js', 'scan.js', 'check.js', 'qr/decode.js', 'verdict/rules/clean-text.js'])
      assert.ok(seen.has(name), name)
    assert.deepEqual(broken, [])
    assert.equal(
      newerIn('a.js', 'URL.canParse(a); /(?<=a)b/u; /[a--b]/v; class A { static {} }; a.ariaLabel').length,
      5,
    )
  })

  it('hold styles whose rules an older browser understands whole', async () => {
    for (const name of ['page.css', 'lookup.css', 'docs.css']) {
      const text = (await get(name).text()).replace(/\/\*.*?\*\//gs, '')
      assert.equal(/@media[^{]*[<>][^{]*/.exec(text)?.[0], undefined, `${name}: Safari before 16.4 ignores the query`)
      for (const [, selectors = ''] of text.matchAll(/([^{}]+)\{/g)) {
        const list = selectors.split(/,(?![^(]*\))/)
        const isMixed = list.some((one) => one.includes(':has(')) && list.some((one) => !one.includes(':has('))
        assert.ok(!isMixed, `${name}: Firefox before 121 drops the rule ${selectors.trim()}`)
      }
    }
  })
})

/** Functions that Safari 15.4, Firefox 115 or Chrome 109 lacks. */
const newer =
  /^(?:URL\.(?:canParse|parse)|AbortSignal\.(?:any|timeout)|Promise\.(?:withResolvers|try)|(?:Object|Map)\.groupBy|Array\.fromAsync|Intl\.(?:DurationFormat|Segmenter)|.*\.(?:ariaLabel|isWellFormed|toWellFormed|toSorted|toReversed|toSpliced|checkVisibility))$/

type Node = Readonly<{
  type?: string
  regex?: { pattern: string; flags: string }
  object?: Node
  property?: Node
  name?: string
}>

/** Lists what is newer than the oldest browsers in a script. */
function newerIn(name: string, text: string): string[] {
  const found: string[] = []
  JSON.stringify(parseSync(name, text, { lang: 'js' }).program, (_key, value: unknown) => {
    const { type, regex, object, property } = (value ?? {}) as Node
    const member = type === 'MemberExpression' ? `${object?.name}.${property?.name}` : ''
    if (newer.test(member)) found.push(member)
    if (type === 'StaticBlock') found.push('a static block')
    if (regex && (/\(\?<[=!]/.test(regex.pattern) || regex.flags.includes('v')))
      found.push(`/${regex.pattern}/${regex.flags}`)
    return typeof value === 'bigint' ? String(value) : value
  })
  return found
}
