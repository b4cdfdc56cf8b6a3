import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { describe, it } from 'node:test'
import { changed, keysOf } from '../../../test/support/passport/issuer.ts'
import type { SigningKey } from '../../keys/key.ts'
import { changeIssuerKeys, generateIssuerKeys, parseIssuerKeys, type IssuerKeyChange } from './issuer-keys.ts'

type Jwk = Record<string, unknown>
const textOf = (...keys: Jwk[]): string => JSON.stringify({ keys })
const membersOf = (text: string): Jwk[] => JSON.parse(text).keys
const [es256 = {}, ed25519 = {}] = membersOf(await generateIssuerKeys())
const [otherEs256 = {}, otherEd25519 = {}] = membersOf(await generateIssuerKeys())

/** A key of a key store, on P-256. */
function storedKey(name: string): SigningKey {
  const jwk = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' })
  const [x, y] = [jwk.x, jwk.y].map((half) => Buffer.from(half ?? '', 'base64url'))
  const publicKey = Buffer.concat([Buffer.of(4), x ?? Buffer.alloc(0), y ?? Buffer.alloc(0)])
  return { name, curve: 'P-256', publicKey, sign: () => Promise.reject(new Error('it does not sign')) }
}

const summary = (text: string | null) => keysOf(text).map(({ id, algorithm, status }) => `${id} ${algorithm} ${status}`)

async function refusalOf(text: string, change: IssuerKeyChange): Promise<string> {
  const after = await changeIssuerKeys(text, change)
  assert.ok(typeof after !== 'string')
  return after.refused
}

