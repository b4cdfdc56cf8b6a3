import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fromJwk } from '@digitalbazaar/ed25519-multikey'
import { baseUrl, did } from '../../test/support/passport/fixtures.ts'
import { changed, keysOf } from '../../test/support/passport/issuer.ts'
import { didDocument, didOf } from './did-document.ts'
import { generateIssuerKeys, type IssuerKey } from './signing/issuer-keys.ts'

const first = await generateIssuerKeys()

describe('the DID document', () => {
  it('is of did:web and encodes a port', () => {
    assert.equal(didOf(baseUrl), did)
    assert.equal(didOf('http://127.0.0.1:8080'), 'did:web:127.0.0.1%3A8080')
    assert.equal(didOf('http://[::1]:8080'), 'did:web:%5B%3A%3A1%5D%3A8080')
  })

  it('asserts nothing while signing is off, and names the resolver', () => {
    const document = didDocument({ baseUrl, did, keys: [] })
    assert.deepEqual(document.assertionMethod, [])
    assert.ok(!('verificationMethod' in document))
    assert.deepEqual(document.service[0]?.serviceEndpoint.href, baseUrl)
    assert.ok(document.service[0]?.id.startsWith(`${did}#`))
  })

  it('lists every key there ever was, and lets all but the revoked assert', async () => {
    let text = first
    const at = '2026-11-20T00:00:00Z'
    for (const change of [
      { kind: 'rotate' },
      { kind: 'revoke', id: 'key-3', at },
      { kind: 'revoke', id: 'key-4', at },
    ] as const)
      text = await changed(text, change)
    const keys = keysOf(text)
    const { verificationMethod, assertionMethod } = didDocument({ baseUrl, did, keys })
    assert.deepEqual(
      verificationMethod?.map(({ id, type }) => `${id} ${type}`),
      [
        `${did}#key-1 JsonWebKey`,
        `${did}#key-2 Multikey`,
        `${did}#key-3 JsonWebKey`,
        `${did}#key-4 Multikey`,
        `${did}#key-5 JsonWebKey`,
        `${did}#key-6 Multikey`,
      ],
    )
    assert.deepEqual(
      assertionMethod,
      ['key-1', 'key-2', 'key-5', 'key-6'].map((id) => `${did}#${id}`),
    )
    assert.equal(verificationMethod?.[2]?.revoked, '2026-11-20T00:00:00Z')
  })

  it('writes an Ed25519 key as other libraries do', async () => {
    const keys = keysOf(first)
    const { publicKeyMultibase } = await fromJwk({ jwk: keys[1]?.publicJwk ?? {} })
    assert.ok(
      JSON.stringify(didDocument({ baseUrl, did, keys })).includes(`"publicKeyMultibase":"${publicKeyMultibase}"`),
    )
  })

  it('writes the Ed25519 key of the did:key examples', () => {
    const x = Buffer.from('2e6fcce36701dc791488e0d0b1745cc1e33a4c1c9fcc41c63bd343dbbe0970e6', 'hex').toString(
      'base64url',
    )
    const publicJwk = { kty: 'OKP', crv: 'Ed25519', x }
    const key: IssuerKey = {
      id: 'key-1',
      algorithm: 'Ed25519',
      status: 'active',
      publicJwk,
      sign: null,
      revoked: null,
    }
    const { verificationMethod } = didDocument({ baseUrl, did, keys: [key] })
    assert.ok(JSON.stringify(verificationMethod).includes('"z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK"'))
  })

  it('holds no private half', () => {
    const text = JSON.stringify(didDocument({ baseUrl, did, keys: keysOf(first) }))
    for (const { d } of JSON.parse(first).keys as { d: string }[]) assert.ok(!text.includes(d))
    assert.ok(!text.includes('"d"'))
  })
})
