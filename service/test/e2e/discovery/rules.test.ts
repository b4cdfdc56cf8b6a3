/** The vectors of docs/rules.md are what the code computes. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { cmacOnce, createAesKey, embeddedKey } from '../../../src/tap/sun/aes.ts'
import { macInputBytes, oddBytes, readPicc, sessionVector } from '../../../src/tap/sun/sun.ts'
import { toHex } from '../../../src/tap/bytes.ts'
import { createTagHash } from '../../../src/tap/tag-hash.ts'
import { deriveFileKey, deriveMetaKey, parseScheme } from '../../../src/tap/keys/derivations.ts'

const page = readFileSync(new URL('../../../../docs/rules.md', import.meta.url), 'utf8')
const bytes = (hex: string) => new Uint8Array(Buffer.from(hex, 'hex'))
/** Returns the texts that stand in a line of the page, in their order. */
function valuesOf(line: RegExp): string[] {
  const [found = ''] = line.exec(page) ?? []
  return [...found.matchAll(/`([^`]+)`/g)].map(([, value = '']) => value)
}

describe('docs/rules.md', () => {
  it('computes a tap', () => {
    const [picc = '', cmac, block, uid, session, full] = valuesOf(/(?<=both keys zero: ).*/).filter(
      (value) => !/picc|cmac/.test(value),
    )
    const zeros = new Uint8Array(16)
    const plain = createAesKey(zeros).ecbDecrypt(bytes(picc))
    const read = readPicc(plain)
    assert.ok(read.form === 'uid and counter')
    const key = cmacOnce(zeros, sessionVector(read.uid, read.counter))
    const mac = cmacOnce(key, macInputBytes('empty', bytes(picc)))
    assert.deepEqual(
      [toHex(plain), toHex(read.uid), read.counter, toHex(key), toHex(mac), toHex(oddBytes(mac))],
      [block, uid, 61, session, full, cmac],
    )
  })

  it('derives the keys of a tag', async () => {
    const [uid = '', master = '', ...rest] = valuesOf(/^Vectors, UID .*/m)
    const cases = [
      { scheme: 'an10922', uid, master, systemId: rest[1], meta: undefined, file: rest[2] },
      { scheme: 'tagit-sdm', uid, master, systemId: '', meta: master, file: rest[4] },
      { scheme: 'boltcard-v1', uid: rest[7] ?? '', master: rest[6] ?? '', systemId: '', meta: rest[8], file: rest[9] },
      {
        scheme: 'sdm-backend',
        uid: rest[12] ?? '',
        master: rest[11] ?? '',
        systemId: '',
        meta: rest[13],
        file: rest[14],
      },
    ]
    assert.deepEqual(
      [rest[0], rest[3], rest[5], rest[10]],
      cases.map(({ scheme }) => scheme),
    )
    for (const { scheme, systemId = '', ...of } of cases) {
      const parsed = parseScheme(scheme) ?? assert.fail(scheme)
      const fileMaster = embeddedKey(bytes(of.master))
      const file = await deriveFileKey({ ...parsed, systemId, fileKeyNo: 2, fileMaster }, bytes(of.uid))
      assert.equal(toHex(file ?? new Uint8Array()), of.file, scheme)
      const meta = await deriveMetaKey(parsed.derivation, bytes(of.master))
      assert.equal(meta === null ? undefined : toHex(meta), of.meta, scheme)
    }
  })

  it('commits to a tag', () => {
    const [uid = '', pepper = '', hmac, , plain] = valuesOf(/^Vector, UID .*/m)
    const of = bytes(uid)
    assert.equal(createTagHash({ scheme: 'hmac', pepper: bytes(pepper.repeat(32)) })(of), hmac)
    assert.equal(createTagHash({ scheme: 'keccak-uid' })(of), plain)
  })
})
