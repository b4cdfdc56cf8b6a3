/** The history of attestation keys on PGlite and on PostgreSQL. */
import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { attestationKeyId, type Hex } from '@touchstone/verdict'
import { testDatabases } from '../../../test/support/database/databases.ts'
import { heldAnswers } from '../../../test/support/held-answer.ts'
import { useOpened } from '../../../test/support/opened.ts'
import { openKeyHistory, type KeyHistory } from './history.ts'
import type { Database } from '../../db/database.ts'

const [first, second] = [`0x${'11'.repeat(20)}`, `0x${'22'.repeat(20)}`] as [Hex, Hex]

for (const { name, open, skip } of testDatabases()) {
  describe(`the history of attestation keys on ${name}`, { skip }, () => {
    let keys: KeyHistory
    const database = useOpened(open)
    before(async () => {
      keys = await openKeyHistory(database, () => performance.now())
    })

    it('knows a key once', async () => {
      assert.equal(await keys.add(first, { validFrom: 100, status: 'active' }), true)
      assert.equal(await keys.add(first, { validFrom: 200, status: 'next' }), false)
      const keyId = attestationKeyId(first)
      assert.deepEqual(keys.rows(), [{ address: first, keyId, validFrom: 100, validUntil: null, status: 'active' }])
    })

    it('changes a key from the statuses named, and from no other', async () => {
      await keys.add(second, { validFrom: 50, status: 'next' })
      const retired = { status: 'retired', validUntil: 300 } as const
      assert.equal(await keys.change(second, ['active'], retired), false)
      assert.equal(await keys.change(first, ['active'], retired), true)
      assert.deepEqual(
        keys.rows().map(({ status, validUntil }) => [status, validUntil]),
        [
          ['next', null],
          ['retired', 300],
        ],
      )
    })

    /** Opens a copy whose clock and whose database's answers are the test's. */
    async function openCopy() {
      const clock = { at: 0 }
      const { ask, hold } = heldAnswers<Parameters<Database['query']>, never[]>((...given) => database.query(...given))
      const copy = await openKeyHistory({ query: ask }, () => clock.at)
      const statusOf = (address: Hex) => copy.rows().find((row) => row.address === address)?.status
      return { copy, clock, hold, statusOf }
    }

    /** Begins a reading at 2 s of the copy. The key is revoked after its answer, which is kept back until 1.999 s later. */
    async function readBeforeRevocation(address: Hex) {
      await keys.add(address, { validFrom: 100, status: 'active' })
      const opened = await openCopy()
      const { copy, clock, hold } = opened
      clock.at += 2_000
      const answer = hold()
      const first = copy.refresh()
      const release = await answer
      await keys.change(address, ['active'], { status: 'revoked', validUntil: 300 })
      clock.at += 1_999
      return { ...opened, first, release }
    }

    it('gives a sale no reading that began more than two seconds before', async () => {
      const address: Hex = `0x${'33'.repeat(20)}`
      const { copy, clock, statusOf, first, release } = await readBeforeRevocation(address)
      const joined = copy.refresh()
      clock.at += 1
      release()
      await joined
      assert.equal(statusOf(address), 'revoked')
      await first
    })

    it('counts the age of a copy from the beginning of its reading', async () => {
      const address: Hex = `0x${'44'.repeat(20)}`
      const { copy, clock, statusOf, first, release } = await readBeforeRevocation(address)
      release()
      await first
      assert.equal(statusOf(address), 'active')
      clock.at += 1
      await copy.refresh()
      assert.equal(statusOf(address), 'revoked')
    })

    it('keeps what a later reading found where an earlier one answers after it', async () => {
      const address: Hex = `0x${'66'.repeat(20)}`
      const { copy, statusOf, first, release } = await readBeforeRevocation(address)
      await copy.read()
      assert.equal(statusOf(address), 'revoked')
      release()
      await first
      assert.equal(statusOf(address), 'revoked')
    })

    it('publishes no copy that is older than 30 seconds', async () => {
      const address: Hex = `0x${'55'.repeat(20)}`
      await keys.add(address, { validFrom: 100, status: 'active' })
      const { copy, clock } = await openCopy()
      const published = async () => (await copy.published()).find((row) => row.address === address)?.status
      await keys.change(address, ['active'], { status: 'revoked', validUntil: 300 })
      clock.at += 29_999
      assert.equal(await published(), 'active')
      clock.at += 1
      assert.equal(await published(), 'revoked')
    })

    it('takes no window that contradicts the status', async () => {
      await assert.rejects(keys.change(first, ['retired'], { status: 'retired', validUntil: null }))
      await assert.rejects(keys.change(second, ['next'], { status: 'active', validUntil: 5 }))
    })
  })
}
