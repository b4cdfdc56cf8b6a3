/** Requests for approval on both databases: who may decide, what is compared, and that an act is done once. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { approvalsOnChain, type ChainAct, notYet } from '../../../test/support/approvals.ts'
import { testDatabases } from '../../../test/support/database/databases.ts'
import { hashOf, insertAsset, insertOperation } from '../../../test/support/index/rows.ts'
import { useOpened } from '../../../test/support/opened.ts'
import { type AuditBody, auditHead, readAudit, verifyAudit } from '../../db/audit.ts'
import type { Database } from '../../db/database.ts'
import { ServiceError } from '../../lib/errors.ts'
import { createLog } from '../../lib/log.ts'
import { tagStore } from '../../tap/tag-registry.ts'
import { apiKeyStore, newApiKey } from '../api-keys.ts'
import { databaseActs } from './acts.ts'
import { createApprovals, type Approvals, type Decider } from './approvals.ts'

for (const { name, open, skip } of testDatabases())
  describe(`requests for approval on ${name}`, { skip }, () => {
    const second: Decider = { who: 'local:second', key: null }
    const asker = { who: 'local:first', requestId: 'r1' }
    const database = useOpened(open)

    const over = (on: Database, hours = 1, acts = databaseActs({ writeStatus: async () => {} }, async () => {})) =>
      createApprovals({
        database: on,
        required: new Set(['batch-revoke', 'key-deletion']),
        hours,
        acts,
        log: createLog(() => {}),
      })
    const approvals = over(database)
    const onChain = (act: Partial<ChainAct>, on: Pick<Database, 'query' | 'transaction' | 'dialect'> = database) =>
      approvalsOnChain(on, act)
    async function askedToRecycle(subject: string, from: Approvals): Promise<string> {
      const answer = await from.request({ act: 'recycle', subject }, asker)
      assert.ok(answer.ok)
      return answer.approval.id
    }
    const newKey = (scopes: readonly ['approve'] | readonly ['read'], brands: readonly string[] | null = null) =>
      apiKeyStore(database).create({ hash: newApiKey().hash, name: 'k', scopes, brands })
    const statusOf = async (id: string) => (await approvals.find(id))?.status
    async function asked(act: 'batch-revoke' | 'key-deletion', subject: string, by = asker, from = approvals) {
      const answer = await from.request({ act, subject }, by)
      assert.ok(answer.ok)
      return answer.approval
    }
    const batchStatus = async (id: string) => (await tagStore(database).batches()).find((one) => one.id === id)?.status
    const newBatch = (id: string) => tagStore(database).putBatch({ id, epoch: 0, settings: {} })
    const refusal = async (decided: ReturnType<Approvals['approve']>) => {
      const answer = await decided
      return answer.ok ? 'done' : answer.because
    }
    /** The entries of the audit trail about a request, without their numbers. */
    async function audited(id: string): Promise<string[]> {
      const entries = (await readAudit(database, 0n, 10_000)).map(({ body }) => JSON.parse(body) as AuditBody)
      return entries.filter((entry) => entry.approval === id).map(({ who, act, outcome }) => `${who} ${act} ${outcome}`)
    }

    it('are done by the approval of a second one, and by nothing else', async () => {
      await newBatch('one')
      const { id, facts, status } = await asked('batch-revoke', 'one')
      assert.equal(status, 'PENDING')
      assert.match(facts, /"epoch":0,"status":"active"/)
      assert.equal(await refusal(approvals.approve(id, { who: 'local:first', key: null })), 'own')
      assert.equal(await batchStatus('one'), 'active')
      const decided = await approvals.approve(id, second)
      assert.ok(decided.ok)
      assert.deepEqual([decided.approval.status, decided.approval.decidedBy], ['DONE', 'local:second'])
      assert.equal(await batchStatus('one'), 'revoked')
      assert.equal(await refusal(approvals.approve(id, second)), 'settled')
      assert.deepEqual(await audited(id), [
        'local:first batch-revoke REQUESTED',
        'local:first batch-revoke REFUSED',
        'local:second batch.revoke DONE',
        'local:second batch-revoke APPROVED',
      ])
    })

    it('take no key that asked, is younger than the request, has ended or is of another brand', async () => {
      const [asking, older, ended, branded] = await Promise.all([
        newKey(['approve']),
        newKey(['approve']),
        newKey(['approve']),
        newKey(['approve'], ['Acme']),
      ])
      const victim = await newKey(['read'])
      const { id } = await asked('key-deletion', victim, { who: `key:${asking}`, requestId: 'r2' })
      const younger = await newKey(['approve'])
      await apiKeyStore(database).revoke(ended)
      const by = (key: string, brands: readonly string[] | null = null): Decider => ({
        who: `key:${key}`,
        key: { id: key, brands },
      })
      assert.equal(await refusal(approvals.approve(id, by(asking))), 'own')
      assert.equal(await refusal(approvals.approve(id, by(younger))), 'young')
      assert.equal(await refusal(approvals.approve(id, by(ended))), 'gone')
      assert.equal(await refusal(approvals.reject(id, by(ended))), 'gone')
      assert.equal(await refusal(approvals.approve(id, by(branded, ['Acme']))), 'unknown')
      assert.equal(await refusal(approvals.approve('nothing00000', by(older))), 'unknown')
      assert.equal(await statusOf(id), 'PENDING')
      assert.equal(await refusal(approvals.approve(id, by(older))), 'done')
      assert.deepEqual(await apiKeyStore(database).active([victim]), [])
    })

    it('are one as long as one waits for the same act, and the same key gives the same request', async () => {
      await newBatch('again')
      const key = { act: 'batch-revoke', subject: 'again', requestKey: 'key 1' } as const
      const first = await approvals.request(key, asker)
      assert.ok(first.ok)
      assert.equal((await asked('batch-revoke', 'again', { who: 'local:third', requestId: 'r' })).id, first.approval.id)
      await newBatch('other')
      assert.deepEqual(await approvals.request({ ...key, subject: 'other' }, asker), {
        ok: false,
        because: 'other_request',
      })
      assert.deepEqual(await approvals.request({ ...key, act: 'batch-restore' }, asker), {
        ok: false,
        because: 'other_request',
      })
      assert.ok((await approvals.reject(first.approval.id, { who: 'local:first', key: null })).ok)
      assert.equal((await audited(first.approval.id)).at(-1), 'local:first batch-revoke REJECTED')
      const repeated = await approvals.request(key, asker)
      assert.deepEqual(repeated.ok && [repeated.approval.id, repeated.approval.status], [first.approval.id, 'REJECTED'])
      assert.notEqual((await asked('batch-revoke', 'again')).id, first.approval.id)
      assert.deepEqual(await approvals.request({ act: 'batch-revoke', subject: 'none' }, asker), {
        ok: false,
        because: 'missing',
      })
    })

    it('are found under the key of each that asked while one waited, also once it is decided', async () => {
      for (const id of ['joined', 'not-joined']) await newBatch(id)
      const ask = async (requestKey: string, subject = 'joined') => {
        const answer = await approvals.request({ act: 'batch-revoke', subject, requestKey }, asker)
        return answer.ok ? `${answer.approval.id} ${answer.approval.status}` : answer.because
      }
      const asks = async () => [await ask('first'), await ask('second'), await ask('third')]
      const { id } = await asked('batch-revoke', 'joined')
      const own = await asked('batch-revoke', 'joined')
      assert.equal(own.id, id)
      assert.deepEqual(await asks(), Array(3).fill(`${id} PENDING`))
      assert.equal(await ask('second', 'not-joined'), 'other_request')
      const many = "joined_keys || array(select 'k' || n from generate_series(1, 97) n)"
      await database.query(`update approval set joined_keys = ${many} where id = $1`, [id])
      assert.equal(await ask('one too many'), `${id} PENDING`)
      assert.ok((await approvals.reject(id, second)).ok)
      assert.deepEqual(await asks(), Array(3).fill(`${id} REJECTED`))
      assert.notEqual(await ask('one too many'), `${id} REJECTED`)
      assert.notEqual((await asked('batch-revoke', 'joined')).id, id)
    })

    it('are never carried out on a subject that has changed since', async () => {
      await newBatch('moved')
      const { id } = await asked('batch-revoke', 'moved')
      await tagStore(database).setBatchStatus('moved', 'retired')
      assert.equal(await refusal(approvals.approve(id, second)), 'changed')
      assert.deepEqual([await statusOf(id), await batchStatus('moved')], ['FAILED', 'retired'])
      const next = await asked('batch-revoke', 'moved')
      await tagStore(database).putBatch({ id: 'moved', epoch: 0, settings: { macInput: 'picc' } })
      const newest = await asked('batch-revoke', 'moved')
      assert.notEqual(newest.id, next.id)
      assert.equal(await statusOf(next.id), 'FAILED')
      assert.equal(await refusal(approvals.approve(newest.id, second)), 'done')
    })

    it('begin to take back the taps of a revoked batch, whatever becomes of the key file', async () => {
      await newBatch('leaked')
      const { id } = await asked('batch-revoke', 'leaked')
      const calls: string[] = []
      const writeStatus = async (batch: string) => {
        calls.push(`status ${batch}`)
        throw new Error('the file cannot be written')
      }
      const acts = databaseActs({ writeStatus }, async () => void calls.push('taps'))
      assert.equal(await refusal(over(database, 1, acts).approve(id, second)), 'done')
      assert.deepEqual(calls, ['status leaked', 'taps'])
    })

    it('are not carried out on a batch that is revoked between the comparison and the act', async () => {
      await newBatch('raced')
      const { id } = await asked('batch-revoke', 'raced')
      const { 'batch-revoke': act, ...others } = databaseActs({ writeStatus: async () => {} }, async () => {})
      const raced: typeof act = {
        ...act,
        async facts(sql, subject) {
          const facts = await act.facts(sql, subject)
          await tagStore(sql).setBatchStatus(subject, 'revoked')
          return facts
        },
      }
      const late = over(database, 1, { ...others, 'batch-revoke': raced })
      assert.equal(await refusal(late.approve(id, second)), 'changed')
      assert.deepEqual(await audited(id), [
        'local:first batch-revoke REQUESTED',
        'local:second batch-revoke REFUSED',
        'service batch-revoke FAILED',
      ])
    })

    it('cannot be altered, and one that was altered all the same is not carried out', async () => {
      await newBatch('asked')
      await newBatch('target')
      const { id } = await asked('batch-revoke', 'asked')
      for (const change of ["subject = 'target'", "act = 'key-deletion'", "facts = '{}'", "requested_by = 'x'"])
        await assert.rejects(database.query(`update approval set ${change} where id = $1`, [id]), /never changed/)
      await database.transaction(async (sql) => {
        await sql.query('alter table approval disable trigger user')
        await sql.query("update approval set subject = 'target' where id = $1", [id])
        await sql.query('alter table approval enable trigger user')
      })
      assert.equal(await refusal(approvals.approve(id, second)), 'altered')
      assert.equal(await batchStatus('target'), 'active')
      assert.equal(await batchStatus('asked'), 'active')
    })

    it('expire, which the audit trail says', async () => {
      await newBatch('late')
      const { id } = await asked('batch-revoke', 'late', asker, over(database, 0))
      assert.equal(await statusOf(id), 'EXPIRED')
      assert.equal(await refusal(approvals.approve(id, second)), 'settled')
      await approvals.resume()
      await approvals.resume()
      assert.deepEqual(await audited(id), ['local:first batch-revoke REQUESTED', 'service batch-revoke EXPIRED'])
      assert.equal(await batchStatus('late'), 'active')
      assert.notEqual((await asked('batch-revoke', 'late')).id, id)
    })

    it('are done once when many approve and reject at the same time', async () => {
      for (let round = 0; round < 5; round += 1) {
        await newBatch(`race${round}`)
        const { id } = await asked('batch-revoke', `race${round}`)
        const all = Array.from({ length: 8 }, (_, n) => {
          const by = { who: `local:${n}`, key: null }
          return n % 2 === 0 ? approvals.approve(id, by) : approvals.reject(id, by)
        })
        const decided = await Promise.all(all)
        assert.equal(decided.filter(({ ok }) => ok).length, 1)
        const isDone = (await statusOf(id)) === 'DONE'
        assert.equal(await batchStatus(`race${round}`), isDone ? 'revoked' : 'active')
        assert.equal((await audited(id)).length, isDone ? 3 : 2)
      }
    })

    it('are listed newest first, by status, and to a key with brands only those about its products', async () => {
      await insertAsset(database, { tokenId: 7, name: 'Watch', brand: 'Acme', state: 1 })
      const page = { after: null, backward: false, limit: 100 }
      const pending = await approvals.page({ status: 'PENDING' }, page)
      assert.deepEqual(
        pending,
        pending.toSorted((a, b) => (a.requestedAt < b.requestedAt ? 1 : -1)),
      )
      assert.ok(pending.length > 0 && pending.every(({ status }) => status === 'PENDING'))
      assert.equal(await approvals.count({ status: 'PENDING' }), pending.length)
      assert.deepEqual(await approvals.page({ brands: ['Acme'] }, page), [])
      const { pk = 0n, requestedAt = '' } = pending[0] ?? {}
      const rest = await approvals.page({ status: 'PENDING' }, { ...page, after: [requestedAt, String(pk)] })
      assert.deepEqual(rest, pending.slice(1))
      assert.deepEqual(
        await approvals.page(
          { status: 'PENDING' },
          { after: ['0001-01-01T00:00:00Z', '0'], backward: true, limit: 100 },
        ),
        pending.toReversed(),
      )
    })

    describe('with a process whose provider shows an earlier subject', () => {
      type Store = Pick<Database, 'query' | 'transaction' | 'dialect'>
      const gate = () => Promise.withResolvers<void>()
      /** Approvals of a process that sees the subject with this nonce. Its act on chain waits for `carried`. */
      const seeing = (nonce: number, on: Store, { begun = gate(), carried = gate() } = {}) =>
        onChain(
          {
            readFacts: async () => ({ nonce }),
            async carryOut() {
              begun.resolve()
              await carried.promise
              return { ok: true, block: 9n }
            },
          },
          on,
        )
      const third: Decider = { who: 'local:third', key: null }

      /** Approves a request while `late` waits in another process, between its decision and the end of the request. */
      async function approvedDuring(
        subject: string,
        on: Store,
        reached: Promise<void>,
        late: (other: Approvals, id: string) => Promise<unknown>,
        pass: () => void,
      ) {
        const [begun, carried] = [gate(), gate()]
        const current = seeing(1, database, { begun, carried })
        const id = await askedToRecycle(subject, current)
        const answer = late(seeing(0, on), id)
        await reached
        const approved = current.approve(id, second)
        await begun.promise
        pass()
        const given = await answer
        assert.equal((await current.find(id))?.status, 'APPROVED')
        carried.resolve()
        assert.ok((await approved).ok)
        return given
      }

      it('stay approved although that one refuses them', async () => {
        const [reached, passed] = [gate(), gate()]
        const query: Store['query'] = async (text, values) => {
          if (text.includes('append_audit')) {
            reached.resolve()
            await passed.promise
          }
          return database.query(text, values)
        }
        const on = { ...database, query }
        const late = (other: Approvals, id: string) => refusal(other.approve(id, third))
        assert.equal(await approvedDuring('7', on, reached.promise, late, passed.resolve), 'settled')
      })

      it('stay approved although that one asks for the same act', async () => {
        const [reached, passed] = [gate(), gate()]
        let transactions = 0
        const transaction: Store['transaction'] = async (work) => {
          if ((transactions += 1) === 3) {
            reached.resolve()
            await passed.promise
          }
          return database.transaction(work)
        }
        const on = { ...database, transaction }
        const late = (other: Approvals) => other.request({ act: 'recycle', subject: '8' }, third)
        await approvedDuring('8', on, reached.promise, late, passed.resolve)
      })
    })

    it('of an act on chain are neither taken nor carried out by a process without the chain', async () => {
      const id = await askedToRecycle('51', onChain({}))
      await assert.rejects(approvals.request({ act: 'recycle', subject: '52' }, asker), /cannot be asked for here/)
      assert.equal(await refusal(approvals.approve(id, second)), 'elsewhere')
      const branded: Decider = { who: 'key:k', key: { id: 'k', brands: ['Acme'] } }
      assert.deepEqual(await approvals.approve(id, branded), await approvals.approve('nothing00000', branded))
      assert.equal(await statusOf(id), 'PENDING')
      const away = onChain({ carryOut: () => Promise.reject(new ServiceError('CHAIN_UNAVAILABLE', 'no provider')) })
      assert.ok((await away.approve(id, second)).ok)
      await database.query("update approval set taken_at = taken_at - interval '1 hour' where id = $1", [id])
      await approvals.resume()
      assert.equal(await statusOf(id), 'APPROVED')
      await onChain({ carryOut: async () => ({ ok: false, isFinal: true, message: 'it is gone' }) }).resume()
      assert.deepEqual(await approvals.find(id).then((it) => [it?.status, it?.failure]), ['FAILED', 'it is gone'])
    })

    it('are all carried out in turn, also behind many that cannot be done yet', async () => {
      const tried: string[] = []
      const waiting = onChain({ carryOut: async (subject) => (tried.push(subject), notYet) })
      const subjects = Array.from({ length: 21 }, (_, n) => `${n + 100}`)
      for (const subject of subjects)
        assert.ok((await waiting.approve(await askedToRecycle(subject, waiting), second)).ok)
      tried.length = 0
      for (let pass = 0; pass < 2; pass += 1) await waiting.resume()
      assert.deepEqual(
        subjects.filter((subject) => !tried.includes(subject)),
        [],
      )
      await database.query("update approval set status = 'FAILED' where status = 'APPROVED' and act = 'recycle'")
    })

    it('are carried out where the clock of the database was set back, and that of the process is ahead', async (t) => {
      const tried: string[] = []
      const left = onChain({ carryOut: async (subject) => (tried.push(subject), notYet) })
      const id = await askedToRecycle('41', left)
      assert.ok((await left.approve(id, second)).ok)
      await database.query("update approval set taken_at = taken_at + interval '1 day' where id = $1", [id])
      if (name !== 'PGlite') t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 7_200_000 })
      await left.resume()
      assert.deepEqual(tried, ['41', '41'])
      await database.query("update approval set status = 'FAILED' where id = $1", [id])
    })

    it('are not carried out later where they were rejected or have failed, and fail where it is too late', async () => {
      const tried: string[] = []
      const left = onChain({ carryOut: async (subject) => (tried.push(subject), notYet) })
      const [rejected, failed, late] = [
        await askedToRecycle('31', left),
        await askedToRecycle('32', left),
        await askedToRecycle('33', left),
      ]
      assert.ok((await left.reject(rejected, second)).ok)
      for (const id of [failed, late]) assert.ok((await left.approve(id, second)).ok)
      await database.query("update approval set status = 'FAILED' where id = $1", [failed])
      await database.query("update approval set decided_at = decided_at - interval '61 minutes' where id = $1", [late])
      tried.length = 0
      await left.resume()
      assert.deepEqual(tried, [])
      assert.deepEqual(await Promise.all([rejected, failed, late].map(statusOf)), ['REJECTED', 'FAILED', 'FAILED'])
    })

    it('are carried out on a changed subject once they are begun, and do not fail once they are signed', async () => {
      let [nonce, tries] = [1, 0]
      const begun = onChain({
        readFacts: async () => ({ nonce }),
        isBegun: async () => true,
        carryOut: async () => ((tries += 1) === 1 ? notYet : { ok: true, block: null }),
      })
      const id = await askedToRecycle('34', begun)
      assert.ok((await begun.approve(id, second)).ok)
      nonce = 2
      await begun.resume()
      assert.deepEqual([tries, await statusOf(id)], [2, 'APPROVED'])
      await database.query("update approval set status = 'DONE' where id = $1", [id])

      const signed = onChain({
        async carryOut(_subject, of) {
          await insertOperation(database, hashOf(35), `approval:${of}`)
          return { ok: false, isFinal: true, message: 'the answer was lost' }
        },
      })
      const other = await askedToRecycle('35', signed)
      assert.ok((await signed.approve(other, second)).ok)
      assert.equal(await statusOf(other), 'APPROVED')
    })

    it('leave an audit trail that verifies', async () => {
      const verified = await verifyAudit(database, [await auditHead(database)])
      assert.equal(verified.ok, true)
    })
  })
