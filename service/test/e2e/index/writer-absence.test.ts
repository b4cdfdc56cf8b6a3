/** An outcome is never given up because a provider lacks something: a receipt, a block or a count (spec §4.9). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { hexToBytes, keccak256, toHex } from 'viem'
import { RpcError } from '../../../src/chain/rpc/answer.ts'
import type { RpcClient } from '../../../src/chain/rpc/client.ts'
import type { WriteResult } from '../../../src/chain/transactions/writer.ts'
import { alice, bob, codeOf, hash, operator, startWriterOver } from '../../support/index/writer-world.ts'
import { lazily, useOpened } from '../../support/opened.ts'

const mint = { kind: 'mint', to: operator.address, metadataHash: hash(1) } as const

describe('a transaction about which a provider lacks something', () => {
  const world = useOpened(startWriterOver)
  const operations = lazily(() => world.operations)

  it('stays CONFIRMED once mined, when providers have deleted it, and one counts too few transactions or lacks its block', async () => {
    const count = await world.nonceOf(operator.address)
    const first = await world.writerOver(operations).write(mint, { idempotencyKey: 'deleted' })
    assert.ok(first.ok && first.status === 'CONFIRMED')
    await world.mine(5)
    await world.database.query(`update operation set settled_at = settled_at - interval '1 hour'`)
    /** Answers once as a provider that starts anew would. */
    let absent = ''
    const rpc: RpcClient = async (method, params = [], options) => {
      const isOfFirst = params[0] === first.txHash || params[0] === toHex(first.blockNumber)
      if (isOfFirst && /Receipt|TransactionByHash/.test(method)) return null
      if (method !== absent || (method === 'eth_getBlockByNumber' && !isOfFirst))
        return world.rpc(method, params, options)
      absent = ''
      return method === 'eth_getTransactionCount' ? toHex(count) : null
    }
    const writer = world.writerOver(operations, { rpc, keys: { issuer: operator } })
    const outcomeNow = async () => (await operations.find('deleted'))?.status
    absent = 'eth_getTransactionCount'
    await writer.recover()
    assert.deepEqual([absent, await outcomeNow()], ['', 'CONFIRMED'])
    absent = 'eth_getBlockByNumber'
    assert.deepEqual(await writer.write(mint, { idempotencyKey: 'deleted' }), { ...first, repeated: true })
    assert.deepEqual([absent, await outcomeNow()], ['', 'CONFIRMED'])
    absent = 'eth_getTransactionCount'
    assert.equal(codeOf(await writer.write(mint, { idempotencyKey: 'after deleted' })), 'CONFIRMED')
    assert.deepEqual([absent, await outcomeNow()], ['', 'CONFIRMED'])
  })

  it('is CONFIRMED again, and never FAILED, after its only provider was without any block for a time', async () => {
    const first = await world.writerOver(operations).write(mint, { idempotencyKey: 'empty' })
    assert.ok(first.ok && first.status === 'CONFIRMED')
    await world.mine(5)
    let isEmpty = true
    const rpc: RpcClient = async (method, params = [], options) => {
      if (/Receipt|TransactionByHash/.test(method) && (isEmpty || params[0] === first.txHash)) return null
      if (method === 'eth_getTransactionCount' && isEmpty && params[1] !== 'safe') return '0x0'
      if (method === 'eth_getBlockByNumber' && isEmpty && params[0] !== 'latest') return null
      return world.rpc(method, params, options)
    }
    const writer = world.writerOver(operations, { rpc, keys: { issuer: operator }, receiptWaitMs: 50 })
    await writer.recover()
    assert.equal((await operations.find('empty'))?.status, 'PENDING')
    assert.ok(isPending(await writer.write(mint, { idempotencyKey: 'empty' })))
    isEmpty = false
    await writer.recover()
    assert.deepEqual(await writer.write(mint, { idempotencyKey: 'empty' }), { ...first, repeated: true })
  })

  it('is sent again when it is lost and the node does not count those of the safe block', async () => {
    let isLost = true
    const rpc: RpcClient = async (method, params = [], options) => {
      if (method === 'eth_sendRawTransaction' && isLost) return keccak256(params[0] as Hex)
      if (method === 'eth_getTransactionCount' && params[1] === 'safe')
        throw new RpcError('fault', 'the state is not kept', {})
      return world.rpc(method, params, options)
    }
    const writer = world.writerOver(operations, { rpc, keys: { issuer: operator }, receiptWaitMs: 50 })
    assert.ok(isPending(await writer.write(mint, { idempotencyKey: 'lost' })))
    isLost = false
    await writer.close()
    const next = world.writerOver(operations, { rpc, keys: { issuer: operator } })
    assert.equal(codeOf(await next.write(mint, { idempotencyKey: 'lost' })), 'CONFIRMED')
  })
})

describe('many transactions that are not decided', () => {
  const world = useOpened(startWriterOver)

  /** Stores open operations of an account that no node takes, from a nonce on. */
  const leave = (account: Hex, from: number, count: number) =>
    world.database.query(
      `with own as (insert into signer (address) values ($1) on conflict do nothing)
       insert into operation (idempotency_key, request_hash, kind, signer, nonce, tx_hash, raw, signed_at)
       select encode($1, 'hex') || n, sha256('left'), 'mint', $1, n, sha256($1 || n::text::bytea), '\\x02', now() - interval '10 seconds'
       from generate_series($2::bigint, $3::bigint) n`,
      [hexToBytes(account), from, from + count - 1],
    )

  it('keep no newer one from being sent', async () => {
    await leave(alice.address, 0, 1_000)
    await world.rpc('anvil_setNonce', [alice.address, toHex(2_000)])
    const fees = { maxFeePerGas: 10n ** 11n, maxPriorityFeePerGas: 10n ** 9n }
    const raw = await alice.signTransaction({
      chainId: 84532,
      type: 'eip1559',
      gas: 21_000n,
      to: bob.address,
      nonce: 2_000,
      ...fees,
    })
    const request = { key: 'newest', requestHash: hash(1), kind: 'mint', signer: alice.address.toLowerCase() as Hex }
    await world.operations.append({ ...request, fromNonce: 2_000n }, async () => ({ raw, txHash: keccak256(raw) }))
    const rpc: RpcClient = async (method, params = [], options) =>
      params[1] === 'safe' ? '0x0' : world.rpc(method, params, options)
    const writer = world.writerOver(world.operations, { rpc })
    assert.deepEqual(await writer.recover(), { confirmed: 0, failed: 0, pending: 1_001 })
    assert.equal(await world.nonceOf(alice.address), 2_001)
  })

  it('are sent again by a new write in part only, because its user waits', async () => {
    await leave(operator.address, await world.nonceOf(operator.address), 100)
    let sent = 0
    const rpc: RpcClient = async (method, ...rest) => {
      if (method === 'eth_sendRawTransaction') sent += 1
      return world.rpc(method, ...rest)
    }
    const writer = world.writerOver(world.operations, { rpc, receiptWaitMs: 50 })
    assert.ok(isPending(await writer.write(mint, { idempotencyKey: 'behind many' })))
    assert.ok(sent > 1 && sent < 50, `${sent} were sent`)
  })
})

function isPending(result: WriteResult): result is WriteResult & { ok: true; status: 'PENDING' } {
  return result.ok && result.status === 'PENDING'
}
