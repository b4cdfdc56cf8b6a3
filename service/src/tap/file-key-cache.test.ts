import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createAesKey } from './aes.ts'
import { createAuthenticate } from './authenticate.ts'
import { hexOf } from './bytes.ts'
import { createFileKeyCache } from './file-key-cache.ts'
import { createKeyRing } from './keys.ts'
import { newUid, testBatch, testBatches, testTag } from '../../test/_tags.ts'

const bytes = (hex: string) => Uint8Array.from(Buffer.from(hex, 'hex'))

describe('kept file keys', () => {
  it('are only those of tags whose MAC held', async () => {
    const batch = testBatch()
    const fileKeys = createFileKeyCache()
    const authenticate = createAuthenticate({ keys: createKeyRing(await testBatches(batch)), fileKeys })
    const { picc, cmac } = (await testTag(batch)).next()
    await authenticate(bytes(picc), bytes('0102030405060708'))
    assert.equal(fileKeys.size(), 0)
    await authenticate(bytes(picc), bytes(cmac))
    assert.equal(fileKeys.size(), 1)
  })

  it('leave oldest first, overwritten, and the tag still verifies', async () => {
    const batch = testBatch()
    const [loaded] = await testBatches(batch)
    assert.ok(loaded)
    const fileKeys = createFileKeyCache(2)
    const key = createAesKey(new Uint8Array(16).fill(9))
    const mac = hexOf(key.cmac(new Uint8Array(16)))
    fileKeys.put(loaded, newUid(), key)
    for (const uid of [newUid(), newUid()]) fileKeys.put(loaded, uid, createAesKey(new Uint8Array(16)))
    assert.equal(fileKeys.size(), 2)
    assert.notEqual(hexOf(key.cmac(new Uint8Array(16))), mac)
    const verify = createAuthenticate({ keys: createKeyRing([loaded]), fileKeys: createFileKeyCache(0) })
    const tag = await testTag(batch)
    for (let count = 0; count < 3; count++) {
      const { picc, cmac } = tag.next()
      assert.equal((await verify(bytes(picc), bytes(cmac))).genuine, true)
    }
    fileKeys.clear()
    assert.equal(fileKeys.size(), 0)
  })
})
