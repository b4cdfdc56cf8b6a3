/** The writer (spec §4.9) on a real anvil, over PGlite and over PostgreSQL. */
import { createRpcClient, type RpcClient } from '../../../src/chain/rpc/client.ts'
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { createWriter } from '../../../src/chain/transactions/writer.ts'
import type { OperationStore } from '../../../src/chain/transactions/operations.ts'
import { createLog } from '../../../src/lib/log.ts'
import { testDatabases } from '../../support/database/databases.ts'
import { codeOf, hash, keys, minted, operator, startWriterOver } from '../../support/index/writer-world.ts'
import { lazily, useOpened } from '../../support/opened.ts'

const mint = (n = 1) => ({ kind: 'mint', to: operator.address, metadataHash: hash(n) }) as const

for (const { name, open, skip } of testDatabases()) {
  describe(`the writer on ${name}`, { skip }, () => {
    const world = useOpened(() => startWriterOver(open))
    const operations = lazily(() => world.operations)
    const writer = lazily(() => world.writer)

    it('mines 50 writes that come at once, with gapless nonces', async () => {
      const [before, supply] = [await world.nonceOf(operator.address), await world.supply()]
      const results = await Promise.all(
        Array.from({ length: 50 }, (_, n) => writer.write(mint(n), { idempotencyKey: `many-${n}` })),
      )
      assert.deepEqual(new Set(results.map(codeOf)), new Set(['CONFIRMED']))
      const ids = results.flatMap((result) => ('tokenIds' in result ? result.tokenIds : []))
      assert.equal(new Set(ids).size, 50)
      const stored = await Promise.all(results.map((_, n) => operations.find(`many-${n}`)))
      const nonces = stored.map((operation) => Number(operation?.nonce)).toSorted((a, b) => a - b)
      assert.deepEqual(
        nonces,
        Array.from({ length: 50 }, (_, n) => before + n),
      )
      assert.deepEqual([await world.nonceOf(operator.address), await world.supply()], [before + 50, supply + 50])
    })

    it('gives two services that share keys and store gapless nonces too', async () => {
      const other = world.writerOver(operations)
      const before = await world.nonceOf(operator.address)
      const results = await Promise.all(
        Array.from({ length: 30 }, (_, n) =>
          (n % 2 ? writer : other).write(mint(n), { idempotencyKey: `shared-${n}` }),
        ),
      )
      assert.deepEqual(new Set(results.map(codeOf)), new Set(['CONFIRMED']))
      assert.equal(await world.nonceOf(operator.address), before + 30)
    })

    it('sends a request once however often its key is used, and rejects another request under it', async () => {
      const supply = await world.supply()
      const first = await writer.write(mint(), { idempotencyKey: 'once' })
      const again = await writer.write(mint(), { idempotencyKey: 'once' })
      assert.deepEqual(again, { ...first, repeated: true })
      const together = await Promise.all(
        Array.from({ length: 10 }, () => writer.write(mint(), { idempotencyKey: 'together' })),
      )
      assert.equal(new Set(together.map((result) => 'txHash' in result && result.txHash)).size, 1)
      assert.equal(await world.supply(), supply + 2)
      assert.deepEqual(codeOf(await writer.write(mint(2), { idempotencyKey: 'once' })), 'IDEMPOTENCY_CONFLICT')
      const ofAnother = world.writerOver(operations, { contract: operator.address })
      assert.equal(codeOf(await ofAnother.write(mint(), { idempotencyKey: 'once' })), 'IDEMPOTENCY_CONFLICT')
    })

    it('returns the result of a repeated step, though the contract would reject it by now', async () => {
      const [tokenId = 0n] = minted(await writer.write(mint(), { idempotencyKey: 'step' }))
      const bind = { kind: 'bindTag', tokenId, tagHash: hash(0x51) } as const
      const all = await Promise.all([1, 2, 3].map(() => writer.write(bind, { idempotencyKey: 'bind' })))
      assert.deepEqual(new Set(all.map(codeOf)), new Set(['CONFIRMED']))
      assert.equal(codeOf(await writer.write(bind, { idempotencyKey: 'bind-2' })), 'WRONG_STATE')
    })

    it('returns the result of the same step that another service had mined before this one tried it', async () => {
      const [tokenId = 0n] = minted(await writer.write(mint(), { idempotencyKey: 'raced mint' }))
      const bind = { kind: 'bindTag', tokenId, tagHash: hash(0x52) } as const
      const rpc: RpcClient = async (method, ...rest) => {
        if (method === 'eth_estimateGas') await writer.write(bind, { idempotencyKey: 'raced' })
        return world.rpc(method, ...rest)
      }
      const late = await world.writerOver(operations, { rpc }).write(bind, { idempotencyKey: 'raced' })
      assert.ok(late.ok && late.status === 'CONFIRMED' && late.repeated)
    })

    it('rejects what would revert, in a sentence, without a transaction', async () => {
      const before = await world.nonceOf(operator.address)
      const rejected = await writer.write({ kind: 'activate', tokenId: 999n }, { idempotencyKey: 'rejected' })
      assert.deepEqual(rejected, { ok: false, code: 'ASSET_NOT_FOUND', message: 'Asset 999 does not exist.' })
      const [tokenId = 0n] = minted(await writer.write(mint(), { idempotencyKey: 'rejected' }))
      const wrong = await writer.write({ kind: 'activate', tokenId }, { idempotencyKey: 'wrong' })
      assert.deepEqual(wrong, {
        ok: false,
        code: 'WRONG_STATE',
        message: `Asset ${tokenId} is MINTED; this step does not lead from there.`,
      })
      assert.equal(await world.nonceOf(operator.address), before + 1)
    })

    it('can try a request without sending it', async () => {
      const supply = await world.supply()
      const tried = await writer.simulate(mint())
      assert.ok(tried.ok && tried.gas > 50_000n && tried.gas < 200_000n)
      assert.equal(
        codeOf(await writer.simulate({ kind: 'bindTag', tokenId: 999n, tagHash: hash(1) })),
        'ASSET_NOT_FOUND',
      )
      assert.equal(await world.supply(), supply)
    })

    it('returns PENDING without a receipt, then CONFIRMED under the same key', async () => {
      const quick = world.writerOver(operations, { receiptWaitMs: 50 })
      await world.automine(false)
      const first = await quick.write(mint(), { idempotencyKey: 'slow' })
      assert.equal(codeOf(first), 'PENDING')
      assert.equal(codeOf(await quick.write(mint(), { idempotencyKey: 'slow' })), 'PENDING')
      await world.mine()
      await world.automine(true)
      const settled = await quick.write(mint(), { idempotencyKey: 'slow' })
      assert.ok(
        settled.ok &&
          settled.status === 'CONFIRMED' &&
          settled.repeated &&
          'txHash' in first &&
          settled.txHash === first.txHash,
      )
    })

    it('settles open operations in a recovery', async () => {
      const quick = world.writerOver(operations, { receiptWaitMs: 50 })
      await world.automine(false)
      assert.equal(codeOf(await quick.write(mint(), { idempotencyKey: 'open' })), 'PENDING')
      assert.deepEqual(await quick.recover(), { confirmed: 0, failed: 0, pending: 1 })
      await world.mine()
      await world.automine(true)
      assert.deepEqual(await quick.recover(), { confirmed: 1, failed: 0, pending: 0 })
      assert.equal((await operations.find('open'))?.status, 'CONFIRMED')
    })

    it('ends waiting writes with PENDING when it closes', async () => {
      const closing = world.writerOver(operations)
      await world.automine(false)
      const waiting = closing.write(mint(), { idempotencyKey: 'closing' })
      while ((await operations.find('closing')) === undefined) await new Promise(setImmediate)
      await closing.close()
      assert.equal(codeOf(await waiting), 'PENDING')
      await world.automine(true)
      await world.mine()
    })

    it('throws CHAIN_UNAVAILABLE when the chain does not answer, and keeps nothing', async () => {
      const lost = world.writerOver(operations, { rpc: createRpcClient({ url: 'http://127.0.0.1:1' }) })
      await assert.rejects(lost.write(mint(), { idempotencyKey: 'lost' }), { code: 'CHAIN_UNAVAILABLE' })
      assert.equal(await operations.find('lost'), undefined)
    })
  })
}

