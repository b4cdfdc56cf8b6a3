/** The acts that take two on both databases: what each is for, who may decide it, and what it compares. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { AssetRecord } from '@touchstone/verdict'
import { approvalsOnChain, notYet } from '../../../test/support/approvals.ts'
import { testDatabases } from '../../../test/support/database/databases.ts'
import { insertAsset } from '../../../test/support/index/rows.ts'
import { useOpened } from '../../../test/support/opened.ts'
import { zeroHash } from '../../domain/chain.ts'
import { createLog } from '../../lib/log.ts'
import { tagStore } from '../../tap/tag-registry.ts'
import { apiKeyStore, newApiKey } from '../api-keys.ts'
import { databaseActs, recycleAct } from './acts.ts'
import { createApprovals, type Approvals, type Decider } from './approvals.ts'
import { operationKeyOf } from './store.ts'

for (const { name, open, skip } of testDatabases())
  describe(`acts that take two, on ${name}`, { skip }, () => {
    const second: Decider = { who: 'local:second', key: null }
    const asker = { who: 'local:first', requestId: 'r1' }
    const database = useOpened(open)
    const approvals = createApprovals({
      database,
      required: new Set(['batch-revoke', 'key-deletion']),
      hours: 1,
      acts: databaseActs({ writeStatus: async () => {} }, async () => {}),
      log: createLog(() => {}),
    })
    const newBatch = (id: string) => tagStore(database).putBatch({ id, epoch: 0, settings: {} })
    const statusOf = async (id: string) => (await approvals.find(id))?.status
    const missing = { ok: false, because: 'missing' }

    async function idOf(asked: ReturnType<Approvals['request']>): Promise<string> {
      const answer = await asked
      assert.ok(answer.ok)
      return answer.approval.id
    }
    async function refusal(decided: ReturnType<Approvals['approve']>) {
      const answer = await decided
      return answer.ok ? 'done' : answer.because
    }

    it('are needed to restore a batch where they are needed to revoke one', async () => {
      const needed = (['batch-revoke', 'batch-restore', 'key-deletion', 'recycle'] as const).map(approvals.isRequired)
      assert.deepEqual(needed, [true, true, true, false])
      await newBatch('restored')
      assert.deepEqual(await approvals.request({ act: 'batch-restore', subject: 'restored' }, asker), missing)
      const revoking = await idOf(approvals.request({ act: 'batch-revoke', subject: 'restored' }, asker))
      assert.equal(await refusal(approvals.approve(revoking, second)), 'done')
      assert.deepEqual(await approvals.request({ act: 'batch-revoke', subject: 'restored' }, asker), missing)
      const restoring = await idOf(approvals.request({ act: 'batch-restore', subject: 'restored' }, asker))
      assert.equal((await tagStore(database).batch('restored'))?.status, 'revoked')
      assert.equal(await refusal(approvals.approve(restoring, second)), 'done')
      assert.equal((await tagStore(database).batch('restored'))?.status, 'retired')
    })

    it('are decided by no key that has expired, or that is not there any more', async () => {
      const made = {
        hash: newApiKey().hash,
        name: 'k',
        scopes: ['approve'],
        expiresAt: Date.now() + 3_600_000,
      } as const
      const key = await apiKeyStore(database).create(made)
      await newBatch('expired')
      const id = await idOf(approvals.request({ act: 'batch-revoke', subject: 'expired' }, asker))
      await database.query('update api_key set expires_at = clock_timestamp() where id = $1', [key])
      for (const ended of [key, 'nothing0']) {
        const by: Decider = { who: `key:${ended}`, key: { id: ended, brands: null } }
        assert.equal(await refusal(approvals.approve(id, by)), 'gone')
        assert.equal(await refusal(approvals.reject(id, by)), 'gone')
      }
      assert.equal(await statusOf(id), 'PENDING')
    })

    it('are decided by no key that was made at the moment of the request', async () => {
      const key = await apiKeyStore(database).create({ hash: newApiKey().hash, name: 'k', scopes: ['approve'] })
      await newBatch('moment')
      const id = await idOf(approvals.request({ act: 'batch-revoke', subject: 'moment' }, asker))
      const text = 'update api_key set created_at = (select requested_at from approval where id = $2) where id = $1'
      await database.query(text, [key, id])
      assert.equal(await refusal(approvals.approve(id, { who: `key:${key}`, key: { id: key, brands: null } })), 'young')
    })

    it('are not done where any member of the request is not the one of the audit trail', async () => {
      for (const [subject, change] of [
        ['altered1', "subject = 'target'"],
        ['altered2', "act = 'batch-restore'"],
        ['altered3', "facts = '{}'"],
        ['altered4', "requested_by = 'local:other'"],
      ] as const) {
        await newBatch(subject)
        const id = await idOf(approvals.request({ act: 'batch-revoke', subject }, asker))
        await database.transaction(async (sql) => {
          await sql.query('alter table approval disable trigger user')
          await sql.query(`update approval set ${change} where id = $1`, [id])
          await sql.query('alter table approval enable trigger user')
        })
        assert.equal(await refusal(approvals.approve(id, second)), 'altered', change)
        assert.equal(await statusOf(id), 'PENDING')
        assert.equal((await tagStore(database).batch(subject))?.status, 'active')
      }
    })

    it('to delete a key are for an active one', async () => {
      const id = await apiKeyStore(database).create({ hash: newApiKey().hash, name: 'k', scopes: ['read'] })
      await apiKeyStore(database).revoke(id)
      assert.deepEqual(await approvals.request({ act: 'key-deletion', subject: id }, asker), missing)
    })

    it('are one under a key for which two come at the same moment, whatever each is for', async () => {
      await newBatch('62')
      for (const other of [
        { act: 'recycle', subject: '61' },
        { act: 'batch-revoke', subject: '62' },
      ] as const) {
        const [reached, passed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
        const from = approvalsOnChain(database, {
          async readFacts(subject) {
            if (subject !== '62') return { nonce: 1 }
            reached.resolve()
            await passed.promise
            return { nonce: 2 }
          },
        })
        const requestKey = `at once ${other.act}`
        const late = from.request({ act: 'recycle', subject: '62', requestKey }, asker)
        await reached.promise
        const first = await from.request({ ...other, requestKey }, asker)
        passed.resolve()
        assert.deepEqual(await late, { ok: false, because: 'other_request' })
        assert.ok(first.ok)
        assert.equal(await statusOf(first.approval.id), 'PENDING')
      }
    })

    it('about products are decided by keys of their brands', async () => {
      await insertAsset(database, { tokenId: 71, name: 'Watch', brand: 'Bolt', state: 1 })
      await insertAsset(database, { tokenId: 72, name: 'Watch', brand: 'Other', state: 1 })
      await insertAsset(database, { tokenId: 73, name: 'Watch', state: 1 })
      const made = { hash: newApiKey().hash, name: 'k', scopes: ['approve'], brands: ['Bolt'] } as const
      const id = await apiKeyStore(database).create(made)
      const branded: Decider = { who: `key:${id}`, key: { id, brands: ['Bolt'] } }
      const from = approvalsOnChain(database)
      for (const subject of ['72', '73', '74']) {
        const request = await idOf(from.request({ act: 'recycle', subject }, asker))
        assert.equal(await refusal(from.approve(request, branded)), 'unknown')
        assert.equal(await refusal(from.reject(request, branded)), 'unknown')
        assert.equal(await statusOf(request), 'PENDING')
      }
      const own = await idOf(from.request({ act: 'recycle', subject: '71' }, asker))
      assert.equal(await refusal(from.reject(own, branded)), 'done')
      await newBatch('71')
      await idOf(approvals.request({ act: 'batch-revoke', subject: '71' }, asker))
      const shown = await approvals.page({ brands: ['Bolt'] }, { after: null, backward: false, limit: 100 })
      assert.deepEqual(
        shown.map((one) => one.id),
        [own],
        'a batch with the number of a product is of no brand',
      )
    })

    it('are not carried out on a subject that has changed since they were approved', async () => {
      let [nonce, tries] = [1, 0]
      const left = approvalsOnChain(database, {
        readFacts: async () => ({ nonce }),
        carryOut: async () => ((tries += 1), notYet),
      })
      const id = await idOf(left.request({ act: 'recycle', subject: '36' }, asker))
      assert.equal(await refusal(left.approve(id, second)), 'done')
      nonce = 2
      await left.resume()
      assert.deepEqual([tries, await statusOf(id)], [1, 'FAILED'])
    })
  })

describe('the act of recycling', () => {
  it('is done on the product as it was: its state, reports, last change and offers', async () => {
    const record: AssetRecord = {
      owner: `0x${'11'.repeat(20)}`,
      timestamp: 1_767_225_600n,
      state: 4,
      flags: 0,
      reserved: 0,
    }
    const factsOf = async (changed: Partial<AssetRecord>, nonce = 3) => {
      const block = { number: 9n, hash: zeroHash, timestamp: 1_767_225_600n }
      const offer = { to: null, expiry: 0n, nonce }
      const read = { tokenId: 7n, block, time: 0n, record: { ...record, ...changed }, offer }
      const { recycle } = recycleAct({
        writer: { write: () => Promise.reject(new Error('nothing is written')) },
        operations: { find: async () => undefined },
        transfers: { position: async () => read },
      })
      assert.ok(recycle !== undefined && 'readFacts' in recycle)
      return recycle.readFacts('7')
    }
    const facts = { state: 'CLAIMED', reports: [], changedAt: '2026-01-01T00:00:00.000Z', nonce: 3 }
    assert.deepEqual(await factsOf({}), facts)
    assert.deepEqual(await factsOf({}, 4), { ...facts, nonce: 4 })
    assert.deepEqual(await factsOf({ flags: 1 }), { ...facts, reports: ['LOST'] })
    assert.deepEqual(await factsOf({ timestamp: 1_767_225_601n }), { ...facts, changedAt: '2026-01-01T00:00:01.000Z' })
    assert.equal(await factsOf({ state: 0 }), null)
  })

  it('is tried again where the operator cannot pay, and not where the contract rejects it', async () => {
    const keys = new Set<string>()
    const carryOut = async (code: 'OPERATOR_UNFUNDED' | 'FEE_TOO_HIGH' | 'OPERATOR_KEY_MISSING' | 'RECYCLE_LOCKED') => {
      const { recycle } = recycleAct({
        writer: {
          async write(_request, { idempotencyKey }) {
            keys.add(idempotencyKey)
            return { ok: false, code, message: code }
          },
        },
        operations: { find: async () => undefined },
        transfers: { position: () => Promise.reject(new Error('it is not read')) },
      })
      assert.ok(recycle !== undefined && 'carryOut' in recycle)
      return recycle.carryOut('7', 'k3x9a0qz12ab', { who: 'local:second' })
    }
    for (const code of ['OPERATOR_UNFUNDED', 'FEE_TOO_HIGH', 'OPERATOR_KEY_MISSING'] as const)
      assert.deepEqual(await carryOut(code), { ok: false, isFinal: false, message: code })
    assert.deepEqual(await carryOut('RECYCLE_LOCKED'), { ok: false, isFinal: true, message: 'RECYCLE_LOCKED' })
    assert.deepEqual([...keys], [operationKeyOf('k3x9a0qz12ab')])
  })
})
