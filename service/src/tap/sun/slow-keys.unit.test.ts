import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { hexToBytes } from '@noble/hashes/utils.js'
import { createAesKey } from './aes.ts'
import { type Authenticated, createAuthenticate } from './authenticate.ts'
import { type BatchRecord, createKeyRing } from '../keys/batch.ts'
import { createSearchBudget } from './search-budget.ts'
import { testBatch, testBatches, testTag, verifier } from '../../../test/support/tap/tags.ts'

const reasonOf = (found: Authenticated) => (found.genuine ? 'genuine' : found.reason)

describe('slow derivations', () => {
  it('cost none for a UID that no chip has', async () => {
    const record: BatchRecord = { ...testBatch(), derivation: 'sdm-backend-legacy' }
    const [batch] = await testBatches(record)
    assert.ok(batch)
    let derived = 0
    const secret = () => {
      derived += 1
      return record.fileMaster
    }
    const keys = createKeyRing([{ ...batch, fileMaster: { ...batch.fileMaster, secret } }])
    const authenticate = createAuthenticate({ keys, budget: { spend: (units) => units > 0, refund: () => {} } })
    const meta = createAesKey(record.metaKey ?? new Uint8Array(16))
    const picc = meta.encryptBlock(hexToBytes(`C705${'11'.repeat(6)}010000${'00'.repeat(5)}`))
    assert.equal(reasonOf(await authenticate(picc, randomBytes(8))), 'not_searched')
    assert.equal(derived, 0)
    assert.equal(reasonOf(await createAuthenticate({ keys })(picc, randomBytes(8))), 'bad_cmac')
    assert.equal(derived, 1, 'with a budget it is derived, so that no chip is refused for its UID')
  })

  it('are paid by forged taps, also in likely batches, and never by genuine ones', async () => {
    const legacy: BatchRecord = { ...testBatch({ id: 'legacy' }), derivation: 'sdm-backend-legacy' }
    const remote = testBatch({ id: 'remote' })
    const [slow, embedded] = await testBatches(legacy, remote)
    assert.ok(slow && embedded)
    const { secret: _, ...fileMaster } = embedded.fileMaster
    for (const [record, batch] of [[legacy, slow] as const, [remote, { ...embedded, fileMaster }] as const]) {
      let at = 0
      const budget = createSearchBudget({ perSecond: 10_000, burst: 30_000, now: () => at })
      const verify = verifier([batch], { budget })
      const send = async ({ picc, cmac = '0102030405060708' }: { picc: string; cmac?: string }, maySearch = true) =>
        reasonOf(await verify({ picc, cmac }, { maySearch }))
      const [known, ...tags] = await Promise.all(Array.from({ length: 10 }, () => testTag(record)))
      const [stranger] = tags
      assert.ok(known && stranger)
      const together = await Promise.all([known, ...tags.slice(1)].map((tag) => send(tag.next())))
      assert.deepEqual(new Set(together), new Set(['genuine']), 'more at once than the budget could pay')
      const { picc } = stranger.next()
      assert.equal(await send({ picc }, false), 'not_searched', 'its client sent too many')
      for (let count = 0; count < 3; count++) assert.equal(await send({ picc }), 'bad_cmac')
      assert.equal(await send({ picc }), 'not_searched')
      assert.equal(await send(known.next(), false), 'genuine', 'its key is known')
      at += 1_000
      assert.equal(await send(stranger.next()), 'genuine')
    }
  })
})
