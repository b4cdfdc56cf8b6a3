import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { testFolder } from '../../../test/support/folder.ts'
import type { KeyStore } from '../../keys/key.ts'
import { openTagKeyStore } from './store.ts'

describe('masters in a token', () => {
  it('are made for a new batch and never taken over from the token, except for a demonstration', async () => {
    const names = new Set(['tag/planted/app', 'tag/shown/file'])
    const key = { ecbDecrypt: async () => new Uint8Array(16), cmac: async () => new Uint8Array(16) }
    const keyStore = {
      aesKey: async (name: string) => (names.has(name) ? key : null),
      generateAesKey: async (name: string) => {
        assert.ok(!names.has(name))
        names.add(name)
        return key
      },
    } as Partial<KeyStore> as KeyStore
    const shared = { batches: async () => [], putBatch: async () => true }
    const keyFile = { kek: Uint8Array.from(randomBytes(32)), demo: true }
    const store = await openTagKeyStore({ folder: testFolder(), keyFile, shared, keyStore })

    const refused = await store.create({ id: 'planted' })
    assert.match(refused.ok ? '' : refused.error, /^The PKCS#11 token has a key named tag\/planted\/app already/)
    assert.ok(!names.has('tag/planted/file'))
    for (const batch of [{ id: 'new' }, { id: 'shown', demo: true }]) assert.ok((await store.create(batch)).ok)
    assert.ok(['tag/new/app', 'tag/new/file', 'tag/shown/app'].every((name) => names.has(name)))
  })
})
