import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { cbcDecrypt, cmacOnce, createAesKey, embeddedKey } from './aes.ts'
import { hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js'
import { toHex, join, littleEndian } from '../bytes.ts'
import { deriveFileKey, deriveMetaKey } from '../keys/derivations.ts'
import { isMacValid, macInputBytes, oddBytes, readPicc, sessionVector, sunMac } from './sun.ts'

const zeroKey = new Uint8Array(16)
const nothing = new Uint8Array(0)
const opened = (key: Uint8Array, picc: string) => readPicc(createAesKey(key).ecbDecrypt(hexToBytes(picc)))
const session = (key: Uint8Array, uid: string, counter: number) =>
  cmacOnce(key, sessionVector(hexToBytes(uid), counter))
/** SV1, for file data, which the service itself does not read. */
const encryptionVector = (uid: string, counter: number) =>
  join([0xc3, 0x3c, 0x00, 0x01, 0x00, 0x80], hexToBytes(uid), littleEndian(counter, 3))

describe('AN12196: PICC data and MAC under zero keys', () => {
  const plain = createAesKey(zeroKey).ecbDecrypt(hexToBytes('EF963FF7828658A599F3041510671E88'))

  it('decrypts the PICC block (§3.4.2)', () => {
    assert.equal(toHex(plain), 'C704DE5F1EACC0403D0000DA5CF60941')
    assert.deepEqual(readPicc(plain), { form: 'uid and counter', uid: hexToBytes('04DE5F1EACC040'), counter: 61 })
  })

  it('makes session vector, session key, full and truncated MAC (§3.4.4)', () => {
    const vector = sessionVector(hexToBytes('04DE5F1EACC040'), 61)
    assert.equal(toHex(vector), '3CC30001008004DE5F1EACC0403D0000')
    const key = cmacOnce(zeroKey, vector)
    assert.equal(toHex(key), '3FB5F6E3A807A03D5E3570ACE393776F')
    assert.equal(toHex(cmacOnce(key, nothing)), 'E194C7EE12D9F7EE8A65C8331B704386')
    assert.equal(toHex(oddBytes(cmacOnce(key, nothing))), '94EED9EE65337086')
    assert.equal(isMacValid(key, nothing, hexToBytes('94EED9EE65337086')), true)
    assert.equal(isMacValid(key, nothing, hexToBytes('94EED9EE65337087')), false)
    assert.equal(isMacValid(key, nothing, hexToBytes('94EED9EE653370')), false)
  })

  it('makes the session keys of table 1', () => {
    const key = hexToBytes('5ACE7E50AB65D5D51FD5BF5A16B8205B')
    assert.equal(toHex(session(key, '04C767F2066180', 1)), '3A3E8110E05311F7A3FCF0D969BF2B48')
    assert.equal(toHex(cmacOnce(key, encryptionVector('04C767F2066180', 1))), '66DA61797E23DECA5D8ECA13BBADF7A9')
  })

  it('signs file data as text of the address (§3.4.3)', () => {
    const enc = 'CEE9A53E3E463EF1F459635736738962'
    const picc = opened(zeroKey, 'FD91EC264309878BE6345CBE53BADF40')
    assert.deepEqual(picc, { form: 'uid and counter', uid: hexToBytes('04958CAA5C5E80'), counter: 8 })
    const key = session(zeroKey, '04958CAA5C5E80', 8)
    assert.equal(toHex(key), '3ED0920E5E6A0320D823D5987FEAFBB1')
    assert.equal(toHex(sunMac(key, utf8ToBytes(`${enc}&cmac=`))), 'ECC1E7F6C6C73BF6')
    const encryptionKey = cmacOnce(zeroKey, encryptionVector('04958CAA5C5E80', 8))
    assert.equal(toHex(encryptionKey), '42132D669442AD43E072C8C0C9828A72')
    const iv = createAesKey(encryptionKey).encryptBlock(join(littleEndian(8, 3), new Uint8Array(13)))
    assert.equal(toHex(iv), '0AD3EB2717A58332CBC8899BBECBD411')
    assert.equal(Buffer.from(cbcDecrypt(encryptionKey, iv, hexToBytes(enc))).toString(), 'xxxxxxxxxxxxxxxx')
  })
})

describe('sdm-backend: its test addresses', () => {
  it('verifies the address with stored keys', () => {
    const picc = opened(hexToBytes('42aff114f2cb3b6141be6dc95dfc5416'), '8ACADDEF0A9B62CDAE39A16B83FC14DE')
    assert.deepEqual(picc, { form: 'uid and counter', uid: hexToBytes('041d3c8a2d6b80'), counter: 291 })
    const key = session(hexToBytes('b62a9baf092439bd43c62aee96b970c5'), '041d3c8a2d6b80', 291)
    assert.equal(toHex(sunMac(key, utf8ToBytes('B8436E11F627BB7F543FCC0C1E0D1A89'))), '238B2543A8DEBAD8')
  })

  it('verifies a plain UID and counter under the zero key', () => {
    assert.equal(toHex(sunMac(session(zeroKey, '041E3C8A2D6B80', 6), nothing)), '4B00064004B0B3D3')
  })

  it('verifies the bulk address under derived keys', async () => {
    const master = hexToBytes('47BBB68AFA73F31310BEEFCE5DDA692DBAD671A03FEAD5A9BBDBCF3CD6D4C521')
    const picc = opened((await deriveMetaKey('sdm-backend', master)) ?? zeroKey, '4F5B914723915D456C038FE658686CD5')
    assert.deepEqual(picc, { form: 'uid and counter', uid: hexToBytes('047d5f2aaa6180'), counter: 2 })
    const batch = { derivation: 'sdm-backend', systemId: 'x', fileKeyNo: 2, fileMaster: embeddedKey(master) } as const
    const fileKey = (await deriveFileKey(batch, hexToBytes('047d5f2aaa6180'))) ?? zeroKey
    const mac = sunMac(session(fileKey, '047d5f2aaa6180', 2), utf8ToBytes('5CE7DCDEA93F5DA7AAA0AADC97485ABF'))
    assert.equal(toHex(mac), 'FFCD8DE82AD05289')
  })
})

describe('Bolt Card: its test taps', () => {
  const taps: readonly [number, string, string][] = [
    [3, '4E2E289D945A66BB13377A728884E867', 'E19CCB1FED8892CE'],
    [5, '00F48C4F8E386DED06BCDC78FA92E2FE', '66B4826EA4C155B4'],
    [7, '0DBF3C59B59B0638D60B5842A997D4D1', 'CC61660C020B4D96'],
  ]
  for (const [counter, picc, cmac] of taps) {
    it(`verifies counter ${counter}`, () => {
      const block = opened(hexToBytes('0c3b25d92b38ae443229dd59ad34b85d'), picc)
      assert.deepEqual(block, { form: 'uid and counter', uid: hexToBytes('04996c6a926980'), counter })
      const key = session(hexToBytes('b45775776cb224c75bcde7ca3704e933'), '04996c6a926980', counter)
      assert.equal(toHex(sunMac(key, nothing)), cmac)
    })
  }
})

describe('reading a PICC block', () => {
  it('knows the forms that chips can send, and no other', () => {
    const form = (tagByte: number) => readPicc(join([tagByte], new Uint8Array(15))).form
    const known = new Map([
      [0xc7, 'uid and counter'],
      [0x87, 'uid only'],
      [0x40, 'counter only'],
    ])
    for (let tagByte = 0; tagByte < 256; tagByte++) assert.equal(form(tagByte), known.get(tagByte) ?? 'other')
  })

  it('reads the whole range of the counter, least significant byte first', () => {
    const counterOf = (hex: string) => {
      const block = readPicc(hexToBytes(`C700000000000000${hex}0000000000`))
      return block.form === 'other' ? null : block.counter
    }
    assert.equal(counterOf('010000'), 1)
    assert.equal(counterOf('0000FF'), 0xff0000)
    assert.equal(counterOf('FFFFFF'), 0xffffff)
  })
})

describe('the MAC input', () => {
  it('is the upper-case text of the block, whatever came in the address', () => {
    const picc = hexToBytes('ef963ff7828658a599f3041510671e88')
    assert.equal(Buffer.from(macInputBytes('picc', picc)).toString(), 'EF963FF7828658A599F3041510671E88&cmac=')
    assert.equal(macInputBytes('empty', picc).length, 0)
  })
})
