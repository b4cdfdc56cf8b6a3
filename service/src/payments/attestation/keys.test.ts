/** Keys whose making was cut short, and retired keys that were stolen (spec §4.8). */
import assert from 'node:assert/strict'
import { after, it } from 'node:test'
import { openEmptyPglite } from '../../../test/support/database/pglite.ts'
import { testFolder } from '../../../test/support/folder.ts'
import { openAttestationKeys } from './keys.ts'

const database = await openEmptyPglite()
after(() => database.close())

it('a key does not sign where its process ended while it announced the key', async () => {
  const options = { folder: testFolder(), database, isPublicKnowledge: () => false }
  const before = (await openAttestationKeys(options)).active().keyId
  const query: typeof database.query = (text, values) =>
    text.startsWith('insert') ? Promise.reject(new Error('the process ended')) : database.query(text, values)
  const later = () => Date.now() + 60_000
  const ending = await openAttestationKeys({ ...options, now: later, database: { ...database, query } })
  await assert.rejects(ending.add(), /the process ended/)
  const next = await openAttestationKeys({ ...options, now: later })
  assert.equal(next.active().keyId, before)
  assert.equal((await next.published()).length, 1)
})

it('a retired key can be revoked, which makes no other key', async (t) => {
  const own = await openEmptyPglite()
  t.after(() => own.close())
  let seconds = 1_795_227_313
  const options = { folder: testFolder(), database: own, isPublicKnowledge: () => false, now: () => 1_000 * seconds }
  const keys = await openAttestationKeys(options)
  const { keyId: old } = keys.active()
  seconds += 1
  const next = await keys.add()
  assert.ok('keyId' in next)
  assert.ok('keyId' in (await keys.switchTo(next.keyId)))
  assert.ok('keyId' in (await keys.revoke(old)))
  assert.deepEqual(
    (await keys.published()).map(({ keyId, status }) => [keyId, status]),
    [
      [old, 'revoked'],
      [next.keyId, 'active'],
    ],
  )
})
