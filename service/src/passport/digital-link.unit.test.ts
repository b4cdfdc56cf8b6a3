import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { dataOf } from '../../test/support/passport/fixtures.ts'
import { itemPath, parseDigitalLink, parsePassportPath } from './digital-link.ts'

type Vector = { path: string; gtin?: string; serial?: string; error?: string; note?: string }
const vectors = dataOf<{ paths: Vector[]; validSerials: Vector[] }>('vectors/gs1-vectors.json')
const gtin = '09520123456788'

describe('a GS1 Digital Link', () => {
  for (const { path, error, note, ...key } of vectors.paths) {
    it(`${path}: ${note}`, () => {
      const page = parseDigitalLink(path)
      const passport = parsePassportPath(`/api/dpp${path}`)
      assert.deepEqual(passport, page)
      if (error === undefined) assert.deepEqual(page, { kind: 'item', ...key })
      // A lot is a valid link, only not one of this service.
      else if (path.includes('/10/')) assert.deepEqual(page, { kind: 'unsupported', gtin })
      else assert.deepEqual(page, { kind: 'malformed', error })
    })
  }
  for (const { path, serial = '' } of vectors.validSerials) {
    it(`${path} is the one spelling of its item`, () => {
      assert.equal(itemPath({ gtin, serial }), path)
      assert.deepEqual(parseDigitalLink(path), { kind: 'item', gtin, serial })
    })
  }

  it('may end with one slash, not with two', () => {
    assert.deepEqual(parseDigitalLink(`/01/${gtin}/21/A/`), { kind: 'item', gtin, serial: 'A' })
    assert.deepEqual(parseDigitalLink(`/01/${gtin}/`), { kind: 'class', gtin })
    assert.deepEqual(parseDigitalLink(`/01/${gtin}/21/A//`), { kind: 'malformed', error: 'path' })
  })

  it('stays valid with the tap in its query', () => {
    const tap = `?picc=${'A'.repeat(32)}&cmac=${'B'.repeat(16)}`
    assert.deepEqual(parseDigitalLink(`/01/${gtin}/21/A${tap}`), { kind: 'item', gtin, serial: 'A' })
  })

  it('of a class has no serial', () => assert.deepEqual(parseDigitalLink(`/01/${gtin}`), { kind: 'class', gtin }))

  it('of a batch has its decoded lot', () => {
    assert.deepEqual(parseDigitalLink(`/01/${gtin}/10/L%2F1`), { kind: 'batch', gtin, batch: 'L/1' })
    assert.equal(parseDigitalLink(`/01/${gtin}/10/${'l'.repeat(21)}`).kind, 'malformed')
  })

  it('with other qualifiers in the GS1 order is valid, but nothing of ours', () => {
    for (const rest of ['22/V', '22/V/10/L/21/S', '22/V/21/S', '235/T', `235/${'t'.repeat(28)}`])
      assert.deepEqual(parseDigitalLink(`/01/${gtin}/${rest}`), { kind: 'unsupported', gtin }, rest)
  })

  it('with other qualifiers in another order, twice, unknown or without a value is malformed', () => {
    for (const rest of [
      '21/S/10/L',
      '10/L/22/V',
      '10/L/10/L',
      '99/X',
      '10',
      '10/',
      '10/A%20B',
      '235/T/21/S',
      '21/S/21/S',
      ''.padEnd(600, 'x'),
    ])
      assert.equal(parseDigitalLink(`/01/${gtin}/${rest}`).kind, 'malformed', rest)
  })

  it('is read raw: doubled slashes, escapes in the GTIN and foreign roots are malformed', () => {
    for (const path of [
      `//01/${gtin}/21/A`,
      `/01//${gtin}/21/A`,
      `/01/0952012345678%38/21/A`,
      `/%30%31/${gtin}/21/A`,
      '/',
      '',
      '/01',
    ])
      assert.equal(parseDigitalLink(path).kind, 'malformed', path)
    assert.equal(parsePassportPath(`/01/${gtin}/21/A`).kind, 'malformed')
    assert.equal(parseDigitalLink(`/api/dpp/01/${gtin}/21/A`).kind, 'malformed')
  })
})
