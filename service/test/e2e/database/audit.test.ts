/** The audit trail on both databases: what was changed in it is found. And three processes that are killed while they append to it. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openOwnDatabase, noPostgres, testDatabases } from '../../support/database/databases.ts'
import { testFolder } from '../../support/folder.ts'
import { useOpened } from '../../support/opened.ts'
import { apiKeyStore, newApiKey } from '../../../src/access/api-keys.ts'
import { appendAudit, auditHead, auditText, readAudit, verifyAudit } from '../../../src/db/audit.ts'
import { auditHeadFile, createHeadSigner, openHead, readHeads, signHead } from '../../../src/app/audit-heads.ts'
import type { Sql } from '../../../src/db/database.ts'
import { createLog } from '../../../src/lib/log.ts'
import { openIssuer } from '../../../src/passport/signing/issuer.ts'

for (const { name, open, skip } of testDatabases())
  describe(`the audit trail on ${name}`, { skip }, () => {
    const database = useOpened(open)
    before(async () => {
      for (let n = 1; n <= 4; n += 1)
        await appendAudit(
          database,
          auditText({ who: 'key:testtest' }, { act: 'flag', subject: `${n} é\n`, outcome: 'SIGNED' }),
        )
    })

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
      const [other, later] = [
        { ...head, hash: `0x${'11'.repeat(32)}` },
        { ...head, seq: 9n },
      ]
      assert.equal((await verifyAudit(database, [head])).ok, true)
      assert.deepEqual(await verifyAudit(database, [head, other]), { ...wrongAt(4n), kept: other })
      assert.deepEqual(await verifyAudit(database, [later, head]), { ...wrongAt(5n), kept: later })
    })

    it('written anew with hashes that fit, does not agree with the heads that the issuer signed each day', async () => {
      const folder = testFolder()
      const path = auditHeadFile(folder)
      const issuer = await openIssuer({ folder: join(folder, 'keys'), signing: true })
      const lines: string[] = []
      const log = createLog((line) => lines.push(line))
      const signerOf = (sql: Sql) =>
        createHeadSigner({
          database: { transaction: (run) => run(sql) },
          issuer,
          did: 'did:web:test',
          path,
          log,
        })
      const day = 86_400_000
      for (const hours of [0, 23, 25]) await signerOf(database).sign(day + hours * 3_600_000)
      const heads = await Promise.all((await readHeads(path)).map((line) => openHead(line, issuer.keys())))
      const kept = heads.map((opened) => (opened.ok ? opened.head : assert.fail(opened.because)))
      assert.deepEqual(
        kept.map(({ seq, keyId, at }) => [seq, keyId, at - day]),
        [
          [4n, 'key-1', 0],
          [4n, 'key-1', 25 * 3_600_000],
        ],
      )
      assert.equal((await verifyAudit(database, kept)).ok, true)

      const undone = new Error('undone')
      await assert.rejects(
        database.transaction(async (sql) => {
          await sql.query('alter table audit_entry disable trigger user')
          await sql.query('delete from audit_entry')
          await sql.query("update audit_head set seq = 0, hash = decode(repeat('00', 32), 'hex')")
          for (let n = 1; n <= 5; n += 1)
            await appendAudit(sql, auditText({ who: 'key:other' }, { act: 'flag', subject: '1', outcome: 'DONE' }))
          assert.equal((await verifyAudit(sql)).ok, true, 'the hashes fit')
          assert.deepEqual(await verifyAudit(sql, kept), { ...wrongAt(4n), kept: kept[0] })
          await signerOf(sql).sign(5 * day)
          throw undone
        }),
        undone,
      )
      assert.match(lines.at(-1) ?? '', /"level":"error".*lacks the head that was signed last/)
      assert.equal((await readHeads(path)).length, 2)

      // A full disk or a kill cut the last line. It does not count, and the next head takes its place.
      await appendFile(path, 'eyJhbGciOiJFUzI1Ni')
      assert.equal((await readHeads(path)).length, 2)
      await signerOf(database).sign(5 * day)
      const opened = await Promise.all((await readHeads(path)).map((line) => openHead(line, issuer.keys())))
      assert.deepEqual(
        opened.map(({ ok }) => ok),
        [true, true, true],
      )
    })

    it('has no signed head of another key, or of another purpose, and none is signed behind such a line', async () => {
      const path = auditHeadFile(testFolder())
      const [issuer, other] = await Promise.all(
        [0, 1].map(() => openIssuer({ folder: join(testFolder(), 'keys'), signing: true })),
      )
      assert.ok(issuer && other)
      const did = 'did:web:test'
      const lines: string[] = []
      const signer = createHeadSigner({ database, issuer, did, path, log: createLog((line) => lines.push(line)) })
      await signer.sign(0)
      const head = await auditHead(database)
      const claims = { iat: 0, seq: head.seq.toString(), hash: head.hash }
      const forged = [
        await signHead(other, did, head, 0),
        await issuer.listSignerFor(did).signJws({ typ: 'vc+jwt' }, claims),
        'eyJhbGciOiJFUzI1NiIsImtpZCI6ImtleS05In0.e30.AA',
      ]
      for (const [index, line] of forged.entries()) {
        assert.deepEqual(await openHead(line ?? '', issuer.keys()), { ok: false, because: 'forged' })
        await appendFile(path, `${line}\n`)
        await signer.sign((index + 2) * 86_400_000)
        assert.match(lines.at(-1) ?? '', /"level":"error".*not of this issuer/)
        assert.equal((await readHeads(path)).length, index + 2)
      }
    })

    it('is signed once a day by processes that share a data folder, and none cuts the line of another', async () => {
      const folder = testFolder()
      const path = auditHeadFile(folder)
      const issuer = await openIssuer({ folder: join(folder, 'keys'), signing: true })
      const log = createLog(() => {})
      const signers = Array.from({ length: 4 }, () =>
        createHeadSigner({ database, issuer, did: 'did:web:test', path, log }),
      )
      for (let day = 1; day <= 10; day += 1) {
        if (day > 1) await appendFile(path, 'eyJhbGciOiJFUzI1Ni')
        await Promise.all(signers.map((signer) => signer.sign(day * 86_400_000)))
      }
      const opened = await Promise.all((await readHeads(path)).map((line) => openHead(line, issuer.keys())))
      assert.deepEqual(
        opened.map((one) => (one.ok ? one.head.at / 86_400_000 : one.because)),
        Array.from({ length: 10 }, (_, index) => index + 1),
      )
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

describe('the audit trail of several processes', { skip: noPostgres }, () => {
  it(`has each of ${acts} acts once, when processes are killed meanwhile`, async () => {
    const database = await openOwnDatabase('migrated')
    try {
      const acknowledged: string[] = []
      const program = fileURLToPath(new URL('../../support/database/acts.ts', import.meta.url))
      /** Runs one process after another until it has done its part, and kills it during the next act. */
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
