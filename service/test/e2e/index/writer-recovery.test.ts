/** The writer recovers from crashes, lost blocks, stuck and superseded transactions (spec §4.9). */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import {
  encodeFunctionData,
  type EncodeFunctionDataParameters,
  keccak256,
  parseTransaction,
  stringToHex,
  toHex,
} from 'viem'
import { RpcError } from '../../../src/chain/rpc/answer.ts'
import type { RpcClient } from '../../../src/chain/rpc/client.ts'
import type { WriteResult } from '../../../src/chain/transactions/writer.ts'
import { type DatabaseOptions, openDatabase } from '../../../src/db/database.ts'
import { assetRegistryAbi } from '../../../src/domain/registry-abi.ts'
import { openOwnDatabase, testDatabases } from '../../support/database/databases.ts'
import { testFolder } from '../../support/folder.ts'
import {
  attester,
  bob,
  codeOf,
  hash,
  operator,
  startWriterWorld,
  storeIn,
  startWriterOver,
  type WriterWorld,
} from '../../support/index/writer-world.ts'
import { lazily, useOpened } from '../../support/opened.ts'
import { until } from '../../support/wait.ts'

const mint = { kind: 'mint', to: operator.address, metadataHash: hash(1) } as const
const noPostgres = testDatabases().find(({ name }) => name === 'PostgreSQL')?.skip ?? false

describe('a service killed between storing and sending', () => {
  const world = useOpened(startWriterWorld)

  it('sends what it had stored at its next start, once, on PGlite', async () => {
    const dataDir = testFolder()
    await survivesKill(world, { dataDir })
  })

  it('does so on PostgreSQL', { skip: noPostgres }, async () => {
    const own = await openOwnDatabase('migrated')
    await survivesKill(world, { url: own.url })
    await own.close()
  })
})

