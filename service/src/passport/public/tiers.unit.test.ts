/** Access tiers of product details: what is split off, what stays, and how the two are joined again. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { metadataHashOf } from '@touchstone/verdict'
import canonicalize from 'canonicalize'
import fc from 'fast-check'
import { parseDetails, tiers } from '../../domain/product-details.ts'
import { splitByTier, withRestricted } from './tiers.ts'

const details = {
  care: ['Wipe it.'],
  materials: [{ name: 'Leather', percent: '90' }, { name: 'Brass' }],
  substances: [{ name: 'Nickel' }],
  footprint: { kgCo2e: '12.5', method: 'ISO 14067' },
  facility: { name: 'Lyon', country: 'FR' },
}
const paths = ['care', 'materials[0].percent', 'substances', 'footprint.method', 'facility', 'facility.country']

const split = (access: unknown, document: object = details) => {
  const found = splitByTier({ ...document, access })
  assert.ok(found.ok, JSON.stringify(found))
  return found
}
const messageOf = (document: object) => {
  const found = splitByTier(document)
  return found.ok ? null : found.message
}

describe('access tiers of product details', () => {
  it('leave a document without access as it is', () =>
    assert.deepEqual(splitByTier(details), { ok: true, details, restricted: [] }))

  it('take the elements of the paths out of the public part, and commit to them for every tier', () => {
    const { details: open, restricted } = split({ authority: ['facility', "$['footprint'].method"] })
    const [interest, authority] = restricted
    assert.deepEqual(open, {
      care: details.care,
      materials: details.materials,
      substances: details.substances,
      footprint: { kgCo2e: '12.5' },
      restricted: { interest: interest?.hash, authority: authority?.hash },
    })
    for (const { tier, body, hash } of restricted) {
      assert.equal(metadataHashOf(body), hash)
      assert.equal((JSON.parse(body) as { tier: string }).tier, tier)
    }
    assert.deepEqual((JSON.parse(authority?.body ?? '') as { elements: unknown }).elements, [
      { path: ['facility'], value: details.facility },
      { path: ['footprint', 'method'], value: 'ISO 14067' },
    ])
  })

  it('hide equal elements behind different hashes', () => {
    const hashes = [1, 2].flatMap(() => split({ interest: ['facility'] }).restricted.map(({ hash }) => hash))
    assert.equal(new Set(hashes).size, 4)
  })

  it('joined again are the whole document, for any choice of paths', () => {
    const choice = fc.array(fc.constantFrom('public', ...tiers), {
      minLength: paths.length - 1,
      maxLength: paths.length - 1,
    })
    fc.assert(
      fc.property(choice, (chosen) => {
        const listOf = (tier: string) => paths.slice(0, -1).filter((_path, index) => chosen[index] === tier)
        const { details: open, restricted } = split({ interest: listOf('interest'), authority: listOf('authority') })
        const text = canonicalize(open) ?? ''
        const { restricted: _commitments, ...whole } = withRestricted(text, restricted) ?? {}
        assert.deepEqual(whole, parseDetails(JSON.stringify(details)))
        assert.deepEqual(withRestricted(text, []), parseDetails(text))
      }),
    )
  })

  it('reject what cannot be split, with the reason', () => {
    for (const [access, message] of [
      ['interest', /^access names paths for each tier/],
      [{ secret: [] }, /^access names paths for each tier/],
      [{ interest: 'facility' }, /^access names paths for each tier/],
      [{ interest: Array.from({ length: 51 }, () => 'facility') }, /^access names paths for each tier/],
      [{ interest: [7] }, /^A path of access begins with/],
      [{ interest: ['recall'] }, /^A path of access begins with/],
      [{ interest: ['gtin'] }, /^A path of access begins with/],
      [{ interest: ['materials[0]'] }, /^A path of access begins with/],
      [{ interest: ['facility.__proto__'] }, /^A path of access begins with/],
      [{ interest: ['facility.constructor'] }, /names no member/],
      [{ interest: ['materials[7].percent'] }, /^The path materials\[7\]\.percent of tier interest names no member/],
      [{ interest: ['facility'], authority: ['facility'] }, /named twice, or lies within another one/],
      [{ interest: ['facility.country'], authority: ['facility'] }, /named twice, or lies within another one/],
    ] as const)
      assert.match(messageOf({ ...details, access }) ?? '', message, JSON.stringify(access))
    assert.match(
      messageOf({ ...details, facility: 'x', access: {} }) ?? '',
      /field facility/,
      'the whole is checked first',
    )
  })

  it('have 16 kB of elements a tier, counted in bytes, and 50 paths', () => {
    const partsOf = (length: number) =>
      Array.from({ length: 8 }, (_part, index) => ({
        name: 'é',
        url: `https://a.example/${'x'.repeat(index === 0 ? length : 1_990)}`,
      }))
    const access = { authority: ['spareParts'] }
    const sizeOf = (length: number) =>
      Buffer.byteLength(split(access, { spareParts: partsOf(length) }).restricted[1]?.body ?? '')
    const fits = 16_384 - sizeOf(0)
    assert.equal(sizeOf(fits), 16_384)
    assert.equal(
      messageOf({ spareParts: partsOf(fits + 1), access }),
      'The elements of tier authority may have at most 16 kB.',
    )
    const materials = Array.from({ length: 20 }, () => ({ name: 'Wool', percent: '5', country: 'FR' }))
    const spareParts = Array.from({ length: 10 }, () => ({ name: 'Buckle', number: 'B1' }))
    const interest = [
      ...materials.flatMap((_material, index) => [`materials[${index}].percent`, `materials[${index}].country`]),
      ...spareParts.map((_part, index) => `spareParts[${index}].number`),
    ]
    assert.equal(interest.length, 50)
    split({ interest }, { materials, spareParts })
  })

  it('may each have members of one element', () => {
    const { details: open } = split({
      interest: ['facility.name'],
      authority: ['facility.country', 'footprint.method'],
    })
    assert.deepEqual((open as { facility: object }).facility, {})
  })

  it('reject a document that names documents of tiers itself, as those of another product', () => {
    const commitments = Object.fromEntries(tiers.map((tier) => [tier, `0x${'1'.repeat(64)}`]))
    for (const more of [{}, { access: {} }])
      assert.match(messageOf({ ...details, restricted: commitments, ...more }) ?? '', /restricted .* list .* access/)
  })

  it('ignore documents that are hostile or of another tier', () => {
    const open = JSON.stringify(details)
    const body = (elements: unknown, tier = 'interest') => ({
      tier,
      body: JSON.stringify({ tier, salt: '', elements }),
    })
    for (const text of [
      body([{ path: ['recall'], value: { text: 'Recalled.' } }]),
      body([{ path: ['__proto__', 'name'], value: 'x' }]),
      body([{ path: ['facility', '__proto__', 'name'], value: 'x' }]),
      body([{ path: ['nothing', 'name'], value: 'x' }]),
      body([{ path: [], value: 'x' }]),
      body('x'),
      { tier: 'interest', body: '[]' },
      { ...body([{ path: ['repair'], value: { text: 'x' } }], 'authority'), tier: 'interest' },
    ])
      assert.deepEqual(withRestricted(open, [{ ...text, hash: '0x' } as never]), parseDetails(open), text.body)
    const hostile = body([{ path: ['repair'], value: { text: 'Mend\u202e it\u0007.' } }])
    assert.equal(withRestricted(open, [{ ...hostile, hash: '0x' } as never])?.repair?.text, 'Mend it.')
    assert.equal(withRestricted('[]', []), null)
  })
})
