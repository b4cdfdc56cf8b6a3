/** The keys that instances publish for one another, on PGlite and on PostgreSQL, and an instance that has others. */
import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { testDatabases } from '../../../test/support/database/databases.ts'
import { testFolder } from '../../../test/support/folder.ts'
import { useOpened } from '../../../test/support/opened.ts'
import { generateIssuerKeys } from './issuer-keys.ts'
import { issuerKeyFile, issuerKeyStore, openIssuer } from './issuer.ts'

for (const { name, open, skip } of testDatabases()) {
  describe(`published issuer keys on ${name}`, { skip }, () => {
    const database = useOpened(open)

    it('keep their public half, and the time of their first revocation', async () => {
      const store = issuerKeyStore(database)
      const rowOf = (revokedAt: bigint | null, publicKey = 'a') => ({ id: 'key-1', publicKey, revokedAt })
      for (const row of [rowOf(null), rowOf(5n, 'b'), rowOf(9n), rowOf(null)]) await store.add([row])
      assert.deepEqual(await store.list(), [rowOf(5n)])
    })
  })
}

describe('an issuer whose keys are not the published ones', () => {
  const others = [{ id: 'key-1', publicKey: 'a', revokedAt: null }]
  const foreign = /signed with issuer keys that are not in /

  it('publishes nothing, and does not start where another one was first', async () => {
    const folder = testFolder()
    writeFileSync(issuerKeyFile(folder), await generateIssuerKeys())
    let added = 0
    const add = async () => void (added += 1)
    await assert.rejects(openIssuer({ folder, signing: true, published: { list: async () => others, add } }), foreign)
    assert.equal(added, 0)
    const list = async () => (added === 0 ? [] : others)
    await assert.rejects(openIssuer({ folder, signing: true, published: { list, add } }), foreign)
    assert.equal(added, 1)
  })

  it('makes no keys of its own by a rotation', async () => {
    const folder = testFolder()
    const published = { list: async () => others, add: () => assert.fail() }
    const issuer = await openIssuer({ folder, signing: false, published })
    assert.match((await issuer.change({ kind: 'rotate' })) ?? '', foreign)
    assert.ok(!existsSync(issuerKeyFile(folder)))
  })
})
