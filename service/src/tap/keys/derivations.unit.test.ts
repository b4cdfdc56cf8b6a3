import assert from 'node:assert/strict'
import { createCipheriv, pbkdf2Sync } from 'node:crypto'
import { describe, it } from 'node:test'
import { hexToBytes } from '@noble/hashes/utils.js'
import { createAesKey, embeddedKey, twoBlockMac } from '../sun/aes.ts'
import { toHex, join } from '../bytes.ts'
import {
  an10922,
  boltcardKeys,
  type Derivation,
  diversificationInput,
  deriveFileKey,
  deriveMetaKey,
  formatScheme,
  parseScheme,
  schemeNames,
  systemIdBytes,
} from './derivations.ts'
import fc from 'fast-check'

async function fileKey(
  derivation: Derivation,
  master: string,
  uid: string,
  fileKeyNo = 2,
  systemId = 'avs',
): Promise<string> {
  const batch = {
    derivation,
    derivationVersion: 1,
    systemId,
    fileKeyNo,
    fileMaster: embeddedKey(hexToBytes(master)),
  }
  const key = await deriveFileKey(batch, hexToBytes(uid))
  return key === null ? '' : toHex(key)
}

const metaKey = async (derivation: Derivation, master: string): Promise<string> =>
  toHex((await deriveMetaKey(derivation, hexToBytes(master))) ?? hexToBytes(''))

describe('derivations of file keys', () => {
  it('an10922: the key of slot 2 from UID, application and system id', async () => {
    const input = diversificationInput(hexToBytes('04782E21801D80'), 2, 'avs')
    assert.equal(toHex(input), '04782E21801D80D276000085010102617673')
    const key = await fileKey('an10922', '00112233445566778899AABBCCDDEEFF', '04782E21801D80')
    assert.equal(key, 'D11980E5258E510275155415664D1514')
  })

  it('an10922-systemid: the example of AN10922 §2.2.1, and any other length of the system id', async () => {
    const master = '00112233445566778899AABBCCDDEEFF'
    const keyOf = (systemId: string) => fileKey('an10922-systemid', master, '04782E21801D80', 2, systemId)
    assert.equal(await keyOf('0x3042F54E585020416275'), 'A8DD63A3B89D54B37CA802473FDA9175')
    for (const text of ['a', 'eight888', 'nine99999', 'twenty-four bytes of it.'])
      assert.equal(
        await keyOf(text),
        toHex(byTheNote(hexToBytes(master), join(hexToBytes('04782E21801D80'), Buffer.from(text)))),
      )
  })

  it('takes a system id as ASCII text or as bytes in hex, and no other', () => {
    for (const text of ['', 'é', 'a\n', '0x', '0x3', '0x3g', 'x'.repeat(25), `0x${'30'.repeat(25)}`])
      assert.equal(systemIdBytes(text), null, text)
    assert.deepEqual(systemIdBytes('0x3042'), systemIdBytes('0B'))
  })

  it('an10922-uid: the padding of AN10922 for a short input, which is not that of CMAC', async () => {
    const zeros = '00'.repeat(16)
    const uid = '04782E21801D80'
    assert.equal(await fileKey('an10922-uid', zeros, uid), toHex(byTheNote(new Uint8Array(16), hexToBytes(uid))))
    assert.notEqual(
      await fileKey('an10922-uid', zeros, uid),
      toHex(createAesKey(new Uint8Array(16)).cmac(join([1], hexToBytes(uid)))),
    )
    // The published value for 15 zero bytes.
    assert.equal(
      toHex(twoBlockMac(new Uint8Array(16), join([1], new Uint8Array(15)))),
      '5CA6B9ED3759FE07C878FC8FE1315E2E',
    )
  })

  it('have names for the command line that read back', () => {
    for (const name of [...schemeNames, 'boltcard-v4294967295']) {
      const scheme = parseScheme(name)
      assert.ok(scheme)
      assert.equal(formatScheme(scheme), name)
    }
    for (const name of ['', 'boltcard', 'boltcard-v', 'boltcard-v4294967296', 'boltcard-v-1', 'AN10922', 'constructor'])
      assert.equal(parseScheme(name), null, name)
  })

  it('tagit-sdm: the label and the UID under the master, which is also metaRead', async () => {
    const master = '00112233445566778899AABBCCDDEEFF'
    assert.equal(await fileKey('tagit-sdm', master, '04782E21801D80'), '55211E43D9A3CC0999364D161CD1629E')
    assert.equal(await metaKey('tagit-sdm', master), master)
  })

  it('sdm-backend: the test vectors of its key derivation', async () => {
    const first = 'C9EB67DF090AFF47C3B19A2516680B9D'
    const second = 'B95F4C27E3D0BC333792EA968545217F'
    assert.equal(await metaKey('sdm-backend', first), 'A13086F194D7BDFD108DD11716EA2BDF')
    assert.equal(await fileKey('sdm-backend', first, '010203040506AB', 1), 'F18CDD9389D47AE7AB381E80E5AB6FE3')
    assert.equal(await fileKey('sdm-backend', first, '03030303030303'), '85F7CC459A5B4B2F5D1A5019DED61C88')
    assert.equal(await metaKey('sdm-backend', second), '3A553C40846FDA656FAA0FCE4F45FDBD')
    assert.equal(await fileKey('sdm-backend', second, '05050505050505'), '89AE686DE793FDF48057EE6E78505CFC')
  })

  it('sdm-backend-legacy: PBKDF2-HMAC-SHA512 over the salts of that scheme', async () => {
    const master = 'C9EB67DF090AFF47C3B19A2516680B9D'
    const stretched = (salt: string) =>
      pbkdf2Sync(hexToBytes(master), hexToBytes(salt), 5000, 16, 'sha512').toString('hex').toUpperCase()
    assert.equal(await metaKey('sdm-backend-legacy', master), stretched('6b65795f6e6f5f75696401'))
    assert.equal(await fileKey('sdm-backend-legacy', master, '03030303030303'), stretched('6b65790303030303030302'))
  })

  it('boltcard: the keys of the Bolt Card deterministic scheme', async () => {
    const issuer = '00000000000000000000000000000001'
    const uid = '04a39493cc8680'
    const { cardKey, id, slots } = await boltcardKeys(embeddedKey(hexToBytes(issuer)), hexToBytes(uid), 1)
    assert.equal(toHex(cardKey), 'EBFF5A4E6DA5EE14CBFE720AE06FBED9')
    assert.equal(toHex(id), 'E07CE1279D980ECB892A81924B67BF18')
    assert.deepEqual(slots.map(toHex), [
      'A29119FCB48E737D1591D3489557E49B',
      '55DA174C9608993DC27BB3F30A4A7314',
      'F4B404BE700AB285E333E32348FA3D3B',
      '73610BA4AFE45B55319691CB9489142F',
      'ADDD03E52964369BE7F2967736B7BDB5',
    ])
    assert.equal(await fileKey('boltcard', issuer, uid), 'F4B404BE700AB285E333E32348FA3D3B')
    assert.equal(await metaKey('boltcard', issuer), '55DA174C9608993DC27BB3F30A4A7314')
  })

  it('direct: nothing is derived', async () => {
    assert.equal(await fileKey('direct', '00112233445566778899AABBCCDDEEFF', '04782E21801D80'), '')
    assert.equal(await deriveMetaKey('direct', new Uint8Array(16)), null)
  })

  it('refuses a scheme that needs the bytes of a master that does not give them', () => {
    const { ecbDecrypt, cmac } = embeddedKey(new Uint8Array(16))
    const batch = { derivation: 'sdm-backend', systemId: 'x', fileKeyNo: 2, fileMaster: { ecbDecrypt, cmac } } as const
    assert.throws(() => deriveFileKey(batch, new Uint8Array(7)), RangeError)
  })
})

