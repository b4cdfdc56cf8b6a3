import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { untrustedFields, untrustedOf, untrustedWarning } from './untrusted.ts'

const bare = { _warning: untrustedWarning }

describe('untrustedOf', () => {
  it('always warns', () => {
    for (const metadata of [null, undefined, 7, 'text', [], ['name'], {}]) assert.deepEqual(untrustedOf(metadata), bare)
  })

  it('copies the seven texts and nothing else', () => {
    const seven = Object.fromEntries(
      untrustedFields.map((name) => [name, name === 'image' ? 'https://assets.example/a.webp' : name]),
    )
    assert.deepEqual(untrustedOf({ '@id': 'x', _warning: 'all is well', ...seven, price: '1' }), { ...bare, ...seven })
    assert.equal(untrustedFields.length, 7)
  })

  it('leaves out values that are no texts, and texts that are empty after cleaning', () => {
    assert.deepEqual(
      untrustedOf({ name: 7, brand: ['a'], sku: { toString: 'x' }, size: '', origin: '\u200b \u{e0041}' }),
      bare,
    )
  })

  it('reads own members only', () => {
    assert.deepEqual(untrustedOf(Object.create({ name: 'inherited' })), bare)
    assert.deepEqual(untrustedOf(JSON.parse('{"__proto__":{"name":"x"}}')), bare)
  })

  it('strips hostile code points and caps each text at its length', () => {
    const long = 'x'.repeat(5000)
    const { name, description, sku } = untrustedOf({
      name: `Jacket\u202e\x1b[31m\u{e0041}`,
      description: `a\n${long}`,
      sku: long,
    })
    assert.equal(name, 'Jacket')
    assert.deepEqual([description?.length, sku?.length], [4000, 200])
    assert.ok(description?.startsWith('a\n'))
  })

  for (const [field, cap] of Object.entries({
    name: 200,
    brand: 200,
    sku: 200,
    origin: 200,
    size: 200,
    description: 4000,
  }))
    it(`keeps ${cap} characters of ${field}`, () => {
      const whole = 'x'.repeat(cap)
      assert.deepEqual(untrustedOf({ [field]: whole }), { ...bare, [field]: whole })
      assert.deepEqual(untrustedOf({ [field]: `${whole}x` }), { ...bare, [field]: `${whole.slice(1)}…` })
    })

  for (const image of [
    'https://assets.example/img/a%20b.webp',
    'https://assets.example/?x=1#y',
    'ipfs://bafybeigdyrzt5/a.png',
  ]) {
    it(`keeps the image ${image}`, () => assert.equal(untrustedOf({ image }).image, image))
  }

  const refused = [
    'http://assets.example/a.png',
    'https://user@assets.example/a.png',
    'https://user:secret@assets.example/a.png',
    'https://:@@assets.example/',
    'ipfs://user@bafybeigdyrzt5/a.png',
    'ipfs:bafybeigdyrzt5',
    'ipfs:///a.png',
    'javascript:alert(1)',
    'javascript:https://assets.example/a.png',
    'data:text/html,https://assets.example/a.png',
    'https:///',
    'data:image/png;base64,AAAA',
    '//assets.example/a.png',
    'a.png',
    'https://',
    `https://assets.example/${'a'.repeat(2048)}`,
  ]
  for (const image of refused)
    it(`leaves out the image ${image.slice(0, 50)}`, () => assert.deepEqual(untrustedOf({ image }), bare))

  it('takes an image of up to 2048 characters as the URL standard serialises it', () => {
    const image = `https://assets.example/${'a'.repeat(2048 - 23)}`
    assert.equal(image.length, 2048)
    assert.equal(untrustedOf({ image }).image, image)
    assert.deepEqual(untrustedOf({ image: `${image}a` }), bare)
  })

  it('leaves out a longer image, also where the URL standard would shorten what is left after a cut', () => {
    const image = `https://assets.example/${'a/../'.repeat(405)}`
    assert.equal(image.length, 2048)
    assert.equal(untrustedOf({ image }).image, 'https://assets.example/')
    assert.deepEqual(untrustedOf({ image: `${image}bag.png` }), bare)
  })

  it('emits an image as the URL standard serialises it', () => {
    assert.equal(
      untrustedOf({ image: ' HTTPS:\\\\assets.example/a b"><\u202e.png ' }).image,
      'https://assets.example/a%20b%22%3E%3C.png',
    )
  })
})
