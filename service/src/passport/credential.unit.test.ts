import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { metadataHashOf } from '@touchstone/verdict'
import fc from 'fast-check'
import {
  dataOf,
  everyInput,
  matching,
  now,
  sampleHash,
  sampleInput,
  sampleVerdict,
} from '../../test/support/passport/fixtures.ts'
import { passportOf } from './credential.ts'
import { passportMetadata } from './metadata.ts'
import { etagOf, etagOfText } from '../http/etag.ts'

const sample = dataOf<Record<string, unknown>>('sample/sample-passport.json')
const wire = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
const withheld = [
  { status: 'mismatch', onChainHash: sampleHash },
  { status: 'none', onChainHash: sampleHash },
] as const

describe('a passport', () => {
  it('of the sample item is the sample passport', () => {
    assert.deepEqual(wire(passportOf(sampleInput())), sample)
  })

  it('without a GTIN is named by its token', () => {
    const { id, credentialSubject: product, evidence } = passportOf(sampleInput({ item: null }))
    assert.equal(id, 'https://verify.example/api/dpp/token/1042')
    assert.equal(product.id, 'https://verify.example/token/1042')
    assert.equal(product.idScheme.id, 'https://verify.example/ns/passport#token-id')
    assert.equal(product.itemNumber, '1042')
    assert.equal(product.characteristics?.gtin, undefined)
    assert.ok(!evidence[0]?.doesNotCover.includes('/credentialSubject/characteristics/gtin'))
  })

  it('encodes the serial in its links and shows it plainly', () => {
    const { id, credentialSubject } = passportOf(sampleInput({ item: { gtin: '09520123456788', serial: 'A/B%' } }))
    assert.equal(id, 'https://verify.example/api/dpp/01/09520123456788/21/A%2FB%25')
    assert.equal(credentialSubject.itemNumber, 'A/B%')
  })

  for (const metadata of withheld) {
    it(`with metadata ${metadata.status} holds no supplier field`, () => {
      const { name, credentialSubject: product, evidence } = passportOf(sampleInput({ metadata }))
      assert.equal(name, 'Digital Product Passport: Product 1042')
      assert.equal(product.name, 'Product 1042')
      assert.deepEqual(product.characteristics, { gtin: '09520123456788' })
      assert.deepEqual(product.countryOfProduction, { countryCode: 'ZZ', countryName: 'Unspecified' })
      for (const key of ['description', 'modelNumber', 'productImage']) assert.ok(!(key in product), key)
      assert.deepEqual(evidence[0]?.covers, [])
      assert.equal(evidence[0]?.metadataHash, sampleHash)
      assert.equal(evidence[0]?.metadataHashMatches, metadata.status === 'mismatch' ? false : undefined)
    })
  }

  it('without a hash on chain shows the zero hash', () => {
    const { evidence } = passportOf(sampleInput({ metadata: { status: 'none', onChainHash: null } }))
    assert.equal(evidence[0]?.metadataHash, `0x${'0'.repeat(64)}`)
  })

  it('without an owner leaves the commitment out', () => {
    const input = sampleInput({ verdict: sampleVerdict(3) })
    assert.ok(!('ownerCommitment' in passportOf(input).credentialSubject.assetStatus))
  })

  it('is never valid from the future, even when the chain runs ahead of the clock', () => {
    const { validFrom, credentialSubject } = passportOf(sampleInput({ timestamp: BigInt(now / 1000) + 90n }))
    assert.equal(validFrom, '2026-11-20T09:30:20Z')
    assert.equal(credentialSubject.assetStatus.observedAt, '2026-11-20T09:31:50Z')
  })

  it('shows the largest token id in full', () => {
    const tokenId = String(2n ** 256n - 1n)
    const { credentialSubject } = passportOf(sampleInput({ verdict: sampleVerdict(4, tokenId), item: null }))
    assert.deepEqual([credentialSubject.assetStatus.chainRef.tokenId, credentialSubject.itemNumber], [tokenId, tokenId])
  })

  it('keeps an origin that is no country, and names no country', () => {
    const { credentialSubject, evidence } = passportOf(sampleInput({ metadata: matching('{"origin":"near Porto"}') }))
    assert.equal(credentialSubject.characteristics?.origin, 'near Porto')
    assert.equal(credentialSubject.countryOfProduction.countryCode, 'ZZ')
    assert.deepEqual(evidence[0]?.covers, ['/credentialSubject/characteristics/origin'])
  })

  it('shows an image only as an https link without user name, in RFC 3986 spelling', () => {
    const linkOf = (image: string) =>
      passportOf(sampleInput({ metadata: { status: 'match', hash: sampleHash, value: { image } } })).credentialSubject
        .productImage
    const name = 'Product image (supplier-provided)'
    assert.deepEqual(linkOf('https://a.example/ü.PNG?x=1'), {
      linkURL: 'https://a.example/%C3%BC.PNG?x=1',
      linkName: name,
      mediaType: 'image/png',
    })
    for (const linkURL of ['https://a.example/picture', 'https://a.example/picture.constructor'])
      assert.deepEqual(linkOf(linkURL), { linkURL, linkName: name })
    const refused = [
      'http://a.example/a.png',
      'ipfs://bafy/a.png',
      'javascript:alert(1)',
      'https://u:p@a.example/a.png',
      'https://u@a.example/a.png',
      'https://:p@a.example/a.png',
      'https://a.example/a|b',
      'https://a.example/50%',
      'a.png',
      'https://a.example/[1]',
      '',
    ]
    for (const image of refused) assert.equal(linkOf(image), undefined, image)
  })

  for (const [kind, input] of everyInput) {
    it(`(${kind}) points at existing members only`, () => {
      const passport = passportOf(input)
      for (const pointer of [...(passport.evidence[0]?.covers ?? []), ...(passport.evidence[0]?.doesNotCover ?? [])]) {
        const member = pointer
          .slice(1)
          .split('/')
          .reduce<unknown>((value, key) => (value as Record<string, unknown>)[key], passport)
        assert.notEqual(member, undefined, pointer)
      }
    })
  }

  it('has an entity tag that anyone can recompute and that every change changes', () => {
    const passport = passportOf(sampleInput())
    assert.match(etagOf(passport), /^"sha256-[0-9a-f]{64}"$/)
    assert.equal(etagOf(sample), etagOf(passport))
    assert.equal(etagOfText('{"a":1}'), etagOf({ a: 1 }))
    assert.notEqual(etagOf(passportOf(sampleInput({ tapCounter: 18 }))), etagOf(passport))
  })

  it('takes nothing of foreign metadata but the seven texts, whatever keys it has', () => {
    const stored =
      '{"@context":{"name":"x:evil"},"@id":"x:evil","__proto__":{"brand":"evil"},"id":"x:evil","name":"Jacket","size":{"@id":"x:evil"}}'
    const metadata = passportMetadata(metadataHashOf(stored), stored)
    const passport = passportOf(sampleInput({ metadata }))
    assert.equal(passport.evidence[0]?.metadataHashMatches, true)
    assert.deepEqual(passport.evidence[0]?.covers, ['/credentialSubject/name'])
    assert.equal(passport.credentialSubject.name, 'Jacket')
    assert.ok(!JSON.stringify(passport).includes('evil'))
  })

  it('never holds a key that a supplier chose, nor an owner address', () => {
    const hostile = {
      ['__proto__']: { a: 1 },
      '@id': 'https://evil.example',
      id: 'x',
      type: 'y',
      constructor: 'z',
      _warning: 'w',
      name: 'N',
    }
    const text = JSON.stringify(
      passportOf(sampleInput({ metadata: { status: 'match', hash: sampleHash, value: hostile } })),
    )
    const keys = [...text.matchAll(/"([^"]+)":/g)].map(([, key]) => key)
    assert.deepEqual(
      keys.filter((key) => !JSON.stringify(sample).includes(`"${key}":`)),
      [],
    )
    assert.ok(!text.includes('evil.example'))
  })

  it('shows supplier text as it is given, whatever it is', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, unit: 'grapheme' }), (name) => {
        const passport = passportOf(sampleInput({ metadata: { status: 'match', hash: sampleHash, value: { name } } }))
        return passport.credentialSubject.name === name
      }),
    )
  })
})
