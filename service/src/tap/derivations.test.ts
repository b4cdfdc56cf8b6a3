import assert from 'node:assert/strict'
import { pbkdf2Sync } from 'node:crypto'
import { describe, it } from 'node:test'
import { embeddedKey } from './aes.ts'
import { hexOf } from './bytes.ts'
import { boltcardKeys, fileKeyOf, metaKeyOf, type Derivation } from './derivations.ts'

const bytes = (hex: string) => Uint8Array.from(Buffer.from(hex, 'hex'))

async function fileKey(derivation: Derivation, master: string, uid: string, fileKeyNo = 2): Promise<string> {
  const batch = { derivation, derivationVersion: 1, systemId: 'avs', fileKeyNo, fileMaster: embeddedKey(bytes(master)) }
  const key = await fileKeyOf(batch, bytes(uid))
  return key === null ? '' : hexOf(key)
}

describe('derivations of file keys', () => {
  it('an10922: the key of slot 2 from UID, application and system id', async () => {
    const key = await fileKey('an10922', '00112233445566778899AABBCCDDEEFF', '04782E21801D80')
    assert.equal(key, 'D11980E5258E510275155415664D1514')
  })

  it('tagit-sdm: the label and the UID under the master, which is also metaRead', async () => {
    const master = '00112233445566778899AABBCCDDEEFF'
    assert.equal(await fileKey('tagit-sdm', master, '04782E21801D80'), '55211E43D9A3CC0999364D161CD1629E')
    assert.equal(hexOf((await metaKeyOf('tagit-sdm', bytes(master))) ?? bytes('')), master)
  })

  it('sdm-backend: the test vectors of its key derivation', async () => {
    const first = 'C9EB67DF090AFF47C3B19A2516680B9D'
    const second = 'B95F4C27E3D0BC333792EA968545217F'
    assert.equal(hexOf((await metaKeyOf('sdm-backend', bytes(first))) ?? bytes('')), 'A13086F194D7BDFD108DD11716EA2BDF')
    assert.equal(await fileKey('sdm-backend', first, '010203040506AB', 1), 'F18CDD9389D47AE7AB381E80E5AB6FE3')
    assert.equal(await fileKey('sdm-backend', first, '03030303030303'), '85F7CC459A5B4B2F5D1A5019DED61C88')
    assert.equal(
      hexOf((await metaKeyOf('sdm-backend', bytes(second))) ?? bytes('')),
      '3A553C40846FDA656FAA0FCE4F45FDBD',
    )
    assert.equal(await fileKey('sdm-backend', second, '05050505050505'), '89AE686DE793FDF48057EE6E78505CFC')
  })

  it('sdm-backend-legacy: PBKDF2-HMAC-SHA512 over the salts of that scheme', async () => {
    const master = 'C9EB67DF090AFF47C3B19A2516680B9D'
    const stretched = (salt: string) =>
      pbkdf2Sync(bytes(master), bytes(salt), 5000, 16, 'sha512').toString('hex').toUpperCase()
    const meta = await metaKeyOf('sdm-backend-legacy', bytes(master))
    assert.equal(hexOf(meta ?? bytes('')), stretched('6b65795f6e6f5f75696401'))
    assert.equal(await fileKey('sdm-backend-legacy', master, '03030303030303'), stretched('6b65790303030303030302'))
  })

  it('boltcard: the keys of the Bolt Card deterministic scheme', async () => {
    const issuer = '00000000000000000000000000000001'
    const uid = '04a39493cc8680'
    const { cardKey, id, slots } = await boltcardKeys(embeddedKey(bytes(issuer)), bytes(uid), 1)
    assert.equal(hexOf(cardKey), 'EBFF5A4E6DA5EE14CBFE720AE06FBED9')
    assert.equal(hexOf(id), 'E07CE1279D980ECB892A81924B67BF18')
    assert.deepEqual(slots.slice(0, 3).map(hexOf), [
      'A29119FCB48E737D1591D3489557E49B',
      '55DA174C9608993DC27BB3F30A4A7314',
      'F4B404BE700AB285E333E32348FA3D3B',
    ])
    assert.equal(new Set(slots.map(hexOf)).size, 5)
    assert.equal(await fileKey('boltcard', issuer, uid), 'F4B404BE700AB285E333E32348FA3D3B')
    assert.equal(hexOf((await metaKeyOf('boltcard', bytes(issuer))) ?? bytes('')), '55DA174C9608993DC27BB3F30A4A7314')
  })

  it('direct: nothing is derived', async () => {
    assert.equal(await fileKey('direct', '00112233445566778899AABBCCDDEEFF', '04782E21801D80'), '')
    assert.equal(await metaKeyOf('direct', new Uint8Array(16)), null)
  })

  it('refuses a scheme that needs the bytes of a master that does not give them', () => {
    const { ecbDecrypt, cmac } = embeddedKey(new Uint8Array(16))
    const batch = { derivation: 'sdm-backend', systemId: 'x', fileKeyNo: 2, fileMaster: { ecbDecrypt, cmac } } as const
    assert.throws(() => fileKeyOf(batch, new Uint8Array(7)), RangeError)
  })
})
