/** Public product information: facts, JSON-LD, data elements of EN 18223, versions by date, identifiers. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import jsonld from 'jsonld'
import { baseUrl } from '../../../test/support/passport/fixtures.ts'
import { parseDetails } from '../../domain/product-details.ts'
import { digitalProductPassport, productDocument, type Anchor, type PublicPassport } from './document.ts'
import { elementAt, parseElementPath } from './element-path.ts'
import { commonOf, publicFacts } from './facts.ts'
import { parsePassportId, parseProductId, subjectLinks, type ProductSubject } from './subject.ts'
import { productContext, productContextUrl, publicTerms } from './terms.ts'
import { parseMoment, stateAt, versionAt, versionsOf, type MetadataEvent } from './versions.ts'

/** Every member that product details may have. */
const details = parseDetails(
  JSON.stringify({
    kind: 'bag',
    language: 'en',
    gtin: '09520123456788',
    batch: 'L-1',
    model: { name: 'Satchel', number: 'S7', description: 'A bag' },
    categories: [{ code: '53121601', name: 'Bags', scheme: 'https://www.unspsc.org/' }],
    features: [{ title: 'Stitch' }],
    care: ['Wipe it.', 'Keep it dry.'],
    repair: { text: 'In every shop.', url: 'https://orvelle.example/repair' },
    spareParts: [{ name: 'Buckle', number: 'B1', until: '2036-01-01', url: 'https://orvelle.example/b1' }],
    substances: [{ name: 'Nickel', cas: '7440-02-0', percent: '0.1', location: 'Buckle' }],
    materials: [
      { name: 'Calf leather', percent: '82.5', recycledPercent: '0', country: 'FR' },
      { name: 'Brass', percent: '17.5' },
    ],
    recycling: { text: 'Bring it back.' },
    certificates: [{ name: 'LWG', issuer: 'LWG', number: '1', validUntil: '2027-01-01', url: 'https://lwg.example/1' }],
    footprint: { kgCo2e: '12.5', unit: '1 bag', scope: 'cradle to gate', method: 'ISO 14067', verifiedBy: 'TUV' },
    facility: { name: 'Lyon', id: 'https://gln.example/1', country: 'FR' },
    recall: { text: 'None.', since: '2026-01-01', url: 'https://orvelle.example/recall' },
  }),
)
const text = {
  _warning: 'of untrusted',
  name: 'Satchel No. 7',
  brand: 'Maison Orvelle',
  sku: 'S7',
  origin: 'FR',
  image: 'https://a.example/b.webp',
}
const item: ProductSubject = { kind: 'item', gtin: '09520123456788', serial: 'S7/1' }
const hash = `0x${'16'.repeat(32)}` as const
const event = (block: number, seconds: number): MetadataEvent => ({
  metadataHash: `0x${String(block).padStart(64, '0')}`,
  blockNumber: BigInt(block),
  transactionHash: hash,
  logIndex: 3,
  timestamp: BigInt(seconds),
})
const [version = null] = versionsOf([event(4, 1_700_000_000), event(9, 1_800_000_000)]) ?? []
const anchor: Anchor = {
  chainId: 84532,
  contract: `0x${'5f'.repeat(20)}`,
  tokenId: 42n,
  metadataHash: hash,
  matches: true,
  detailsHash: hash,
  restricted: [{ tier: 'interest', hash }],
  block: { number: 7n, hash },
  version,
}
const passport: PublicPassport = { baseUrl, subject: item, facts: publicFacts(text, details), evidence: [anchor] }
const header = { status: 'active', lastUpdate: 1_700_000_000, economicOperatorId: 'did:web:verify.example' } as const

/** Expands in safe mode, where a term that the context lacks is an error. */
function expanded(document: object) {
  const context = { documentUrl: productContextUrl(baseUrl), document: productContext(baseUrl) as object }
  const documentLoader = async (url: string) => {
    assert.equal(url, context.documentUrl)
    return context
  }
  const options: object = { documentLoader, safe: true }
  return jsonld.expand(JSON.parse(JSON.stringify(document)) as object, options)
}

