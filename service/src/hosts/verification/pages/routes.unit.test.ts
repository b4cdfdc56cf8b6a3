import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseSearch } from './routes.ts'

describe('parseSearch', () => {
  for (const [query, path] of [
    ['token=42', '/token/42'],
    ['token=%20007%20', '/token/7'],
    ['gtin=09520003000001&serial=S7-1182', '/01/09520003000001/21/S7-1182'],
    ['gtin=9520003000001&serial=S7-1182', '/01/09520003000001/21/S7-1182'],
    ['gtin=9+520003-000001&serial=a%2Fb', '/01/09520003000001/21/a%2Fb'],
    ['gtin=96385074&serial=1', '/01/00000096385074/21/1'],
    ['gtin=09520003000001', '/01/09520003000001'],
    ['token=٤٢', '/token/42'],
    ['token=\u200e42', '/token/42'],
    ['gtin=۹۵۲۰۰۰۳-۰۰۰۰۰۱&serial=S7-١١٨٢', '/01/09520003000001/21/S7-1182'],
  ] as const)
    it(`leads «${query}» to ${path}`, () =>
      assert.deepEqual(parseSearch(new URLSearchParams(query)), { kind: 'path', path }))

  for (const [query, wrong] of [
    ['token=', 'token'],
    ['token=0x2a', 'token'],
    [`token=${'9'.repeat(79)}`, 'token'],
    ['gtin=&serial=1', 'gtin'],
    ['gtin=09520003000002&serial=1', 'gtin'],
    ['gtin=123456789&serial=1', 'gtin'],
    ['gtin=09520003000001&serial=..', 'serial'],
    [`gtin=09520003000001&serial=${'1'.repeat(21)}`, 'serial'],
    ['gtin=09520003000001&serial=a b', 'serial'],
  ] as const)
    it(`says that the ${wrong} of «${query.slice(0, 40)}» is wrong, and keeps what was typed`, () => {
      const search = parseSearch(new URLSearchParams(query))
      assert.ok(search.kind === 'wrong' && search.view.wrong === wrong)
      const typed = new URLSearchParams(query)
      assert.equal(search.view[wrong], typed.get(wrong))
    })

  it('is no search without a field', () => {
    assert.deepEqual(parseSearch(new URLSearchParams('lang=de&serial=1')), { kind: 'none' })
  })
})