describe('issuer keys', () => {
  it('are made as one ES256 and one Ed25519 key', async () => {
    assert.deepEqual(summary(await generateIssuerKeys()), ['key-1 ES256 active', 'key-2 Ed25519 active'])
    assert.notEqual(await generateIssuerKeys(), await generateIssuerKeys())
  })

  it('may be a single JWK', () => {
    const { kid: _kid, status: _status, ...plain } = es256
    assert.deepEqual(summary(JSON.stringify(plain)), ['key-1 ES256 active'])
  })

  it('rotate by addition: the old ones stay and only verify', async () => {
    const text = await changed(textOf(es256, ed25519), { kind: 'rotate' })
    assert.deepEqual(summary(text), [
      'key-1 ES256 retired',
      'key-2 Ed25519 retired',
      'key-3 ES256 active',
      'key-4 Ed25519 active',
    ])
    assert.equal(membersOf(text)[0]?.['x'], es256['x'])
    assert.equal(summary(await changed(text, { kind: 'rotate' })).length, 6)
  })

  it('that are new have a name that none had before, also behind a gap', async () => {
    const text = await changed(textOf({ ...es256, kid: 'key-3' }, { ...ed25519, kid: 'key-7' }), { kind: 'rotate' })
    assert.deepEqual(summary(text).slice(2), ['key-8 ES256 active', 'key-9 Ed25519 active'])
  })

  it('sign with the private half of the text where it has one, whatever the key store has under their name', () => {
    const other = storedKey('issuer-key-1')
    const read = parseIssuerKeys(textOf(es256), new Map([['key-1', other]]))
    assert.ok(read.ok)
    assert.ok(read.keys[0]?.sign)
    const { d: _d, ...publicHalf } = es256
    const taken = parseIssuerKeys(textOf(publicHalf), new Map([['key-1', other]]))
    assert.ok(!taken.ok)
    assert.match(taken.reason, /issuer-key-1 of the PKCS#11 token is another key/)
  })

  it('are revoked with a time when they were stolen; one that signed gets a successor, others keep their status', async () => {
    const once = await changed(textOf(es256, ed25519), { kind: 'rotate' })
    const at = '2026-11-20T00:00:00Z'
    const text = await changed(await changed(once, { kind: 'revoke', id: 'key-4', at }), {
      kind: 'revoke',
      id: 'key-1',
      at,
    })
    assert.deepEqual(summary(text), [
      'key-1 ES256 revoked',
      'key-2 Ed25519 retired',
      'key-3 ES256 active',
      'key-4 Ed25519 revoked',
      'key-5 Ed25519 active',
    ])
    assert.deepEqual(
      keysOf(text).map(({ revoked }) => revoked),
      [at, null, null, at, null],
    )
  })

  it('are retired one by one, but neither the last that signs nor the one of certificates', async () => {
    assert.equal(
      await refusalOf(textOf(es256, ed25519), { kind: 'retire', id: 'key-1' }),
      'Key key-1 is the only one that signs certificates and their status lists: rotate the keys instead.',
    )
    assert.match(await refusalOf(textOf(ed25519), { kind: 'retire', id: 'key-2' }), /only one that signs: rotate/)
    const text = await changed(textOf(es256, ed25519), { kind: 'retire', id: 'key-2' })
    assert.deepEqual(summary(text), ['key-1 ES256 active', 'key-2 Ed25519 retired'])
    assert.match(await refusalOf(text, { kind: 'retire', id: 'key-1' }), /only one that signs/)
    assert.match(await refusalOf(text, { kind: 'retire', id: 'key-2' }), /retired already/)
    assert.match(await refusalOf(text, { kind: 'retire', id: 'key-3' }), /no key key-3/)
    const revoked = await changed(text, { kind: 'revoke', id: 'key-1', at: '2026-11-20T00:00:00Z' })
    assert.match(
      await refusalOf(revoked, { kind: 'revoke', id: 'key-1', at: '2026-11-20T00:00:00Z' }),
      /revoked already/,
    )
  })

  it('stay readable however often they are rotated: there is a last rotation, and a stolen key is revoked after it', async () => {
    const { d: _d, ...publicHalf } = es256
    const former = Array.from({ length: 176 }, (_key, at) => ({
      ...publicHalf,
      kid: `key-${at + 1}`,
      status: 'retired',
    }))
    const text = textOf(...former, { ...es256, kid: 'key-177' }, { ...ed25519, kid: 'key-178' })
    const last = await changed(text, { kind: 'rotate' })
    assert.equal(keysOf(last).length, 180)
    assert.match(await refusalOf(last, { kind: 'rotate' }), /^There are 180 keys/)
    const revoked = await changed(last, { kind: 'revoke', id: 'key-179', at: '2026-11-20T00:00:00Z' })
    assert.equal(summary(revoked).at(-1), 'key-181 ES256 active')
  })

  it('are 200 at most: a stolen one of them is revoked without a successor', async () => {
    const { d: _d, ...publicHalf } = es256
    const former = Array.from({ length: 199 }, (_key, at) => ({
      ...publicHalf,
      kid: `key-${at + 2}`,
      status: 'retired',
    }))
    const text = await changed(textOf(es256, ...former), { kind: 'revoke', id: 'key-1', at: '2026-11-20T00:00:00Z' })
    assert.equal(summary(text).length, 200)
  })

  it('may not be retired where the others of their algorithm are retired already', async () => {
    const former = { ...otherEd25519, kid: 'key-1', status: 'retired' }
    assert.match(
      await refusalOf(textOf(former, ed25519), { kind: 'retire', id: 'key-2' }),
      /^Key key-2 is the only one that signs/,
    )
    assert.deepEqual(summary(textOf(ed25519, former)), ['key-2 Ed25519 active', 'key-1 Ed25519 retired'])
  })

  it('that no longer sign may be public only', () => {
    const { d: _d, ...publicHalf } = es256
    assert.equal(keysOf(textOf({ ...publicHalf, status: 'retired' }))[0]?.sign, null)
  })

  it('never show their private half in what is published', () => {
    for (const key of keysOf(textOf(es256, ed25519))) assert.ok(!('d' in key.publicJwk))
  })

  const gateway = generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey.export({ format: 'jwk' })
  const refused: readonly (readonly [string, string, RegExp])[] = [
    ['no JSON', 'secret-text', /neither a JWK Set nor a JWK/],
    ['an empty set', '{"keys":[]}', /neither/],
    ['a list', '[]', /neither/],
    ['a set that holds no key', '{"keys":[null]}', /neither/],
    ['a very long text', ' '.repeat(140_000), /too long/],
    ['very many keys', JSON.stringify({ keys: Array(1_000).fill({}) }), /too many keys/],
    ['the gateway key', JSON.stringify(gateway), /gateway/],
    ['an RSA key', '{"kty":"RSA","n":"AQ","e":"AQAB"}', /only P-256/],
    ['a key of the wrong type', textOf({ ...es256, kty: 'OKP' }), /only P-256/],
    ['a key without private half that is to sign', textOf({ ...es256, d: undefined }), /private half/],
    ['P-256 halves of two keys', textOf({ ...es256, d: otherEs256['d'] }), /belong together/],
    ['Ed25519 halves of two keys', textOf({ ...ed25519, d: otherEd25519['d'] }), /belong together/],
    ['a point that is not on the curve', textOf({ ...es256, y: es256['x'] }), /no key/],
    ['a point without y', textOf({ ...es256, y: undefined }), /incomplete/],
    ['an Ed25519 key with y', textOf({ ...ed25519, y: ed25519['x'] }), /incomplete/],
    ['an odd kid', textOf({ ...es256, kid: '../x' }), /kid/],
    ['a kid with a zero in front', textOf({ ...es256, kid: 'key-01' }), /kid/],
    ['the same kid twice', textOf(es256, { ...ed25519, kid: 'key-1' }), /twice/],
    ['two active keys of one algorithm', textOf(es256, { ...otherEs256, kid: 'key-2' }), /active/],
    ['an unknown status', textOf({ ...es256, status: 'on' }), /status/],
    ['a revocation without time', textOf({ ...es256, status: 'revoked', revoked: 'yes' }), /revoked/],
  ]
  for (const [what, text, reason] of refused) {
    it(`are refused for ${what}, without quoting the text`, async () => {
      const read = parseIssuerKeys(text)
      assert.ok(!read.ok)
      assert.match(read.reason, reason)
      assert.ok(!read.reason.includes('secret') && !read.reason.includes(String(es256['d'])))
      assert.equal(await refusalOf(text, { kind: 'rotate' }), read.reason)
    })
  }
})
