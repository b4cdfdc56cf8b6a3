/** Registrations on PGlite and on PostgreSQL: conflicts, and which registrations make room. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { countLockWaits, testDatabases } from '../../../test/support/database/databases.ts'
import { until } from '../../../test/support/wait.ts'
import { useOpened } from '../../../test/support/opened.ts'
import type { Sql } from '../../db/database.ts'
import { operationStore } from '../../chain/transactions/operations.ts'
import { registrationStore, type Registration } from './stores.ts'

const hash = (n: number): Hex => `0x${n.toString(16).padStart(64, '0')}`
const signer: Hex = `0x${'a'.repeat(40)}`

for (const { name, open, skip } of testDatabases()) {
  describe(`registrations on ${name}`, { skip }, () => {
    let count = 0
    const database = useOpened(open)
    const registrations = registrationStore(database)
    const operations = operationStore(database)

    const registration = (more: Partial<Registration> = {}): Registration => {
      const n = (count += 1)
      return {
        key: `key-${n}`,
        requestHash: hash(n),
        tagId: `tag-${n}`,
        serial: null,
        gtin: null,
        metadataHash: hash(n),
        ...more,
      }
    }
    /** The mint of a registration was signed. */
    async function signed({ key }: Registration): Promise<string> {
      const n = (count += 1)
      const request = { key: `register:${key}`, requestHash: hash(n), kind: 'mint', signer, fromNonce: 0n }
      await operations.append(request, async () => ({ txHash: hash(n), raw: '0x00' }))
      return request.key
    }
    const grow = ({ key }: Registration, minutes = 11) =>
      database.query(
        'update registration set created_at = now() - make_interval(mins => $2) where idempotency_key = $1',
        [key, minutes],
      )

    it('are known again under the same key, and refuse another request under it', async () => {
      const one = registration()
      assert.equal(await registrations.add(one), 'added')
      assert.equal(await registrations.add(one), 'known')
      assert.equal(await registrations.add({ ...one, requestHash: hash(999) }), 'key_taken')
    })

    it('have a tag name and an item of their own; a serial without a GTIN is no item', async () => {
      const one = registration({ gtin: '09506000134352', serial: 'A1' })
      assert.equal(await registrations.add(one), 'added')
      assert.equal(await registrations.add(registration({ tagId: one.tagId })), 'tag_taken')
      assert.equal(await registrations.add(registration({ gtin: '09506000134352', serial: 'A1' })), 'item_taken')
      assert.equal(await registrations.add(registration({ serial: 'A1' })), 'added')
      assert.equal(await registrations.add(registration({ serial: 'A1' })), 'added')
    })

    it('of many at once under one tag name keep one', async () => {
      const all = await Promise.all(
        Array.from({ length: 10 }, () => registrations.add(registration({ tagId: 'one name' }))),
      )
      assert.equal(all.filter((outcome) => outcome === 'added').length, 1)
      assert.equal(all.filter((outcome) => outcome === 'tag_taken').length, 9)
    })

    it('are taken back until their mint is signed, and again once it has failed', async () => {
      const one = registration()
      await registrations.add(one)
      const key = await signed(one)
      assert.equal(await registrations.remove(one.key), false)
      await operations.settle(key, 'FAILED', '{}')
      assert.equal(await registrations.remove(one.key), true)
      assert.equal(await registrations.remove(one.key), false)
    })

    it('are kept while their mint is signed, and make no room then', async () => {
      const one = registration()
      await registrations.add(one)
      await grow(one)
      const [signing, ready] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const request = { key: `register:${one.key}`, requestHash: hash(1), kind: 'mint', signer, fromNonce: 0n }
      const guard = (sql: Sql) => registrations.keep(sql, one.key)
      const appended = operations.append({ ...request, guard }, async () => {
        signing.resolve()
        await ready.promise
        return { txHash: hash((count += 1)), raw: '0x00' }
      })
      await signing.promise
      const taken = Promise.all([registrations.remove(one.key), registrations.add(registration({ tagId: one.tagId }))])
      // The embedded database has one connection: the next transaction waits for this one there.
      if (database.dialect !== 'pglite') await until(async () => (await countLockWaits(database)) === 2)
      ready.resolve()
      assert.equal((await appended)?.added, true)
      assert.deepEqual(await taken, [false, 'tag_taken'])
      assert.equal(await registrations.has(one.key), true)
    })

    it('are not minted any more once they are removed', async () => {
      const one = registration()
      await registrations.add(one)
      assert.equal(await registrations.remove(one.key), true)
      assert.equal(await database.transaction((sql) => registrations.keep(sql, one.key)), false)
    })

    it('make room when their mint has failed, or was never signed for ten minutes', async () => {
      const [failed, stranded, waiting, young] = [registration(), registration(), registration(), registration()]
      const ahead = registration()
      for (const one of [failed, stranded, waiting, young, ahead]) await registrations.add(one)
      await operations.settle(await signed(failed), 'FAILED', '{}')
      await signed(waiting)
      await Promise.all([grow(stranded), grow(waiting), grow(ahead, -1_440)])
      const instead = ({ tagId }: Registration) => registrations.add(registration({ tagId }))
      assert.deepEqual(
        [await instead(failed), await instead(stranded), await instead(waiting), await instead(young)],
        ['added', 'added', 'tag_taken', 'tag_taken'],
      )
      assert.equal(await instead(ahead), 'added', 'the clock of the database was set back by a day')
    })

    it('with a token never make room', async () => {
      const one = registration()
      await registrations.add(one)
      await database.query('update registration set token_id = 7 where idempotency_key = $1', [one.key])
      await grow(one)
      assert.equal(await registrations.add(registration({ tagId: one.tagId })), 'tag_taken')
      assert.equal(await registrations.remove(one.key), false)
    })
  })
}
