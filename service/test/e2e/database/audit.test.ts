/** The audit trail on both databases: what was changed in it is found. And three processes that are killed while they append to it. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openOwnDatabase, testDatabases } from '../../support/database/databases.ts'
import { apiKeyStore, newApiKey } from '../../../src/graphql/api-keys.ts'
import { appendAudit, auditHead, auditText, readAudit, verifyAudit } from '../../../src/db/audit.ts'
import type { Database } from '../../../src/db/database.ts'

for (const { name, open, skip } of testDatabases())
  describe(`the audit trail on ${name}`, { skip }, () => {
    let database: Database
    before(async () => {
      database = await open()
      for (let n = 1; n <= 4; n += 1)
        await appendAudit(
          database,
          auditText({ who: 'key:testtest' }, { act: 'flag', subject: `${n} é\n`, outcome: 'SIGNED' }),
        )
    })
    after(() => database.close())

    it('is intact after it was written, and its head is the last entry', async () => {
      const [last] = await readAudit(database, 3n, 10)
      assert.deepEqual(await verifyAudit(database), { ok: true, head: { seq: 4n, hash: last?.hash } })
      assert.deepEqual(JSON.parse(last?.body ?? ''), {
        who: 'key:testtest',
        act: 'flag',
        subject: '4 é\n',
        outcome: 'SIGNED',
      })
    })

    it('refuses changes and deletions', async () => {
      for (const text of ["update audit_entry set body = '{}'", 'delete from audit_entry'])
        await assert.rejects(database.query(text), /never changed/)
    })

    /** Verifies after a change that the trigger would refuse, and takes the change back. */
    async function verifiedAfter(...statements: readonly string[]) {
      const undone = new Error('undone')
      let verified: unknown
      await assert.rejects(
        database.transaction(async (sql) => {
          await sql.query('alter table audit_entry disable trigger user')
          for (const text of statements) await sql.query(text)
          verified = await verifyAudit(sql)
          throw undone
        }),
        undone,
      )
      return verified
    }

    const wrongAt = (seq: bigint) => ({ ok: false, seq })

    it('shows one changed byte, time or hash, a removed entry and a moved head', async () => {
      const changes = [
        "body = replace(body, 'flag', 'flbg')",
        "at = at + interval '1 microsecond'",
        'hash = sha256(hash)',
      ]
      for (const change of changes)
        for (const seq of [1n, 2n, 4n])
          assert.deepEqual(
            await verifiedAfter(`update audit_entry set ${change} where seq = ${seq}`),
            wrongAt(seq),
            change,
          )
      assert.deepEqual(await verifiedAfter('delete from audit_entry where seq = 2'), wrongAt(2n))
      assert.deepEqual(await verifiedAfter('delete from audit_entry where seq = 4'), wrongAt(4n))
      assert.deepEqual(await verifiedAfter('delete from audit_entry'), wrongAt(1n))
      assert.deepEqual(await verifiedAfter('update audit_head set seq = 5'), wrongAt(5n))
    })

    it('written anew as a whole, does not agree with a head that was kept', async () => {
      const head = await auditHead(database)
      assert.equal((await verifyAudit(database, head)).ok, true)
      assert.deepEqual(await verifyAudit(database, { ...head, hash: `0x${'11'.repeat(32)}` }), wrongAt(4n))
      assert.deepEqual(await verifyAudit(database, { ...head, seq: 9n }), wrongAt(5n))
    })

    it('has keys that are made and revoked, and nothing of a change that was rolled back', async () => {
      const keys = apiKeyStore(database)
      const { seq } = await auditHead(database)
      const { hash, text } = newApiKey()
      const id = await keys.create({ hash, name: 'audited', scopes: ['mint'], brands: ['Acme'] })
      await assert.rejects(keys.create({ hash, name: 'audited again', scopes: ['mint'] }), /duplicate|unique/)
      assert.deepEqual([await keys.revoke(id), await keys.revoke(id)], [true, false])
      const entries = await readAudit(database, seq, 10)
      const bodies = entries.map(({ body }) => JSON.parse(body) as Record<string, unknown>)
      assert.deepEqual(
        bodies.map(({ act, subject }) => [act, subject]),
        [
          ['key.create', id],
          ['key.revoke', id],
        ],
      )
      assert.match(String(bodies[0]?.['who']), /^local:.+/)
      assert.ok(!entries.some(({ body }) => body.includes(text) || body.includes(Buffer.from(hash).toString('hex'))))
    })
  })

/** `AUDIT_ACTS=10000` runs it as long as a release asks for. */
const acts = Number(process.env['AUDIT_ACTS'] ?? 120)

describe('the audit trail of several processes', { skip: testDatabases()[1]?.skip ?? false }, () => {
  it(`has each of ${acts} acts once, when processes are killed meanwhile`, async () => {
    const database = await openOwnDatabase('migrated')
    try {
      const acknowledged: string[] = []
      const program = fileURLToPath(new URL('../../support/database/acts.ts', import.meta.url))
      /** Runs one process after another, each until it has done its part, and kills it in the middle of the next act. */
      async function actor(): Promise<void> {
        for (const part of [1, 2, 3]) {
          const child = spawn(process.execPath, [program, database.url], { stdio: ['ignore', 'pipe', 'inherit'] })
          const ended = once(child, 'close')
          let done = 0
          for await (const line of createInterface(child.stdout)) {
            acknowledged.push(line)
            done += 1
            if (done === Math.ceil(acts / 9)) child.kill('SIGKILL')
          }
          await ended
          assert.ok(done >= Math.ceil(acts / 9), `part ${part}`)
        }
      }
      await Promise.all([actor(), actor(), actor()])

      const verified = await verifyAudit(database)
      assert.ok(verified.ok)
      const made = await database.query<{ id: string }>('select id from api_key order by id')
      const audited = await database.query<{ id: string }>(
        "select body::jsonb->>'subject' as id from audit_entry order by body::jsonb->>'subject' collate \"C\"",
      )
      const ids = made.map(({ id }) => id).toSorted()
      assert.deepEqual(audited.map(({ id }) => id).toSorted(), ids)
      assert.equal(verified.head.seq, BigInt(ids.length))
      assert.ok(ids.length >= acts)
      assert.deepEqual(
        acknowledged.filter((id) => !ids.includes(id)),
        [],
      )
    } finally {
      await database.close()
    }
  })
})
