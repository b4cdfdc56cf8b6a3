import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { toHex } from '../bytes.ts'
import { createTemplate, maxTemplateLength, parseFileUrl, templateOf } from './template.ts'

const usual = 'https://verify.example.com/api/verify?picc={picc}&cmac={cmac}'

function laidOut(...given: Parameters<typeof createTemplate>) {
  const result = createTemplate(...given)
  assert.ok(result.ok, result.ok ? '' : result.error)
  return result.template
}

function refused(...given: Parameters<typeof createTemplate>): string {
  const result = createTemplate(...given)
  assert.equal(result.ok, false, given[0])
  return result.ok ? '' : result.error
}

describe('a tag template', () => {
  it('counts offsets from the start of file 02', () => {
    const { piccOffset, macInputOffset, macOffset, settings } = laidOut(usual)
    assert.deepEqual([piccOffset, macInputOffset, macOffset], [42, 80, 80])
    assert.equal(toHex(settings), '4000E0C1FF122A0000500000500000')
  })

  it('starts the picc MAC input at the block', () => {
    const { piccOffset, macInputOffset, macOffset, settings } = laidOut(usual, 'picc')
    assert.deepEqual([piccOffset, macInputOffset, macOffset], [42, 42, 80])
    assert.equal(toHex(settings), '4000E0C1FF122A00002A0000500000')
  })

  it('lays out the address of AN12196 §5.8', () => {
    const template = templateOf('https://choose.url.com/ntag424?e={picc}&c={cmac}')
    // The note counts within the NDEF file: offsets of its table are 0x20 and 0x43.
    assert.deepEqual([template.piccOffset, template.macOffset], [0x20, 0x43])
    assert.ok(toHex(template.ndef).startsWith('0051D1014D550463686F6F73652E75726C'))
  })

  it('points at exactly 32 and 16 zeros', () => {
    const { ndef, piccOffset, macOffset, url } = laidOut(`${usual}&b=7`)
    const text = Buffer.from(ndef).toString('latin1')
    assert.match(text.slice(piccOffset), /^0{32}&/)
    assert.match(text.slice(macOffset), /^0{16}&b=7$/)
    assert.equal(parseFileUrl(ndef), url)
  })

  it('lets the MAC stand first when it covers nothing', () => {
    const { piccOffset, macOffset } = laidOut('https://a.example/v?cmac={cmac}&picc={picc}')
    assert.ok(macOffset < piccOffset)
    assert.match(refused('https://a.example/v?cmac={cmac}&picc={picc}', 'picc'), /picc MAC input/)
  })

  it('fits file 02 to the last byte', () => {
    const room = maxTemplateLength - 'a.example/?picc=&cmac='.length - 48
    const address = (length: number) => `https://a.example/${'x'.repeat(length)}?picc={picc}&cmac={cmac}`
    assert.equal(laidOut(address(room)).ndef.length, 256)
    assert.match(refused(address(room + 1)), /249 fit/)
  })

  it('names what is wrong with an address', () => {
    const cases: readonly [string, RegExp][] = [
      ['http://a.example/?picc={picc}&cmac={cmac}', /https/],
      ['https://a.example/?picc={picc}', /\{cmac\} exactly once/],
      ['https://a.example/?picc={picc}&picc={picc}&cmac={cmac}', /\{picc\} exactly once/],
      ['https://a.example/#picc={picc}&cmac={cmac}', /after #/],
      ['https://a.example/ä?picc={picc}&cmac={cmac}', /ASCII/],
      ['https://a.example/?e={picc}&cmac={cmac}', /parameter picc/],
      ['https://a.example/?picc={picc}&c={cmac}', /parameter cmac/],
      ['https://a.example/?picc={picc}&cmac=x{cmac}', /parameter cmac/],
      ['https://a.example/01/{gtin}/21/{serial}?picc={picc}&cmac={cmac}', /placeholder other than/],
      ['https://a.example/?x=}&picc={picc}&cmac={cmac}', /placeholder other than/],
      ['https:///?picc={picc}&cmac={cmac}', /not a URL/],
    ]
    for (const [address, error] of cases) assert.match(refused(address), error)
  })
})

describe('the address of a file', () => {
  it('is null without a URI record', () => {
    assert.equal(parseFileUrl(new Uint8Array(256)), null)
    assert.equal(parseFileUrl(new Uint8Array(0)), null)
    assert.equal(parseFileUrl(Uint8Array.from(Buffer.from('0010D1010C5504', 'hex'))), null)
  })
})