/** Three writes whose process dies after the third is stored: the first was sent, the second and third were not. */
async function survivesKill(world: WriterWorld, where: DatabaseOptions): Promise<void> {
  const [supply, nonce] = [await world.supply(), await world.nonceOf(operator.address)]
  const signal = await new Promise((resolve) => {
    const args = [JSON.stringify(where), world.url, world.contract]
    const child = spawn(process.execPath, ['--input-type=module-typescript', '-e', crashingProgram, ...args], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    child.once('exit', (_code, by) => resolve(by))
  })
  assert.equal(signal, 'SIGKILL')
  assert.equal(await world.supply(), supply + 1)

  const database = await openDatabase(where)
  const operations = await storeIn(database)
  const writer = world.writerOver(operations)
  const recovered = await writer.recover()
  assert.equal(recovered.failed, 0)
  const results = await Promise.all([0, 1, 2].map((n) => writer.write(mint, { idempotencyKey: `crash-${n}` })))
  for (const result of results)
    assert.ok(result.ok && result.status === 'CONFIRMED' && result.repeated, JSON.stringify(result.ok))
  assert.deepEqual([await world.supply(), await world.nonceOf(operator.address)], [supply + 3, nonce + 3])
  await writer.close()
  await database.close()
}

const at = (path: string) => new URL(path, import.meta.url).href
const crashingProgram = `
import { createWriter } from '${at('../../../src/chain/transactions/writer.ts')}'
import { openDatabase } from '${at('../../../src/db/database.ts')}'
import { createRpcClient } from '${at('../../../src/chain/rpc/client.ts')}'
import { createLog } from '${at('../../../src/lib/log.ts')}'
import { keys, operator, hash, storeIn } from '${at('../../support/index/writer-world.ts')}'
const [where, url, contract] = process.argv.slice(-3)
const rpc = createRpcClient({ url })
const operations = await storeIn(await openDatabase(JSON.parse(where)))
const request = { kind: 'mint', to: operator.address, metadataHash: hash(1) }
const options = { rpc, contract, chainId: 84532, keys, operations, log: createLog(() => {}), local: true }
await createWriter(options).write(request, { idempotencyKey: 'crash-0' })
let stored = 0
const append = async (...args) => {
  await operations.append(...args)
  if (++stored === 2) process.kill(process.pid, 'SIGKILL')
  return new Promise(() => {}) // never sent
}
const dying = createWriter({ ...options, operations: { ...operations, append } })
void dying.write(request, { idempotencyKey: 'crash-1' })
void createWriter({ ...options, operations: { ...operations, append } }).write(request, { idempotencyKey: 'crash-2' })
setInterval(() => {}, 1000)
`

describe('a transaction that was sent', () => {
  const world = useOpened(startWriterOver)
  const operations = lazily(() => world.operations)

  it('gets higher fees at the same nonce when it is stuck, and counts once', async () => {
    const writer = world.writerOver(operations, { receiptWaitMs: 50, stuckAfterMs: 0 })
    const supply = await world.supply()
    await world.automine(false)
    const first = await writer.write(mint, { idempotencyKey: 'stuck' })
    await world.rpc('anvil_setNextBlockBaseFeePerGas', ['0x2540be400']) // 10 gwei, above what was offered
    await world.mine()
    const second = await writer.write(mint, { idempotencyKey: 'stuck' })
    assert.ok(isPending(first) && isPending(second) && first.txHash !== second.txHash)
    await world.automine(true)
    await world.mine()
    const third = await writer.write(mint, { idempotencyKey: 'stuck' })
    assert.ok(third.ok && third.status === 'CONFIRMED' && third.txHash === second.txHash)
    assert.equal(await world.supply(), supply + 1)
  })

  it('is sent again after its loss, although the clock of the database was set back since', async () => {
    const writer = world.writerOver(operations, { receiptWaitMs: 50 })
    const supply = await world.supply()
    await world.automine(false)
    const lost = await writer.write(mint, { idempotencyKey: 'from the future' })
    assert.ok(isPending(lost))
    await world.rpc('anvil_dropTransaction', [lost.txHash])
    await world.database.query(`update operation set signed_at = signed_at + interval '1 hour'`)
    await world.automine(true)
    await writer.recover({ signedMs: 30_000 })
    assert.equal(await world.supply(), supply + 1)
    const again = await writer.write(mint, { idempotencyKey: 'from the future' })
    assert.ok(again.ok && again.status === 'CONFIRMED' && again.txHash === lost.txHash)
  })

  it('gets higher fees when the tip has risen above its own, though the base fee has fallen by more', async () => {
    const gwei = 1_000_000_000n
    let tip = gwei
    const rpc: RpcClient = async (method, ...rest) =>
      method === 'eth_maxPriorityFeePerGas' ? toHex(tip) : world.rpc(method, ...rest)
    const writer = world.writerOver(operations, { rpc, receiptWaitMs: 50, stuckAfterMs: 0 })
    await world.automine(false)
    const first = await writer.write(mint, { idempotencyKey: 'low tip' })
    assert.ok(isPending(first))
    await world.rpc('anvil_dropTransaction', [first.txHash])
    await world.rpc('anvil_setNextBlockBaseFeePerGas', [toHex(gwei / 10n)])
    await world.mine()
    tip = 2n * gwei
    const second = await writer.write(mint, { idempotencyKey: 'low tip' })
    assert.ok(isPending(second))
    assert.notEqual(second.txHash, first.txHash)
    const { maxPriorityFeePerGas } = parseTransaction((await operations.find('low tip'))?.raw ?? '0x')
    assert.equal(maxPriorityFeePerGas, tip)
    await world.automine(true)
    await world.mine()
    const third = await writer.write(mint, { idempotencyKey: 'low tip' })
    assert.ok(third.ok && third.status === 'CONFIRMED' && third.txHash === second.txHash)
  })

  it('is found when the one before its replacement was mined after all', async () => {
    const writer = world.writerOver(operations, { receiptWaitMs: 50 })
    await world.automine(false)
    const first = await writer.write(mint, { idempotencyKey: 'before' })
    assert.ok(isPending(first))
    await operations.replace(first.txHash, { txHash: hash(77), raw: '0x02' })
    await world.mine()
    await world.automine(true)
    const second = await writer.write(mint, { idempotencyKey: 'before' })
    assert.ok(second.ok && second.status === 'CONFIRMED' && second.txHash === first.txHash)
  })

  it('is CONFIRMED when another process replaced it after this one listed it, and the replacement was mined', async () => {
    const other = world.writerOver(operations, { receiptWaitMs: 50, stuckAfterMs: 0 })
    await world.automine(false)
    const first = await other.write(mint, { idempotencyKey: 'listed' })
    await world.rpc('anvil_setNextBlockBaseFeePerGas', ['0x6fc23ac00']) // 30 gwei, above what was offered
    await world.mine()
    const pending: typeof operations.pending = async (...request) => {
      const listed = await operations.pending(...request)
      const second = await other.write(mint, { idempotencyKey: 'listed' })
      assert.ok(isPending(first) && isPending(second) && first.txHash !== second.txHash)
      await world.mine(4)
      return listed
    }
    const late = world.writerOver({ ...operations, pending }, { keys: { issuer: operator } })
    assert.deepEqual(await late.recover(), { confirmed: 1, failed: 0, pending: 0 })
    assert.equal((await operations.find('listed'))?.status, 'CONFIRMED')
    await world.automine(true)
  })

  it('is given up only when another one has its nonce at a safe block', async () => {
    const writer = world.writerOver(operations, { receiptWaitMs: 50 })
    await world.automine(false)
    const first = await writer.write(mint, { idempotencyKey: 'superseded' })
    assert.ok(isPending(first))
    await world.rpc('anvil_dropTransaction', [first.txHash])
    await world.rpc('eth_sendTransaction', [{ from: operator.address, to: operator.address }])
    await world.mine(1)
    assert.ok(isPending(await writer.write(mint, { idempotencyKey: 'superseded' })), 'not safe yet')
    await world.mine(3)
    const given = await writer.write(mint, { idempotencyKey: 'superseded' })
    assert.ok(!given.ok && given.code === 'SUPERSEDED')
    await world.automine(true)
    assert.ok((await writer.write(mint, { idempotencyKey: 'superseded-2' })).ok)
  })

  it('is CONFIRMED where its nonce is used at a safe block, and only a provider that lags lacks its receipt', async () => {
    const rpc: RpcClient = async (method, params, options = {}) =>
      method === 'eth_getTransactionReceipt' && options.unanimous !== true ? null : world.rpc(method, params, options)
    const writer = world.writerOver(operations, { rpc, receiptWaitMs: 50 })
    assert.ok(isPending(await writer.write(mint, { idempotencyKey: 'lagging' })))
    await world.mine(5)
    await writer.recover()
    assert.equal((await operations.find('lagging'))?.status, 'CONFIRMED')
  })

  it('does not keep others from being sent, nor a later recovery from going on, while its own outcome is undecided', async () => {
    const writer = world.writerOver(operations, { receiptWaitMs: 50 })
    await world.automine(false)
    const undecided = await writer.write(mint, { idempotencyKey: 'undecided' })
    assert.ok(isPending(undecided))
    await world.rpc('anvil_dropTransaction', [undecided.txHash])
    await world.rpc('eth_sendTransaction', [{ from: operator.address, to: operator.address }])
    await world.mine(4)
    const later = await writer.write(mint, { idempotencyKey: 'after undecided' })
    assert.ok(isPending(later))
    await world.rpc('anvil_dropTransaction', [later.txHash])
    let isAway = true
    const rpc: RpcClient = async (method, params = [], options = {}) => {
      if (isAway && options.unanimous === true && params[0] === undecided.txHash)
        throw new RpcError('fault', 'one provider is away')
      return world.rpc(method, params, options)
    }
    const recovering = world.writerOver(operations, { rpc })
    await assert.rejects(recovering.recover(), /one provider is away/)
    await world.mine(1)
    await assert.rejects(recovering.recover(), /one provider is away/)
    const statusNow = async (key: string) => (await operations.find(key))?.status
    assert.deepEqual(await Promise.all(['undecided', 'after undecided'].map(statusNow)), ['PENDING', 'CONFIRMED'])
    isAway = false
    assert.deepEqual(await recovering.recover(), { confirmed: 0, failed: 1, pending: 0 })
    await world.automine(true)
  })

  it('is sent again also when its key is configured no more', async () => {
    const writer = world.writerOver(operations, { receiptWaitMs: 50 })
    await world.automine(false)
    const first = await writer.write(mint, { idempotencyKey: 'former key' })
    assert.ok(isPending(first))
    await writer.close()
    await world.rpc('anvil_dropTransaction', [first.txHash])
    const next = world.writerOver(operations, { keys: { issuer: bob, attester } })
    assert.equal((await next.recover({ signedMs: 600_000 })).pending, 0)
    assert.equal((await next.recover()).pending, 1)
    await world.mine(1)
    await world.automine(true)
    assert.equal((await next.recover()).confirmed, 1)
    assert.equal((await operations.find('former key'))?.status, 'CONFIRMED')
  })

  it('is sent again when the chain has lost its block', async () => {
    const writer = world.writerOver(operations)
    const results = [
      await writer.write(mint, { idempotencyKey: 'lost-1' }),
      await writer.write(mint, { idempotencyKey: 'lost-2' }),
    ]
    assert.ok(results.every((result) => result.ok && result.status === 'CONFIRMED'))
    const supply = await world.supply()
    await world.rpc('anvil_reorg', [2, []])
    assert.equal(await world.supply(), supply - 2)
    const { confirmed, pending } = await writer.recover()
    assert.equal(confirmed + pending, 2)
    const again = await writer.write(mint, { idempotencyKey: 'lost-2' })
    assert.ok(again.ok && again.status === 'CONFIRMED')
    assert.equal(await world.supply(), supply)
  })

  it('is FAILED when it reverts after all', async () => {
    // Anvil estimates on top of its pool: neither is sent before both were estimated.
    const estimated = Promise.withResolvers<void>()
    let estimates = 0
    const rpc: RpcClient = async (method, ...rest) => {
      if (method === 'eth_sendRawTransaction') await estimated.promise
      const answer = await world.rpc(method, ...rest)
      if (method === 'eth_estimateGas' && ++estimates === 2) estimated.resolve()
      return answer
    }
    const patient = world.writerOver(operations)
    const writer = world.writerOver(operations, { rpc, receiptWaitMs: 50 })
    const results = await Promise.all([1, 2].map((n) => patient.write(mint, { idempotencyKey: `pair-${n}` })))
    const [one = 0n, two = 0n] = results.flatMap((result) => ('tokenIds' in result ? result.tokenIds : []))
    await world.automine(false)
    const tagHash = hash(0x88)
    const first = { kind: 'bindTag', tokenId: one, tagHash } as const
    const second = { kind: 'bindTag', tokenId: two, tagHash } as const
    await Promise.all([
      writer.write(first, { idempotencyKey: 'tag-1' }),
      writer.write(second, { idempotencyKey: 'tag-2' }),
    ])
    await world.mine()
    await world.automine(true)
    const settled = [
      await writer.write(first, { idempotencyKey: 'tag-1' }),
      await writer.write(second, { idempotencyKey: 'tag-2' }),
    ]
    assert.deepEqual(settled.map(codeOf).toSorted(), ['CONFIRMED', 'REVERTED'])
  })

  it('is CONFIRMED after it reverted, where another branch of the chain has it without the revert or not at all', async () => {
    const writer = world.writerOver(operations, { receiptWaitMs: 50 })
    const transact = (from: Hex, functionName: 'grantRole' | 'bindTag', args: readonly unknown[]) => {
      const call = { abi: assetRegistryAbi, functionName, args } as EncodeFunctionDataParameters
      const fees = { maxFeePerGas: '0x174876e800', maxPriorityFeePerGas: '0x77359400' } // before all others in a block
      const data = encodeFunctionData(call)
      return world.rpc('eth_sendTransaction', [{ from, to: world.contract, data, gas: '0x7a120', ...fees }])
    }
    await transact(operator.address, 'grantRole', [keccak256(stringToHex('BINDER_ROLE')), bob.address])
    for (const isIncluded of [true, false]) {
      const key = `branch-${isIncluded}`
      const minting = await world.writerOver(operations).write(mint, { idempotencyKey: `${key}-mint` })
      const [tokenId = 0n] = 'tokenIds' in minting ? minting.tokenIds : []
      const bind = { kind: 'bindTag', tokenId, tagHash: hash(Number(tokenId) + 0x900) } as const
      await world.automine(false)
      assert.ok(isPending(await writer.write(bind, { idempotencyKey: key })))
      await transact(bob.address, 'bindTag', [tokenId, hash(Number(tokenId) + 0x800)])
      await world.mine()
      for (let n = 0; n < 2; n += 1) assert.equal(codeOf(await writer.write(bind, { idempotencyKey: key })), 'REVERTED')
      const raw = (await operations.find(key))?.raw
      await world.rpc('anvil_reorg', [1, isIncluded ? [[raw, 0]] : []])
      await world.automine(true)
      await until(async () => codeOf(await writer.write(bind, { idempotencyKey: key })) === 'CONFIRMED')
      assert.equal((await operations.find(key))?.status, 'CONFIRMED')
    }
  })

  it('gets the outcome of another branch by a recovery, without a repeat of its request', async () => {
    const writer = world.writerOver(operations, { receiptWaitMs: 50 })
    const minting = await world.writerOver(operations).write(mint, { idempotencyKey: 'again-mint' })
    const [tokenId = 0n] = 'tokenIds' in minting ? minting.tokenIds : []
    const bind = { kind: 'bindTag', tokenId, tagHash: hash(Number(tokenId) + 0x900) } as const
    await world.automine(false)
    assert.ok(isPending(await writer.write(bind, { idempotencyKey: 'again' })))
    await world.mine()
    await writer.recover()
    const statusNow = async () => (await operations.find('again'))?.status
    assert.equal(await statusNow(), 'CONFIRMED')
    const { raw } = (await operations.find('again')) ?? {}
    // On the other branch somebody else has bound the tag of this token before.
    const taken = {
      abi: assetRegistryAbi,
      functionName: 'bindTag',
      args: [tokenId, hash(Number(tokenId) + 0x800)],
    } as const
    const [nonce, data] = [await world.nonceOf(bob.address), encodeFunctionData(taken)]
    const fees = { gas: 500_000n, maxFeePerGas: 10n ** 11n, maxPriorityFeePerGas: 2n * 10n ** 9n }
    const other = await bob.signTransaction({
      chainId: 84532,
      to: world.contract,
      data,
      nonce,
      type: 'eip1559',
      ...fees,
    })
    await world.rpc('anvil_reorg', [
      1,
      [
        [other, 0],
        [raw, 0],
      ],
    ])
    await world.automine(true)
    await world.writerOver(operations).recover()
    assert.equal(await statusNow(), 'FAILED')
    const { failed } = await world.writerOver(operations).recover()
    assert.deepEqual([failed, await statusNow()], [0, 'FAILED'])
  })

  it('stays CONFIRMED when the provider has deleted its receipt', async () => {
    const first = await world.writerOver(operations).write(mint, { idempotencyKey: 'pruned' })
    await world.mine(5)
    const supply = await world.supply()
    const rpc: RpcClient = async (method, ...rest) =>
      method === 'eth_getTransactionReceipt' ? null : world.rpc(method, ...rest)
    const writer = world.writerOver(operations, { rpc, receiptWaitMs: 50 })
    assert.deepEqual(await writer.write(mint, { idempotencyKey: 'pruned' }), { ...first, repeated: true })
    assert.equal(await world.supply(), supply)
  })

  it('stays PENDING when it was mined and the provider has deleted its receipt: the outcome is not known', async () => {
    const rpc: RpcClient = async (method, ...rest) =>
      method === 'eth_getTransactionReceipt' ? null : world.rpc(method, ...rest)
    const blind = world.writerOver(operations, { rpc, receiptWaitMs: 50 })
    const supply = await world.supply()
    assert.ok(isPending(await blind.write(mint, { idempotencyKey: 'blind' })))
    await world.mine(5)
    assert.equal((await blind.recover()).failed, 0)
    assert.ok(isPending(await blind.write(mint, { idempotencyKey: 'blind' })))
    assert.equal(await world.supply(), supply + 1)
    const seeing = await world.writerOver(operations).write(mint, { idempotencyKey: 'blind' })
    assert.ok(seeing.ok && seeing.status === 'CONFIRMED')
  })

  it('is not even signed when its account cannot pay, or fees are beyond the limit', async () => {
    const issuer = world.writerOver(operations, { maxFeePerGas: 1n })
    assert.equal(codeOf(await issuer.write(mint, { idempotencyKey: 'dear' })), 'FEE_TOO_HIGH')
    await world.rpc('anvil_setBalance', [operator.address, '0x1'])
    assert.equal(
      codeOf(await world.writerOver(operations).write(mint, { idempotencyKey: 'poor' })),
      'OPERATOR_UNFUNDED',
    )
    assert.equal(await operations.find('poor'), undefined)
  })
})

function isPending(result: WriteResult): result is WriteResult & { ok: true; status: 'PENDING' } {
  return result.ok && result.status === 'PENDING'
}
