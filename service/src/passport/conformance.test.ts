/** The passport against the standards it names: UNTP 0.7.0, VCDM 2.0 and JSON-LD in safe mode, with local documents only. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { named } from '@digitalbazaar/credentials-context'
import { _checkCredential } from '@digitalbazaar/vc'
import fc from 'fast-check'
import { catchAllTerms, expanded, passportErrors } from '../../test/support/passport/documents.ts'
import {
  baseUrl,
  dataOf,
  dataText,
  did,
  everyInput,
  now,
  sampleHash,
  sampleInput,
} from '../../test/support/passport/fixtures.ts'
import { keysOf } from '../../test/support/passport/issuer.ts'
import { passportOf } from './credential.ts'
import { etagOfText } from '../http/etag.ts'
import type { ProductText } from './metadata.ts'
import { generateIssuerKeys } from './signing/issuer-keys.ts'
import { createSigner, snapshotOf } from './signing/signer.ts'

describe('the passport', () => {
  for (const [kind, input] of everyInput) {
    it(`(${kind}) is valid UNTP, follows VCDM 2.0 and expands without unknown terms`, async () => {
      const passport = passportOf(input)
      assert.deepEqual(passportErrors(passport), [])
      _checkCredential({ credential: passport, now: new Date(now) })
      const graph = await expanded(passport)
      assert.deepEqual(catchAllTerms(graph), [])
      assert.ok(!JSON.stringify(passport).includes('"proof"'))
    })
  }

  it('signed is valid UNTP, names its schema, follows VCDM 2.0 and expands without unknown terms', async (context) => {
    const signer = createSigner({ did, keys: keysOf(await generateIssuerKeys()) })
    for (const [kind, input] of everyInput)
      await context.test(kind, async () => {
        const at = { list: 1, index: 94_567 }
        const credential = snapshotOf(passportOf(input), { now, baseUrl, at, profile: 'untp' })
        const signed = await signer.addProof(credential, now)
        assert.deepEqual([passportErrors(credential), passportErrors(signed)], [[], []])
        assert.ok('credentialSchema' in credential)
        assert.match(credential.credentialSchema.id, /untp\.unece\.org.*v0\.7\.0/)
        _checkCredential({ credential, now: new Date(now) })
        const { '@context': _context, ...proof } = signed.proof
        assert.deepEqual(catchAllTerms(await expanded({ ...credential, proof })), [])
      })
  })

  it('has evidence, state and links in its graph, under the terms they mean', async () => {
    const text = JSON.stringify(await expanded(passportOf(sampleInput())))
    for (const iri of [
      'https://www.w3.org/2018/credentials#evidence',
      'https://verify.example/ns/passport#OnChainMetadataAnchor',
      'https://verify.example/ns/passport#ownerCommitment',
      'https://verify.example/ns/passport#covers',
      'https://vocabulary.uncefact.org/untp/Product"',
      'https://vocabulary.uncefact.org/untp/itemNumber',
      'https://vocabulary.uncefact.org/CountryId#PT',
      'https://vocabulary.uncefact.org/untp/Characteristics#brand',
    ])
      assert.ok(text.includes(iri), iri)
  })

  it('stays valid and keeps its graph with any supplier text', async () => {
    const base = structureOf(await expanded(passportOf(sampleInput())))
    const hostile = [
      '@id',
      '_:b0',
      '{"@id":"x"}',
      'https://evil.example#',
      'untp:Product',
      ' ',
      '@type',
      '\u2028</script>',
    ]
    const field = fc.oneof(fc.constantFrom(...hostile), fc.string({ minLength: 1, unit: 'grapheme' }))
    const value = fc.record({
      name: field,
      brand: field,
      description: field,
      sku: field,
      size: field,
      origin: fc.constant('PT'),
      image: fc.constant('https://a.example/b.webp'),
    })
    await fc.assert(
      fc.asyncProperty(value, async (text: ProductText) => {
        const passport = passportOf(sampleInput({ metadata: { status: 'match', hash: sampleHash, value: text } }))
        assert.deepEqual(passportErrors(passport), [])
        assert.deepEqual(structureOf(await expanded(passport)), base)
      }),
      { numRuns: 10 },
    )
  })

  it('accepts only image links that the schema accepts', () => {
    fc.assert(
      fc.property(fc.webUrl({ withFragments: true, withQueryParameters: true }), fc.string(), (url, tail) => {
        const value = { image: url.replace(/^http:/, 'https:') + tail }
        const passport = passportOf(sampleInput({ metadata: { status: 'match', hash: sampleHash, value } }))
        assert.deepEqual(passportErrors(passport), [])
      }),
    )
  })
})

describe('the checks themselves', () => {
  it('use the published files, byte for byte', () => {
    const published = [
      [
        'untp-0.7.0/DigitalProductPassport.schema.json',
        '42c51943ab23547d5287899fd12b214b19b006c28d105a70ff390f8551b12653',
      ],
      ['untp-0.7.0/linkset.schema.json', 'dbcbbbf749ad93fb6e09e5550e5f26e599924d9a62ac83d41914bb1020f1d20d'],
      ['untp-0.7.0/untp-context.jsonld', 'fbd4824e30d3cfc5cba949e1efe19b4c9ebaee056abe7aaf1c6b139a7bf91b0c'],
      ['vcdm2/credentials-v2.jsonld', '59955ced6697d61e03f2b2556febe5308ab16842846f5b586d7f1f7adec92734'],
    ] as const
    assert.deepEqual(dataOf('vcdm2/credentials-v2.jsonld'), named.get('v2')?.context)
    for (const [path, hash] of published) assert.equal(etagOfText(dataText(path)), `"sha256-${hash}"`, path)
  })

  const passport = passportOf(sampleInput())

  it('find a misspelt product term, which safe mode lets through', async () => {
    const misspelt = { ...passport, credentialSubject: { ...passport.credentialSubject, modelNo: 'x' } }
    assert.deepEqual(catchAllTerms(await expanded(misspelt)), ['https://vocabulary.uncefact.org/untp/Product#modelNo'])
  })

  it('find a misspelt term of evidence and of the asset status', async () => {
    await assert.rejects(expanded({ ...passport, evidence: [{ ...passport.evidence[0], metadatahash: '0x' }] }))
    const assetStatus = { ...passport.credentialSubject.assetStatus, stat: 'CLAIMED' }
    const misspelt = await expanded({
      ...passport,
      credentialSubject: { ...passport.credentialSubject, assetStatus },
    }).then(catchAllTerms, () => ['raised'])
    assert.equal(misspelt.length, 1)
  })

  it('find what UNTP and VCDM forbid, and fetch nothing', async () => {
    const { issuer: _issuer, ...anonymous } = passport
    assert.notDeepEqual(passportErrors(anonymous), [])
    assert.throws(() => _checkCredential({ credential: anonymous, now: new Date(now) }))
    assert.throws(() =>
      _checkCredential({ credential: { ...passport, validFrom: '2027-01-01T00:00:00Z' }, now: new Date(now) }),
    )
    await assert.rejects(
      expanded({ ...passport, '@context': [...passport['@context'], 'https://other.example/context'] }),
    )
  })
})

/** The graph without its literal values. */
function structureOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(structureOf)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, key === '@value' ? null : structureOf(inner)]),
  )
}