describe('public product information', () => {
  it('is JSON-LD whose every term the context defines', async () => {
    assert.ok(details !== null)
    const graph = JSON.stringify(await expanded(productDocument(passport)))
    for (const iri of [
      'https://schema.org/name',
      'https://verify.example/ns/product#care',
      'https://schema.org/Product',
    ])
      assert.ok(graph.includes(`"${iri}"`), iri)
    assert.doesNotMatch(graph, /L-1|Stitch/, 'neither pictures nor what only names the class')
  })

  it('keeps its keys whatever the supplier writes', async () => {
    const hostile = fc.constantFrom('@id', '_:b0', '{"@id":"x"}', '</script>', '@type', 'https://evil.example#')
    const keys = Object.keys(productDocument(passport))
    await fc.assert(
      fc.asyncProperty(hostile, async (name) => {
        const document = productDocument({ ...passport, facts: publicFacts({ ...text, name, brand: name }, details) })
        assert.deepEqual(Object.keys(document), keys)
        await expanded(document)
      }),
      { numRuns: 10 },
    )
  })

  it('of several items is what they have alike', () => {
    const other = publicFacts({ ...text, size: 'M' }, details)
    const common = commonOf([passport.facts, other, publicFacts({ name: 'Satchel No. 7', brand: 'Other' }, details)])
    assert.deepEqual([common['name'], common['brand'], common['size']], ['Satchel No. 7', undefined, undefined])
    assert.deepEqual(common['care'], ['Wipe it.', 'Keep it dry.'])
    assert.deepEqual(commonOf([]), {})
  })

  it('has neither identity, pictures nor commitments of the supplier’s details among its facts, and no empty member', () => {
    const picture = { webp: '1'.repeat(64), width: 1, height: 1 }
    const commitments = { interest: hash, authority: hash }
    const odd = { gtin: '09520123456788', batch: 'L-1', picture, drawing: picture, restricted: commitments }
    const parsed = parseDetails(JSON.stringify({ ...odd, features: [{ title: 'Stitch' }], care: [], repair: {} }))
    assert.deepEqual(Object.keys(parsed ?? {}).length, 8)
    assert.deepEqual(publicFacts({ name: 'Satchel', image: 'ipfs://bafy' }, parsed), { name: 'Satchel' })
  })

  it('links the text only where it has the hash, and says where it has another', () => {
    const evidenceOf = (more: Partial<Anchor>) =>
      productDocument({ ...passport, evidence: [{ ...anchor, ...more }] }).evidence[0] ?? assert.fail()
    assert.equal(evidenceOf({}).metadata, `${baseUrl}/api/metadata/${hash}`)
    const other = evidenceOf({ matches: false, restricted: [] })
    assert.deepEqual([other.metadataHashMatches, 'metadata' in other, 'restricted' in other], [false, false, false])
    const unknown = evidenceOf({ matches: null })
    assert.deepEqual(['metadataHashMatches' in unknown, 'metadata' in unknown], [false, false])
  })

  it('has the same facts as data elements, each with its type and its term', () => {
    const { elements, ...head } = digitalProductPassport(passport, header)
    assert.deepEqual(head, {
      digitalProductPassportId: `${baseUrl}/api/product/01/09520123456788/21/S7%2F1`,
      uniqueProductIdentifier: `${baseUrl}/01/09520123456788/21/S7%2F1`,
      granularity: 'item',
      dppSchemaVersion: 'EN 18223:2026',
      dppStatus: 'active',
      lastUpdate: '2023-11-14T22:13:20Z',
      economicOperatorId: 'did:web:verify.example',
      contentSpecificationIds: [productContextUrl(baseUrl)],
    })
    const {
      '@context': _context,
      '@id': _id,
      '@type': _type,
      granularity: _granularity,
      ...members
    } = productDocument(passport)
    assert.deepEqual(
      elements.map(({ elementId }) => elementId),
      Object.keys(members),
    )
    for (const { elementId, dictionaryReference } of elements) {
      assert.ok(elementId in publicTerms, elementId)
      assert.match(dictionaryReference ?? '', /^https:/)
    }
    const at = (path: string) => elementAt(elements, parseElementPath(path) ?? [])
    assert.deepEqual(at("$['materials'][1].name"), {
      objectType: 'SingleValuedDataElement',
      elementId: 'name',
      dictionaryReference: 'https://schema.org/name',
      valueDataType: 'xsd:string',
      value: 'Brass',
    })
    assert.equal(at('$.elements[1].value')?.value, at('serialNumber')?.value)
    assert.equal(at('footprint.kgCo2e')?.valueDataType, 'xsd:decimal')
    assert.equal(at('care[0]')?.valueDataType, 'xsd:string')
    assert.equal(at('evidence[0].setByLog')?.value, 3)
    for (const path of ['nothing', 'materials[9]', 'name.name', 'footprint[9]']) assert.equal(at(path), null, path)
  })
})