const example = hexToBytes('00112233445566778899AABBCCDDEEFF')
const derived = async (key: Uint8Array, input: Uint8Array) => toHex(await an10922(createAesKey(key), input))

describe('AN10922 key diversification', () => {
  it('rests on the subkeys of AN10922 §2.2.1', () => {
    const [k0, k1, k2] = subkeys(example)
    assert.equal(toHex(k0), 'FDE4FBAE4A09E020EFF722969F83832B')
    assert.equal(toHex(k1), 'FBC9F75C9413C041DFEE452D3F0706D1')
    assert.equal(toHex(k2), 'F793EEB928278083BFDC8A5A7E0E0D25')
  })

  it('equals plain CMAC from 16 bytes on, and differs below', async () => {
    const zeroKey = new Uint8Array(16)
    assert.equal(await derived(zeroKey, new Uint8Array(16)), 'D8FDE90CA79F04AB7F50FE462D9153AD')
    assert.equal(toHex(byTheNote(zeroKey, new Uint8Array(16))), 'D8FDE90CA79F04AB7F50FE462D9153AD')
    assert.equal(toHex(byTheNote(zeroKey, new Uint8Array(15))), '5CA6B9ED3759FE07C878FC8FE1315E2E')
    const plainCmac = createAesKey(zeroKey).cmac(join([1], new Uint8Array(15)))
    assert.equal(toHex(plainCmac), 'A3582DDDFA01FFC4D94BE62DEB0972D8')
  })

  it('refuses inputs outside 16 to 31 bytes', () => {
    for (const length of [0, 15, 32, 100]) {
      assert.throws(() => an10922(createAesKey(example), new Uint8Array(length)), RangeError)
    }
  })

  it('is the construction of the note, for every length it accepts', async () => {
    const key = fc.uint8Array({ minLength: 16, maxLength: 16 })
    const input = fc.uint8Array({ minLength: 16, maxLength: 31 })
    await fc.assert(
      fc.asyncProperty(key, input, async (master, m) => {
        assert.equal(await derived(master, m), toHex(byTheNote(master, m)))
      }),
    )
  })
})

/** AN10922 §2.2 word by word, on node:crypto: pad 01 || M to 32 bytes, mask the last block, CBC. */
function byTheNote(key: Uint8Array, m: Uint8Array): Uint8Array {
  const [, k1, k2] = subkeys(key)
  const message = new Uint8Array(32)
  message.set(join([1], m))
  if (m.length < 31) message[m.length + 1] = 0x80
  const mask = m.length < 31 ? k2 : k1
  for (let index = 0; index < 16; index++) message[16 + index] = (message[16 + index] ?? 0) ^ (mask[index] ?? 0)
  const cipher = createCipheriv('aes-128-cbc', key, new Uint8Array(16)).setAutoPadding(false)
  return cipher.update(message).subarray(16)
}

function subkeys(key: Uint8Array): [Uint8Array, Uint8Array, Uint8Array] {
  const k0 = createCipheriv('aes-128-ecb', key, null).setAutoPadding(false).update(new Uint8Array(16))
  const doubled = (block: Uint8Array) => {
    const value = BigInt(`0x${toHex(block)}`) << 1n
    const reduced = value >> 128n ? (value ^ 0x87n) & ((1n << 128n) - 1n) : value
    return hexToBytes(reduced.toString(16).padStart(32, '0'))
  }
  return [k0, doubled(k0), doubled(doubled(k0))]
}
