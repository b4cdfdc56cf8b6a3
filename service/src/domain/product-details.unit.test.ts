/** Product details: what may be stored, and what is read of a hostile document. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { detailsError, parseDetails, pictureHashes, productKinds } from './product-details.ts'

const webp = 'ab'.repeat(32)
const avif = 'cd'.repeat(32)
const picture = { webp, avif, width: 640, height: 480, alt: 'A satchel from the front.' }
const full = {
  kind: 'bag',
  language: 'en',
  gtin: '09520003000001',
  batch: 'L-2026/04',
  model: { name: 'Satchel No. 7', number: 'S7', description: 'One line.\nAnother.' },
  categories: [{ code: '53121600', name: 'Bags', scheme: 'https://www.unspsc.org/' }],
  picture,
  drawing: { webp: 'ef'.repeat(32), width: 640, height: 480 },
  features: [{ title: 'Slanted stitch', text: 'Nine to the inch.', picture, x: 70, y: 60 }],
  care: ['Wipe it dry.'],
  repair: { text: 'In every shop.', url: 'https://orvelle.example/repair' },
  spareParts: [{ name: 'Strap', number: 'S7-ST', until: '2036-01-01', url: 'https://orvelle.example/parts' }],
  substances: [{ name: 'Nickel', cas: '7440-02-0', percent: '0.05', location: 'Lock' }],
  materials: [{ name: 'Calf leather', percent: '82.5', recycledPercent: '0', country: 'FR' }],
  recycling: { text: 'Bring it back.' },
  certificates: [{ name: 'LWG Gold', issuer: 'LWG', number: '1', validUntil: '2027-12-31' }],
  footprint: { kgCo2e: '18.4', unit: 'one bag', scope: 'cradle to gate', method: 'ISO 14067' },
  facility: { name: 'Atelier 2', id: 'https://id.gs1.org/414/9520003000001', country: 'FR' },
  recall: { text: 'The lock may open.', since: '2026-05-01', url: 'https://orvelle.example/recall' },
}

describe('product details', () => {
  it('are stored when every field is as it must be', () => {
    for (const details of [full, {}, ...productKinds.map((kind) => ({ kind }))])
      assert.equal(detailsError(details), null)
  })

  it('come back as they were', () => {
    assert.deepEqual(parseDetails(JSON.stringify(full)), full)
  })

  const rejected: readonly (readonly [string, unknown, RegExp])[] = [
    ['a list', [], /^Product details: /],
    ['null', null, /^Product details: /],
    ['an unknown key', { price: '1' }, /price/],
    ['an unknown key of a member', { model: { '@id': 'x' } }, /field model: .*@id/],
    ['an unknown kind', { kind: 'VERIFIED' }, /field kind/],
    ['half of a surrogate pair', { model: { name: '\ud800' } }, /field model.name: .*surrogate/],
    ['U+FFFD', { model: { name: 'Gr\uFFFDe' } }, /field model.name: holds U\+FFFD, so that a letter was lost/],
    ['invisible text', { care: ['\u200b'] }, /field care.0: must hold text that can be seen/],
    ['a long text', { care: ['a'.repeat(201)] }, /field care.0/],
    ['four features', { features: Array.from({ length: 4 }, () => ({ title: 'a' })) }, /field features/],
    ['a feature without title', { features: [{ text: 'a' }] }, /field features.0.title/],
    ['a script as link', { repair: { url: 'javascript:alert(1)' } }, /field repair.url: must be an https URL/],
    ['a link with a user name', { repair: { url: 'https://a@b.example' } }, /https URL without a user name/],
    ['a number', { footprint: { kgCo2e: 18.4 } }, /field footprint.kgCo2e/],
    ['a day that is none', { recall: { text: 'a', since: '2026-02-30' } }, /must be a day/],
    ['a wrong GTIN', { gtin: '09520003000002' }, /field gtin: must be a GTIN/],
    ['a picture by URL', { picture: { ...picture, webp: 'https://a.example/b.webp' } }, /64 lower-case hex digits/],
    ['a picture without size', { picture: { webp } }, /field picture.width/],
  ]
  for (const [what, value, message] of rejected)
    it(`are not stored with ${what}`, () => assert.match(detailsError(value) ?? '', message))

  it('name their pictures once each', () => {
    assert.deepEqual(pictureHashes(full as never), [webp, avif, 'ef'.repeat(32)])
    assert.deepEqual(pictureHashes({}), [])
  })
})

describe('a foreign document', () => {
  it('is read as far as it is right', () => {
    const document = {
      ...full,
      kind: 'VERIFIED',
      price: '1',
      __proto__: { polluted: true },
      model: { name: '\u202eeuneG\u202c\u001b[2J', number: 7 },
      features: [{ title: '\u200b' }, { title: '<b>Lock</b>', x: 300 }, 'none'],
      repair: { text: 'a', url: 'javascript:alert(1)' },
      recall: { text: '\u2066' },
      footprint: { kgCo2e: 'NaN' },
    }
    const { kind, model, features, repair, recall, footprint, care, ...others } =
      parseDetails(JSON.stringify(document)) ?? {}
    assert.deepEqual(
      { kind, model, features, repair, recall, footprint, care },
      {
        kind: undefined,
        model: { name: 'euneG', number: undefined },
        features: [{ title: '<b>Lock</b>', x: undefined }],
        repair: { text: 'a', url: undefined },
        recall: undefined,
        footprint: undefined,
        care: full.care,
      },
    )
    assert.ok(!('price' in others))
  })

  it('that is no object is none', () => {
    for (const text of ['', 'x', '[]', '7', 'null', '"a"']) assert.equal(parseDetails(text), null)
  })

  it('of great length does not hold the program up', () => {
    const text = JSON.stringify({ care: ['\u001b['.repeat(1_000_000)], features: Array(100_000).fill({ title: 'a' }) })
    assert.deepEqual(parseDetails(text), { care: [], features: undefined })
  })
})
