import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseIdentifier } from './identifier.ts'

const base = 'https://verify.example'
const gtin = '09520123456788'
const item = { kind: 'item', gtin, serial: 'HFJ-000417' }
const parse = (text: string) => parseIdentifier(text, base)

describe('parseIdentifier', () => {
  for (const [text, expected] of [
    [`${base}/01/${gtin}/21/HFJ-000417`, item],
    [`HTTP://VERIFY.EXAMPLE/01/${gtin}/21/HFJ-000417?picc=00&cmac=11`, item],
    [`${base}/01/${gtin}/21/A%2FB`, { ...item, serial: 'A/B' }],
    [`${base}/01/${gtin}`, { kind: 'class', gtin }],
    [`${base}/01/${gtin}/10/L7`, { kind: 'batch', gtin, batch: 'L7' }],
    [`${base}/token/42`, { kind: 'token', tokenId: 42n }],
    [`${base}/api/asset/42`, { kind: 'token', tokenId: 42n }],
    [`/01/${gtin}/21/HFJ-000417`, item],
    ['/token/42', { kind: 'token', tokenId: 42n }],
    [`(01)${gtin}(21)HFJ-000417`, item],
    [`(01)${gtin}(17)271231(10)L7(21)HFJ-000417`, item],
    [`]d201${gtin}17271231` + `10L7\x1d21HFJ-000417`, item],
    [`\x1d01${gtin}21HFJ-000417`, item],
    [`]C101${gtin}`, { kind: 'class', gtin }],
    ['HFJ-000417', { kind: 'serial', serial: 'HFJ-000417' }],
    ['\u202bHFJ-٠٠٠٤١٧\u202c', { kind: 'serial', serial: 'HFJ-000417' }],
    [`\u200e${base}/token/42`, { kind: 'token', tokenId: 42n }],
    ['٤٢', { kind: 'number', tokenId: 42n, gtin: null, serial: '42' }],
    ['952 0123 456788', { kind: 'class', gtin }],
    ['42', { kind: 'number', tokenId: 42n, gtin: null, serial: '42' }],
    ['9520123456788', { kind: 'number', tokenId: 9520123456788n, gtin, serial: '9520123456788' }],
  ] as const)
    it(`reads ${JSON.stringify(text)}`, () => assert.deepEqual(parse(text), expected))

  for (const text of [
    `https://evil.example/01/${gtin}/21/HFJ-000417`,
    `https://verify.example@evil.example/01/${gtin}/21/A`,
    `https://user@verify.example/01/${gtin}/21/A`,
    `https://evil.example\\@verify.example/token/42`,
    `https://verify.example:444/token/42`,
    'www.evil.example/token/42',
    'javascript://verify.example/token/42',
    'ftp://verify.example/token/42',
  ])
    it(`takes ${text} for the link of another host`, () => assert.equal(parse(text).kind, 'foreign'))

  for (const text of [
    '',
    ' ',
    `${base}/docs`,
    `${base}/01/09520123456789/21/A`,
    `${base}/token/0x2a`,
    `(01)09520123456789(21)A`,
    `(01)${gtin}(21)A(21)B`,
    `(01)${gtin}(99)A`,
    `(01)${gtin}(21)`,
    `(01)${gtin}(10)${'a'.repeat(21)}`,
    `]d201${gtin}99A`,
    `${base}/token/${2n ** 256n}`,
    `]d221A`,
    `]d201${gtin}21`,
    'two words',
    '..',
    'a'.repeat(21),
    '9'.repeat(2_001),
  ])
    it(`reads no item in ${JSON.stringify(text.slice(0, 40))}`, () => assert.equal(parse(text).kind, 'unreadable'))
})
