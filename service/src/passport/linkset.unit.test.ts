import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gs1LinksetErrors, untpLinksetErrors } from '../../test/support/passport/documents.ts'
import { baseUrl, dataOf } from '../../test/support/passport/fixtures.ts'
import { signedForms } from '../http/accept.ts'
import { classLinkset, itemLinkset, linksetHeader, topics, type ItemInput } from './linkset.ts'

type AnyLinkset = { linkset: Record<string, unknown>[] }
const sample = dataOf<AnyLinkset>('gs1/sample-linkset.json')
const input: ItemInput = {
  baseUrl,
  tokenId: 1042n,
  item: { gtin: '09520123456788', serial: 'HFJ-000417' },
  languages: ['en'],
  signedForms: [],
  topics: [],
}
const variants: readonly (readonly [string, object])[] = [
  ['of an item with facts on every topic', itemLinkset({ ...input, topics })],
  ['of a batch', classLinkset({ ...input, subject: { kind: 'batch', gtin: '09520123456788', batch: 'L/1' }, topics })],
  ['of an item', itemLinkset(input)],
  [
    'of an item with every character of a serial',
    itemLinkset({ ...input, item: { ...input.item, serial: '!"%&\'()*+,-./:;<=>?_' } }),
  ],
  [
    'with signed forms and five languages',
    itemLinkset({ ...input, signedForms, languages: ['en', 'de', 'fr', 'es', 'ar'] }),
  ],
  ['on a local host', itemLinkset({ ...input, baseUrl: 'http://127.0.0.1:8080' })],
  ['of a class', classLinkset({ ...input, subject: { kind: 'class', gtin: '09520123456788' } })],
]

describe('a linkset', () => {
  for (const [what, linkset] of variants) {
    it(`${what} satisfies the GS1 and the UNTP schema`, () => {
      assert.deepEqual(gs1LinksetErrors(linkset), [])
      assert.deepEqual(untpLinksetErrors(linkset), [])
    })

    it(`${what} has one default link an entry, with href and title only, and typed other links`, () => {
      for (const { anchor: _anchor, itemDescription: _text, ...relations } of (linkset as AnyLinkset).linkset) {
        for (const [relation, links] of Object.entries(relations) as [string, object[]][]) {
          if (!relation.endsWith('/defaultLink')) assert.ok(links.every((link) => 'type' in link))
          else
            assert.deepEqual(
              links.map((link) => Object.keys(link)),
              [['href', 'title']],
            )
        }
      }
    })
  }

  it('has the links of the sample in words of its own; the class has no page of its own maker', () => {
    const [item, product] = (itemLinkset(input) as unknown as AnyLinkset).linkset
    const { 'https://ref.gs1.org/voc/pip': pip, ...rest } = item ?? {}
    assert.deepEqual(JSON.parse(JSON.stringify(rest)), {
      ...sample.linkset[0],
      itemDescription: 'Product 1042, one serialised item',
    })
    assert.ok(Array.isArray(pip) && pip.length === 2)
    assert.deepEqual(Object.keys(product ?? {}), Object.keys(sample.linkset[1] ?? {}))
  })

  it('asks for the tap only where the credential is', () => {
    const links = JSON.stringify(itemLinkset({ ...input, signedForms })).match(/\{[^{}]*"fwqs":true[^{}]*\}/g) ?? []
    assert.equal(links.length, 3)
    for (const link of links) assert.match(link, /"href":"https:\/\/verify\.example\/api\/dpp\/01\//)
  })

  it('is announced by a Link header', () => {
    assert.equal(
      linksetHeader(`${baseUrl}/01/09520123456788`),
      '<https://verify.example/01/09520123456788?linkType=linkset>; rel="linkset"; type="application/linkset+json"',
    )
  })
})

describe('the schemas', () => {
  it('accept the sample, and refuse a link without title or a relation with a hyphen in an IRI', () => {
    assert.deepEqual([...gs1LinksetErrors(sample), ...untpLinksetErrors(sample)], [])
    const anchor = { anchor: 'https://a.example/1', itemDescription: 'x' }
    for (const entry of [
      { ...anchor, 'https://ref.gs1.org/voc/dpp': [{ href: 'https://a.example' }] },
      { ...anchor, 'https://a-b.example/x': [] },
    ])
      for (const errors of [gs1LinksetErrors, untpLinksetErrors]) assert.notDeepEqual(errors({ linkset: [entry] }), [])
  })
})
