import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertLinear } from '../../../../verdict/test/_linear.ts'
import fc from 'fast-check'
import { parseToolRequest } from './request.ts'

const inText = (text: string) => parseToolRequest([{ text }], undefined)
const inData = (data: unknown) => parseToolRequest([{ data }], undefined)
const run = (skill: string, args: object) => ({ kind: 'run', skill, args })

describe('the request in a message', () => {
  it('takes the only number of a text, and the skill that its words name', () => {
    assert.deepEqual(inText('Is product #42 genuine?'), run('verify_asset', { token_id: '42' }))
    assert.deepEqual(inText('Is the clean watch, token 42, what it seems?'), run('verify_asset', { token_id: '42' }))
    for (const text of [
      'token-42',
      'Token-42',
      '{"token_id":"42"}',
      'token_id=42',
      '(42)',
      '«42»',
      'Is **42** genuine?',
      'I have a bag. Is 42 genuine?',
      'Verify the token with number 42.',
      'The token id is 42',
      'verify_asset(42)',
      'Tell me about\n42',
      'Please check the authenticity of 42',
      'I would like to know whether 42 is real',
      'VERIFY 42',
      'What is 42’s state?',
      'Ist das Produkt Nr. 42 echt?',
      'Le produit 42 est-il vrai ?',
      '¿Es 42 auténtico?',
      'هل المنتج \u200f42 أصلي؟',
      'Is 42 the one that was authenticated often?',
      'Is the leftover weight of 42 listed?',
    ])
      assert.deepEqual(inText(text), run('verify_asset', { token_id: '42' }), text)
    assert.deepEqual(inText('Was 00042 flagged?'), run('check_flagged', { token_id: '00042' }))
    assert.deepEqual(inText('Show me the history of 42.'), run('get_lifecycle_history', { token_id: '42' }))
  })

  for (const text of [
    '',
    'verify it',
    '42 and 43',
    '3.14',
    '3,14',
    '-5',
    '0x2a',
    'v2',
    '2nd',
    '٤٢',
    '9'.repeat(79),
    '1_000',
    'Is the satchel with serial number 5 genuine?',
    'S/N 5',
    'the GTIN is 09520001000003',
    'SKUs: 5',
    'Is HFJ-000417 genuine?',
    'HFJ–000417',
    'Is A/41 stolen?',
    '41-B',
    '41/B',
    'A+41',
    'A*41',
    'https://other.example/token/42',
    'https://other.example/?token=42',
    'Is the item of http://other.example:8080 genuine?',
    '5€',
    '5 €',
    '$5',
    '5%',
    '٥ or 5',
    '5 ½',
    'other.example?token=42',
    'Is the item of other.example:8080 genuine?',
    '42.example',
    '42@other.example',
    '−5',
    'HFJ−000417',
    'HFJ\u00ad000417',
    'HFJ:000417',
    'HFJ#000417',
    'Is HFJ 000417 genuine?',
    'HFJ\n000417',
    'Is my iPhone 15 genuine?',
    'Is Satchel No. 7 stolen?',
    '\u{202e}24',
    '≥42',
    '42+',
    '42–',
    'all but 42',
    'the tokens 42 through fifty',
    'Check 3 tokens',
    'Is lot 5 recalled?',
    'The barcode says 4006381333931',
    'El código de barras es 4006381333931',
    'Was it real at block 42?',
    'Is reference 16610 genuine?',
    'Is the chip 42 genuine?',
    'Verify it, and not 42',
    'Is batch no. 7 real?',
    'Satchel No. 7',
    'Größe 42',
    'the bag of size 42',
    'the bag that I bought in 2024',
    'Is it recalled since 30 days?',
    'The price is 42',
    'It is 42 EUR',
    'Ist die Seriennummer 5 echt?',
    'numéro de série 5',
    'x = 42',
    '42. and forty-three',
    'forty-two or 43',
    'Is 42 one of a hundred?',
    'Ist 42 oder dreiundvierzig echt?',
    '42 oder fünfzig',
    '42 et quarante-trois',
    '42 y cuarenta y tres',
    '42 وثلاثة وأربعون',
  ])
    it(`finds no token id in ${JSON.stringify(text.slice(0, 20))}`, () => {
      assert.deepEqual(inText(text), { kind: 'no token id', skill: 'verify_asset' })
    })

  it('finds any token id that stands alone, in time linear to the length', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }), (id) => {
        assert.deepEqual(inText(`check ${id} please`), run('verify_asset', { token_id: String(id) }))
      }),
    )
    for (const [part, end] of [
      ['1', ''],
      ['1', 'x'],
      ['1 ', ''],
      ['-', ''],
      ['zweiund', ''],
    ] as const)
      assertLinear((length) => inText(part.repeat(length / part.length) + end), 1_000_000)
  })

  it('passes a data part to its skill unchanged, and the tool checks it', () => {
    const data = { skill: 'verify_asset', token_id: '42', include_untrusted: false, more: 1 }
    assert.deepEqual(inData(data), run('verify_asset', { token_id: '42', include_untrusted: false, more: 1 }))
    assert.deepEqual(inData({ token_id: '42' }), run('verify_asset', { token_id: '42' }))
    assert.deepEqual(inData({ skill: 'check_flagged', tokenId: 42 }), run('check_flagged', { tokenId: 42 }))
  })

  it('asks for a token id if the data has none', () => {
    for (const data of [
      {},
      { token_id: '0x2a' },
      { token_id: -1 },
      { token_id: 1.5 },
      { token_id: null },
      { token_id: {} },
    ])
      assert.deepEqual(inData(data), { kind: 'no token id', skill: 'verify_asset' })
  })

  it('rejects other skills, also names that every object has', () => {
    for (const skill of ['transfer_asset', 'constructor', '', 7, null, {}])
      assert.deepEqual(inData({ skill, token_id: '42' }), { kind: 'unknown skill' })
  })

  it('keeps the skill of an earlier message unless the new one names another', () => {
    const later = (text: string) => parseToolRequest([{ text }], 'check_flagged')
    assert.deepEqual(later('42'), run('check_flagged', { token_id: '42' }))
    assert.deepEqual(later('its history: 42'), run('get_lifecycle_history', { token_id: '42' }))
  })

  it('prefers data over text, and rejects two data parts or one that is not an object', () => {
    const both = parseToolRequest([{ text: 'history of 7' }, { data: { token_id: '42' } }], undefined)
    assert.deepEqual(both, run('verify_asset', { token_id: '42' }))
    assert.equal('fault' in parseToolRequest([{ data: {} }, { data: {} }], undefined), true)
    for (const data of [42, '42', [42], null]) assert.equal('fault' in inData(data), true)
  })
})