describe('the writer', () => {
  const options = {
    rpc: createRpcClient({ url: 'http://127.0.0.1:1' }),
    contract: hash(1).slice(0, 42) as Hex,
    chainId: 84532,
    operations: {} as OperationStore,
    log: createLog(() => {}),
  }

  it("rejects anvil's published keys on any chain but the local one", () => {
    assert.throws(() => createWriter({ ...options, keys }), {
      message:
        /^The operator key of issuer, binder, .* is one of anvil's published keys, .* configure a key of your own\.$/,
    })
    const own = privateKeyToAccount(generatePrivateKey())
    assert.ok(createWriter({ ...options, keys: { issuer: own } }))
    assert.ok(createWriter({ ...options, keys, local: true }))
  })

  it('names a step without a key, and a value that does not fit', async () => {
    const writer = createWriter({ ...options, keys: { issuer: privateKeyToAccount(generatePrivateKey()) } })
    assert.equal(codeOf(await writer.simulate({ kind: 'activate', tokenId: 1n })), 'OPERATOR_KEY_MISSING')
    const tooMany = {
      kind: 'mintBatch',
      to: operator.address,
      metadataHashes: Array.from({ length: 201 }, () => hash(1)),
    } as const
    assert.equal(codeOf(await writer.simulate(tooMany)), 'INVALID_REQUEST')
    assert.equal(codeOf(await writer.simulate({ kind: 'mint', to: '0x12', metadataHash: hash(1) })), 'INVALID_REQUEST')
  })
})
