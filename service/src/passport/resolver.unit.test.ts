import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { baseUrl } from '../../test/support/passport/fixtures.ts'
import { classLinkset, itemLinkset, topics } from './linkset.ts'
import { locationOf, resolveClass, resolveItem, resolverDescription, type ResolverAnswer } from './resolver.ts'

const item = { gtin: '09520123456788', serial: 'HFJ-000417' }
const page = `${baseUrl}/01/09520123456788/21/HFJ-000417`
const passport = `${baseUrl}/api/dpp/01/09520123456788/21/HFJ-000417`
const verdict = `${baseUrl}/api/asset/1042`
const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
const ask = (linkType: string | null, accept: string | null = browser) =>
  resolveItem({ baseUrl, tokenId: 1042n, item, linkType, accept, topics, hasTap: true })
const product = `${baseUrl}/api/product/01/09520123456788/21/HFJ-000417`
const subject = { kind: 'class', gtin: item.gtin } as const
const to = (target: string, keepTap = false): ResolverAnswer => ({ kind: 'redirect', target, keepTap })

const rows: readonly (readonly [string | null, string | null, ResolverAnswer])[] = [
  [null, browser, { kind: 'page' }],
  [null, null, { kind: 'page' }],
  [null, 'application/json', to(passport, true)],
  [null, 'application/vc+jwt', to(passport, true)],
  [null, 'application/vc, text/html', { kind: 'page' }],
  [null, 'application/json, */*', { kind: 'page' }],
  ['gs1:defaultLink', browser, { kind: 'page' }],
  ['linkset', browser, { kind: 'linkset' }],
  ['all', browser, { kind: 'linkset' }],
  [null, 'application/linkset+json', { kind: 'linkset' }],
  [null, 'application/linkset+json, */*', { kind: 'linkset' }],
  [null, 'text/html, application/linkset+json;q=0.5', { kind: 'page' }],
  [null, 'application/linkset+json;q=0', { kind: 'page' }],
  ['gs1:dpp', 'application/ld+json', to(passport, true)],
  ['dpp', 'application/json', to(passport, true)],
  ['https://ref.gs1.org/voc/dpp', 'application/vc+jwt', to(passport, true)],
  ['gs1:dpp', '*/*', to(passport, true)],
  ['gs1:dpp', browser, { kind: 'page' }],
  ['gs1:dpp', 'text/html;q=0.5, application/ld+json', to(passport, true)],
  ['gs1:pip', browser, to(page)],
  ['gs1:pip', '*/*', to(page)],
  ['gs1:pip', 'application/ld+json', to(product)],
  ['gs1:recyclingInfo', browser, to(page)],
  ['gs1:sustainabilityInfo', 'application/json', to(product)],
  ['gs1:verificationService', browser, to(verdict)],
  ['recallStatus', browser, to(verdict)],
  ['gs1:recipeInfo', browser, { kind: 'not-found' }],
  ['https://other.example/voc/dpp', browser, { kind: 'not-found' }],
  ['', browser, { kind: 'not-found' }],
  ['__proto__', browser, { kind: 'not-found' }],
  ['constructor', browser, { kind: 'not-found' }],
  ['DPP', browser, { kind: 'not-found' }],
]