describe('the path of a data element', () => {
  for (const path of [
    '',
    '$',
    '*',
    'a.*',
    'a..b',
    '$..a',
    '.a',
    'a[',
    'a[*]',
    'a[1:2]',
    'a[?(@.b)]',
    'a b',
    'a[-1]',
    '$a',
    'x'.repeat(501),
  ])
    it(`is not ${JSON.stringify(path.slice(0, 20))}`, () => assert.equal(parseElementPath(path), null))
})

describe('versions', () => {
  const versions =
    versionsOf([event(4, 100), { ...event(5, 150), metadataHash: undefined } as never, event(9, 200)]) ?? []
  it('are valid from the block that set their hash to the block that replaced it', () => {
    assert.deepEqual(
      versions.map((one) => [one.event.blockNumber, one.until]),
      [
        [4n, 200],
        [9n, null],
      ],
    )
    const at = (seconds: number) => versionAt(versions, seconds)?.event.blockNumber
    assert.deepEqual([99, 100, 199, 200, 9e9].map(at), [undefined, 4n, 4n, 9n, 9n])
  })

  it('are not dated where the block of one has no time, whatever that of another event has', () => {
    for (const events of [[event(4, 0)], [event(4, 100), event(9, 0)]]) assert.equal(versionsOf(events), null)
    const { metadataHash: _hash, ...other } = event(5, 0)
    assert.equal(versionsOf([event(4, 100), other])?.length, 1)
  })

  it('have the state of their moment, and none where the block of a change has no time', () => {
    const change = (toState: 'MINTED' | 'RECYCLED', timestamp: bigint) => ({ toState, timestamp })
    const changes = [change('MINTED', 100n), { timestamp: 0n }, change('RECYCLED', 200n)]
    const states = [99, 100, 199, 200].map((seconds) => stateAt(changes, seconds))
    assert.deepEqual(states, [null, 'MINTED', 'MINTED', 'RECYCLED'])
    assert.equal(stateAt([change('MINTED', 100n), change('RECYCLED', 0n)], 100), null)
  })

  for (const [moment, seconds] of [
    ['2026-03-01T00:00:00Z', 1_772_323_200],
    ['2026-03-01', 1_772_323_200],
    ['2026-03-01T00:00:00.999Z', 1_772_323_200],
    ['2026-02-30', null],
    ['2026-03-01T25:00:00Z', null],
    ['2026-03-01T00:00:00', null],
    ['2026-03-01T00:00:00+01:00', null],
    ['yesterday', null],
    ['', null],
  ] as const)
    it(`${moment} is ${seconds}`, () => assert.equal(parseMoment(moment), seconds))
})

describe('an identifier', () => {
  const subjects: readonly ProductSubject[] = [
    item,
    { kind: 'batch', gtin: '09520123456788', batch: 'L/1' },
    { kind: 'class', gtin: '09520123456788' },
    { kind: 'token', tokenId: 42n },
  ]
  for (const subject of subjects)
    it(`of a ${subject.kind} leads back to it`, () => {
      const { product, passport: id } = subjectLinks(baseUrl, subject)
      assert.deepEqual(parsePassportId(baseUrl, id), subject)
      assert.deepEqual(parseProductId(baseUrl, product), subject)
    })

  it('of a product may be of any GS1 resolver, of a passport only ours', () => {
    assert.deepEqual(parseProductId(baseUrl, 'https://id.gs1.org/01/09520123456788/21/S7%2F1'), item)
    assert.deepEqual(parseProductId(baseUrl, '09520123456788'), subjects[2])
    assert.equal(parsePassportId(baseUrl, 'https://id.gs1.org/api/product/01/09520123456788'), null)
    for (const id of [
      '',
      '09520123456789',
      'https://id.gs1.org/token/42',
      `${baseUrl}/01/09520123456788?x=1`,
      'ftp://a/01/1',
    ])
      assert.equal(parseProductId(baseUrl, id), null, id)
  })
})
