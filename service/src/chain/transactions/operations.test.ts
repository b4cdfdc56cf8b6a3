import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { testDatabases } from '../../../test/support/database/databases.ts'
import { useOpened } from '../../../test/support/opened.ts'
import { type AuditBody, auditHead, readAudit } from '../../db/audit.ts'
import { hexToBytes } from '../../db/columns.ts'
import { operationStore } from './operations.ts'

for (const { name, open, skip } of testDatabases()) {
  describe(`operations on ${name}`, { skip }, () => {
    const database = useOpened(open)
    const operations = operationStore(database)
    let count = 0

    const bytes = (n: number, size: number): Hex => `0x${n.toString(16).padStart(2 * size, '0')}`
    const newSigner = () => bytes((count += 1), 20)
    const signed = (n: number) => async () => ({ txHash: bytes(n, 32), raw: bytes(n, 5) })
    const append = async (key: string, signer: Hex, fromNonce: bigint) => {
      const request = { key, requestHash: bytes(7, 32), kind: 'mint', signer, fromNonce }
      const appended = await operations.append(request, signed((count += 1)))
      assert.ok(appended)
      return appended
    }

    it('gives each operation of a signer the next nonce, also when many come at once', async () => {
      const signer = newSigner()
      const all = await Promise.all(Array.from({ length: 30 }, (_, n) => append(`parallel-${n}`, signer, 5n)))
      const nonces = all.map(({ operation }) => operation.nonce).toSorted((a, b) => Number(a - b))
      assert.deepEqual(
        nonces,
        Array.from({ length: 30 }, (_, n) => BigInt(n + 5)),
      )
    })

    it('fills a gap first, and follows the chain where that is ahead', async () => {
      const signer = newSigner()
      for (const from of [3n, 5n]) await append(`gap-${from}`, signer, from)
      assert.equal((await append('gap-a', signer, 3n)).operation.nonce, 4n)
      assert.equal((await append('gap-b', signer, 3n)).operation.nonce, 6n)
      assert.equal((await append('gap-c', signer, 9n)).operation.nonce, 9n)
    })

    it('keeps one operation for each key, also when several ask at once', async () => {
      const all = await Promise.all([newSigner(), newSigner(), newSigner()].map((signer) => append('same', signer, 0n)))
      assert.equal(all.filter(({ added }) => added).length, 1)
      assert.equal(new Set(all.map(({ operation }) => operation.txHash)).size, 1)
    })

    it('counts what was signed and settled before the clock was set back as old', async () => {
      const signer = newSigner()
      const { operation } = await append('from the future', signer, 0n)
      await operations.settle('from the future', 'CONFIRMED', '{}')
      const oldOnes = async () => (await operations.settledFrom(signer, 0n, 30_000, 9)).map(({ ageMs }) => ageMs)
      assert.deepEqual(await oldOnes(), [])
      await database.query(
        `update operation set signed_at = signed_at + interval '1 hour', settled_at = settled_at + interval '1 hour' where tx_hash = $1`,
        [hexToBytes(operation.txHash)],
      )
      const [ageMs = 0] = await oldOnes()
      assert.ok(ageMs > 3_500_000, `${ageMs}`)
    })

    it('signs and stores nothing where the guard returns false', async () => {
      const request = { key: 'guarded', requestHash: bytes(7, 32), kind: 'mint', signer: newSigner(), fromNonce: 0n }
      const unsigned = () => assert.fail('it was signed')
      assert.equal(await operations.append({ ...request, guard: async () => false }, unsigned), null)
      assert.equal(await operations.find('guarded'), undefined)
      assert.ok(await operations.append({ ...request, guard: async () => true }, signed((count += 1))))
    })

    it('stores nothing when signing fails', async () => {
      const request = { key: 'unsigned', requestHash: bytes(7, 32), kind: 'mint', signer: newSigner(), fromNonce: 0n }
      await assert.rejects(
        operations.append(request, () => Promise.reject(new Error('no signer'))),
        /no signer/,
      )
      assert.equal(await operations.find('unsigned'), undefined)
    })

    it('settles once, and opens again what the chain has lost', async () => {
      const signer = newSigner()
      await append('settled', signer, 0n)
      await operations.settle('settled', 'CONFIRMED', '{"a":1}')
      await operations.settle('settled', 'FAILED', '{}')
      const found = await operations.find('settled')
      assert.deepEqual([found?.status, found?.outcome], ['CONFIRMED', '{"a":1}'])
      const keysFrom = async (nonce: bigint, ms = 0) =>
        (await operations.settledFrom(signer, nonce, ms, 9)).map(({ key }) => key)
      assert.deepEqual(await Promise.all([keysFrom(0n), keysFrom(1n), keysFrom(0n, 60_000)]), [['settled'], [], []])
      await operations.reopen('settled', '{"b":1}', '{}')
      assert.deepEqual(await operations.pending(signer), [], 'it has another outcome')
      await operations.reopen('settled', '{"a":1}', '{"a":1,"was":"CONFIRMED"}')
      const [open] = await operations.pending(signer)
      assert.deepEqual([open?.key, open?.status, open?.outcome], ['settled', 'PENDING', '{"a":1,"was":"CONFIRMED"}'])
      assert.deepEqual(await operations.pendingBelow(signer, 0n), [])
      assert.deepEqual((await operations.pendingBelow(signer, 1n)).length, 1)
    })

    it('keeps every transaction of an operation when one is replaced', async () => {
      const { operation } = await append('replaced', newSigner(), 0n)
      const [second, third] = [await signed(901)(), await signed(902)()]
      assert.ok(await operations.replace(operation.txHash, second))
      assert.ok(!(await operations.replace(operation.txHash, third)), 'it was replaced already')
      assert.equal((await operations.find('replaced'))?.txHash, second.txHash)
      assert.deepEqual(await operations.hashes('replaced'), [second.txHash, operation.txHash])
      await operations.settle('replaced', 'CONFIRMED', '{}')
      assert.ok(!(await operations.replace(second.txHash, third)), 'it is settled')
    })

    it('has every transaction in the audit trail, and with the outcome the one that was mined', async () => {
      const [signer, by] = [newSigner(), { who: 'key:testtest' }]
      const request = { key: 'audited', requestHash: bytes(7, 32), kind: 'flag', signer, fromNonce: 0n, subject: '3' }
      const [first, second, third] = [await signed(911)(), await signed(912)(), await signed(913)()]
      const { seq } = await auditHead(database)
      await operations.append({ ...request, by }, async () => first)
      for (const [before, next] of [
        [first, second],
        [second, third],
      ] as const)
        assert.ok(await operations.replace(before.txHash, next))
      assert.ok(!(await operations.replace(second.txHash, first)), 'it was replaced already')
      await operations.settle('audited', 'CONFIRMED', JSON.stringify({ txHash: second.txHash }))
      const entries = await readAudit(database, seq, 10)
      const shared = { who: 'service', act: 'flag', subject: '3', of: String(seq + 1n) }
      assert.deepEqual(
        entries.map(({ body }) => JSON.parse(body) as AuditBody),
        [
          { who: 'key:testtest', act: 'flag', subject: '3', outcome: 'SIGNED', txHash: first.txHash },
          { ...shared, outcome: 'SIGNED', txHash: second.txHash },
          { ...shared, outcome: 'SIGNED', txHash: third.txHash },
          { ...shared, outcome: 'CONFIRMED', txHash: second.txHash },
        ],
      )
    })
  })
}