describe('a Digital Link', () => {
  for (const [linkType, accept, answer] of rows) {
    it(`with linkType ${linkType} and Accept ${accept} is answered with ${answer.kind}`, () => {
      assert.deepEqual(ask(linkType, accept), answer)
    })
  }

  it('without a tap, as on a printed label, leads to the public passport where JSON is preferred', () => {
    const untapped = (linkType: string | null, accept: string) =>
      resolveItem({ baseUrl, tokenId: 1042n, item, linkType, accept, topics, hasTap: false })
    for (const accept of ['application/ld+json', 'application/json'])
      assert.deepEqual(untapped(null, accept), to(product))
    assert.deepEqual(untapped(null, browser), { kind: 'page' })
    assert.deepEqual(untapped(null, 'application/vc+jwt'), to(passport, true))
    assert.deepEqual(untapped('gs1:dpp', 'application/ld+json'), to(passport, true))
  })

  it('of a class has a page, public JSON, a linkset and no passport of an item', () => {
    const of = (linkType: string | null, accept: string | null = null) =>
      resolveClass({ baseUrl, subject, topics: [], linkType, accept, hasTap: false })
    assert.deepEqual(
      [null, 'linkset', 'gs1:pip', 'gs1:dpp'].map((linkType) => of(linkType).kind),
      ['page', 'linkset', 'redirect', 'not-found'],
    )
    assert.deepEqual(of(null, 'application/ld+json'), to(`${baseUrl}/api/product/01/${item.gtin}`))
  })

  it('knows exactly the link types that its linkset lists', () => {
    const typesOf = (linkset: object) => [...new Set(JSON.stringify(linkset).match(/(?<=ref\.gs1\.org\/voc\/)\w+/g))]
    for (const type of typesOf(itemLinkset({ baseUrl, tokenId: 1042n, item, languages: [], signedForms: [], topics })))
      assert.notEqual(ask(type).kind, 'not-found', type)
    for (const type of typesOf(classLinkset({ baseUrl, subject, languages: [], topics })))
      assert.notEqual(
        resolveClass({ baseUrl, subject, topics, linkType: type, accept: null, hasTap: false }).kind,
        'not-found',
        type,
      )
  })
})

describe('a redirect', () => {
  const tap = 'picc=AA&cmac=BB'

  it('to the credential keeps the whole query, byte for byte', () => {
    assert.equal(
      locationOf({ kind: 'redirect', target: passport, keepTap: true }, `linkType=gs1:dpp&${tap}&a=%2f+b`),
      `${passport}?linkType=gs1:dpp&${tap}&a=%2f+b`,
    )
  })

  it('elsewhere drops the tap, however its names are written', () => {
    const query = `${tap}&linkType=recallStatus&p%69cc=1&CMAC=2&x=picc&picc`
    assert.equal(
      locationOf({ kind: 'redirect', target: verdict, keepTap: false }, query),
      `${verdict}?linkType=recallStatus&x=picc`,
    )
  })

  it('to the page drops the link type too, so that it ends', () => {
    assert.equal(locationOf({ kind: 'redirect', target: page, keepTap: false }, `linkType=pip&${tap}`), page)
    assert.equal(
      locationOf({ kind: 'redirect', target: page, keepTap: false }, `linkType=pip&lang=de&%zz=1`),
      `${page}?lang=de&%zz=1`,
    )
  })

  it('never carries picc or cmac away from the credential', () => {
    const spelling = fc.constantFrom('picc', 'cmac', 'PICC', '%70icc', 'cma%63', 'a', 'linkType')
    fc.assert(
      fc.property(fc.array(fc.tuple(spelling, fc.constantFrom('', '=1', '==', '=%'))), (pairs) => {
        const query = pairs.map(([name, value]) => name + value).join('&')
        const names = [
          ...new URL(locationOf({ kind: 'redirect', target: verdict, keepTap: false }, query)).searchParams.keys(),
        ]
        return names.every((name) => !/picc|cmac/i.test(name))
      }),
    )
  })
})

describe('the resolver description', () => {
  it('lists the one key and the one vocabulary that are supported', () => {
    assert.deepEqual(resolverDescription(baseUrl, 'Example'), {
      name: 'Example',
      resolverRoot: 'https://verify.example',
      supportedPrimaryKeys: ['01'],
      supportedLinkType: [{ namespace: 'https://ref.gs1.org/voc/', prefix: 'gs1:' }],
      validatesAIcombinations: true,
      linkTypeDefaultCanBeLinkset: false,
      supportsLanguageVariants: false,
    })
  })
})
