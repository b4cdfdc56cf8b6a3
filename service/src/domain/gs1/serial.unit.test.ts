import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { dataOf } from '../../../test/support/passport/fixtures.ts'
import { decodeSerial, encodeSerial, isRegistrableSerial, parseSerial } from './serial.ts'

type Vector = { serial: string; encoded: string; error: string; note: string }
const vectors = dataOf<{
  cset82: string
  mustPercentEncodeInPath: string
  validSerials: Vector[]
  invalidSerials: Vector[]
}>('vectors/gs1-vectors.json')
const serials = fc.string({ unit: fc.constantFrom(...Array.from(vectors.cset82)), minLength: 1, maxLength: 20 })

describe('a serial', () => {
  for (const { serial, encoded } of vectors.validSerials) {
    it(`${serial} is written ${encoded} in a path and read back`, () => {
      assert.equal(encodeSerial(serial), encoded)
      assert.deepEqual(decodeSerial(encoded), { ok: true, serial })
    })
  }
  for (const { serial, error, note } of vectors.invalidSerials) {
    it(`is not ${JSON.stringify(serial)}: ${note}`, () => assert.deepEqual(parseSerial(serial), { ok: false, error }))
  }

  it('has the 82 characters of CSET 82 and no other of the Basic Multilingual Plane', () => {
    const allowed = Array.from({ length: 0x10000 }, (_none, code) => String.fromCharCode(code)).filter(
      (text) => parseSerial(text).ok,
    )
    assert.equal(allowed.length, 82)
    assert.deepEqual(allowed.toSorted(), Array.from(vectors.cset82).toSorted())
  })

  it('percent-encodes every character that a path may not hold', () => {
    for (const character of vectors.mustPercentEncodeInPath) assert.match(encodeSerial(character), /^%[0-9A-F]{2}$/)
  })

  it('may not be empty', () => assert.deepEqual(parseSerial(''), { ok: false, error: 'serial-length' }))

  it('is not registered as a dot segment, which no browser would ever send', () => {
    assert.deepEqual(['.', '..', '...', '.a', 'A B', 'ok'].map(isRegistrableSerial), [
      false,
      false,
      true,
      true,
      false,
      true,
    ])
  })

  it('survives the way through a path, and an over-encoded one is the same item', () => {
    fc.assert(
      fc.property(serials, (serial) => {
        const all = serial.replace(/[^]/g, (character) => `%${character.charCodeAt(0).toString(16).padStart(2, '0')}`)
        assert.deepEqual(decodeSerial(encodeSerial(serial)), { ok: true, serial })
        assert.deepEqual(decodeSerial(all), { ok: true, serial })
      }),
    )
  })

  it('is decoded once: what decoding yields is not decoded again', () => {
    assert.deepEqual(decodeSerial('A%252FB'), { ok: true, serial: 'A%2FB' })
  })

  it('rejects UTF-8, escaped or not, and half escapes', () => {
    assert.deepEqual(
      ['%E2%82%AC', '€', '%C0%AF', 'A%', 'A%2', 'A%zzB'].map((text) => decodeSerial(text)),
      [
        ...Array.from({ length: 3 }, () => ({ ok: false, error: 'serial-charset' })),
        ...Array.from({ length: 3 }, () => ({ ok: false, error: 'serial-encoding' })),
      ],
    )
  })
})
