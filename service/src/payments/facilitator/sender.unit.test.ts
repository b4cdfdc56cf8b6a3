/** Payments that are sent together: how many, when, and what becomes of those that are not sent. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { decodeAbiParameters, parseAbiParameters, parseTransaction, toHex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import callBatch from '../../../../contracts/artifacts/CallBatch.json' with { type: 'json' }
import { until } from '../../../test/support/wait.ts'
import { RpcError } from '../../chain/rpc/answer.ts'
import { feeLimit } from '../../chain/transactions/transaction.ts'
import { chainId } from '../../domain/chain.ts'
import { createLog } from '../../lib/log.ts'
import type { Payment } from '../x402/payment.ts'
import type { Call } from './call-batch.ts'
import { createSender, type Member } from './sender.ts'
import type { NonceSlots, Slot } from './slots.ts'

const account = privateKeyToAccount(generatePrivateKey())
const target: Hex = `0x${'c4'.repeat(20)}`
const head = { number: 9n, hash: toHex(9, { size: 32 }), timestamp: 100n, baseFee: 1n }
const receipt = {
  to: target,
  logs: [],
  gasUsed: '0x1',
  effectiveGasPrice: '0x1',
  blockHash: head.hash,
  blockNumber: '0x9',
}

/** A sender on a node that mines nothing before `mines`. A call fails there whose data are `0xfa`. */
function senderOf() {
  const sent: Hex[] = []
  const assigned: string[][] = []
  const released: bigint[] = []
  const simulated: number[] = []
  const filled: number[] = []
  const left: Slot[] = []
  const lines: string[] = []
  const state = {
    block: 9n,
    fee: 3n,
    count: '0x0',
    taken: undefined as Error | undefined,
    mines: false,
    storesNothing: false,
    refusal: undefined as Error | undefined,
    stored: undefined as Promise<void> | undefined,
  }
  const sender = createSender({
    rpc: async (method, [given] = []) => {
      if (method === 'eth_getTransactionCount') return state.count
      if (method === 'eth_getTransactionReceipt') return state.mines ? receipt : null
      if (method === 'eth_sendRawTransaction') {
        sent.push(given as Hex)
        if (state.taken) throw state.taken
        return null
      }
      if (state.refusal) throw state.refusal
      const { data } = given as { data: Hex }
      const [calls] = decodeAbiParameters(
        parseAbiParameters('(address, uint256, bytes)[], bool'),
        `0x${data.slice(callBatch.bytecode.length)}`,
      )
      simulated.push(calls.length)
      const words = calls.map(([, , bytes]) => (bytes === '0xfa' ? 0n : 1n << 255n))
      return `0x${words.map((word) => word.toString(16).padStart(64, '0') + '0'.repeat(64)).join('')}`
    },
    heads: {
      head: async () => ({ ...head, number: state.block, hash: toHex(state.block, { size: 32 }) }),
      fees: async () => ({ maxFeePerGas: state.fee, maxPriorityFeePerGas: 1n }),
    },
    slots: {
      assign: async ({ sender: from, members }, sign): Promise<Slot> => {
        if (state.storesNothing) throw new Error('connection terminated')
        assigned.push(members.map(({ nonce }) => nonce))
        await state.stored
        const { raw, hash } = await sign(assigned.length)
        return { pk: BigInt(assigned.length), sender: from, nonce: assigned.length, raw, hashes: [hash] }
      },
      fill: async ({ sender: from, nonce }, sign): Promise<Slot> => {
        filled.push(nonce)
        const { raw, hash } = await sign()
        return { pk: 100n, sender: from, nonce, raw, hashes: [hash] }
      },
      replace: async (slot, { raw, hash }): Promise<Slot> => ({ ...slot, raw, hashes: [...slot.hashes, hash] }),
      adopt: async () => left.map((slot) => ({ ...slot, validBefore: 900n })),
      mined: async () => {},
      release: async (followed) => void released.push(...followed.map(({ pk }) => pk)),
    } as Pick<NonceSlots, 'assign' | 'fill' | 'replace' | 'adopt' | 'mined' | 'release'> as NonceSlots,
    accounts: [account],
    log: createLog((line) => lines.push(line)),
  })
  let nonces = 0
  const member = (calls: readonly Call['data'][] = ['0x12'], gasLimit = 100_000, validBefore = 900n): Member => ({
    payment: { from: target, nonce: toHex((nonces += 1)), validBefore } as Payment,
    calls: calls.map((data) => ({ target, gasLimit, data })),
  })
  const sizes = () => assigned.map(({ length }) => length)
  return { sender, member, sent, assigned, released, simulated, filled, left, lines, sizes, state }
}

describe('a sender', () => {
  it('sends all that come at once, eighty in a transaction at most, and leaves none behind', async () => {
    const { sender, member, sent, simulated, sizes, state } = senderOf()
    await using _sender = sender
    const submitted = Array.from({ length: 170 }, () => sender.submit(member()))
    await until(() => sent.length === 3)
    for (const found of [sizes(), simulated])
      assert.deepEqual(
        found.toSorted((a, b) => b - a),
        [80, 80, 10],
      )
    state.mines = true
    for (const found of await Promise.all(submitted)) assert.ok(typeof found === 'object')
  })

  it('sends no more in a transaction than its gas and its size allow', async () => {
    const { sender, member, sent, sizes, state } = senderOf()
    await using _sender = sender
    const dear = Array.from({ length: 5 }, () => sender.submit(member(['0x12'], 4_000_000)))
    await until(() => sizes().reduce((sum, size) => sum + size, 0) === 5)
    assert.deepEqual(
      sizes().toSorted((a, b) => b - a),
      [4, 1],
    )
    const large = Array.from({ length: 5 }, () => sender.submit(member([`0x${'12'.repeat(12_000)}`], 30_000)))
    await until(() => sizes().reduce((sum, size) => sum + size, 0) === 10)
    assert.deepEqual(
      sizes()
        .slice(2)
        .toSorted((a, b) => b - a),
      [3, 2],
    )
    await until(() => sent.length === 4)
    state.mines = true
    await Promise.all([...dear, ...large])
  })

  for (const phase of ['stored', 'mined'])
    it(`sends one that is alone by itself, and others together with what comes before that one is ${phase}`, async () => {
      const { sender, member, sent, sizes, state } = senderOf()
      await using _sender = sender
      const storing = Promise.withResolvers<void>()
      if (phase === 'stored') state.stored = storing.promise
      const first = sender.submit(member())
      await until(() => (phase === 'stored' ? sizes() : sent).length === 1)
      const others: ReturnType<typeof sender.submit>[] = []
      for (let n = 0; n < 3; n += 1) {
        others.push(sender.submit(member()))
        await new Promise(setImmediate)
      }
      await until(() => sizes().length >= 2)
      others.push(sender.submit(member()))
      await until(() => sizes().length >= 3)
      storing.resolve()
      assert.deepEqual(sizes(), [1, 3, 1])
      state.mines = true
      await Promise.all([first, ...others])
    })

  it('rejects a payment whose transfer would fail, whatever its calls before that, and sends the others', async () => {
    const { sender, member, assigned, state } = senderOf()
    await using _sender = sender
    state.mines = true
    const members = [member(['0x12', '0xfa']), member(['0xfa', '0x12']), member(['0xfa']), member()]
    const found = await Promise.all(members.map((one) => sender.submit(one)))
    assert.deepEqual(
      found.map((one) => (typeof one === 'object' ? 'mined' : one)),
      ['rejected', 'mined', 'rejected', 'mined'],
    )
    assert.equal(await sender.submit(member(['0xfa'])), 'rejected')
    assert.equal(typeof (await sender.submit(member())), 'object')
    assert.deepEqual(assigned, [['0x2', '0x4'], ['0x6']])
  })

  it('sends a lonely call as it is, with the gas of its data, and several as a creation', async () => {
    const { sender, member, sent, state } = senderOf()
    await using _sender = sender
    state.mines = true
    await sender.submit(member([`0x${'12'.repeat(100)}`], 70_000))
    await sender.submit(member(['0x12', '0x12']))
    const [lonely, batch] = sent.map((raw) => parseTransaction(raw))
    assert.deepEqual([lonely?.to, lonely?.gas, batch?.to], [target, 70_000n + 21_000n + 8n * 202n, undefined])
  })

  it('finds no account where none can pay for gas, and takes no other refusal for that', async () => {
    const { sender, member, sent, state } = senderOf()
    await using _sender = sender
    state.refusal = new RpcError('rejected', 'insufficient funds for gas * price + value', {})
    assert.equal(await sender.submit(member()), 'unfunded')
    state.refusal = new Error('the provider does not answer')
    await assert.rejects(sender.submit(member()), /does not answer/)
    assert.deepEqual(sent, [])
  })

  it('finds no account while the price of gas is above the limit, and signs nothing then', async () => {
    const { sender, member, assigned, state } = senderOf()
    await using _sender = sender
    state.fee = feeLimit + 1n
    assert.equal(await sender.submit(member()), 'unfunded')
    assert.deepEqual(assigned, [])
  })

  it('sends payments again until the last of them has expired', async () => {
    const { sender, member, sent, state } = senderOf()
    await using _sender = sender
    state.count = '0x1'
    const ends = [head.timestamp - 1n, head.timestamp + 1n, head.timestamp - 1n]
    const submitted = ends.map((end) => sender.submit(member(['0x12'], 100_000, end)))
    await until(() => sent.length === 1)
    state.block += 3n
    await until(() => sent.length === 2)
    assert.equal(sent[1], sent[0])
    state.mines = true
    await Promise.all(submitted)
  })

  it('rejects with the fault of a database that stores nothing, and sends nothing then', async () => {
    const { sender, member, sent, state } = senderOf()
    await using _sender = sender
    state.storesNothing = true
    const submitted = [sender.submit(member()), sender.submit(member())]
    for (const one of await Promise.allSettled(submitted)) assert.equal(one.status, 'rejected')
    assert.deepEqual(sent, [])
  })

  it('fills the nonce before a transaction that is stuck, once the price of gas is below the limit', async () => {
    const { sender, member, sent, filled, state } = senderOf()
    await using _sender = sender
    const submitted = sender.submit(member())
    await until(() => sent.length === 1)
    state.fee = feeLimit + 1n
    state.block += 3n
    await until(() => sent.length === 2)
    assert.deepEqual(filled, [])
    state.fee = feeLimit
    state.block += 3n
    await until(() => sent.length === 4)
    assert.deepEqual(filled, [0])
    state.mines = true
    await submitted
  })

  it('sends what an earlier process left, unless its fees are above the limit, and follows all of it', async () => {
    const { sender, sent, left, state } = senderOf()
    await using _sender = sender
    const raws = [feeLimit + 1n, feeLimit].map((maxFeePerGas) =>
      account.signTransaction({ type: 'eip1559', chainId, to: target, gas: 21_000n, maxFeePerGas }),
    )
    const common = { sender: account.address.toLowerCase() as Hex, hashes: [] }
    for (const [nonce, raw] of (await Promise.all(raws)).entries())
      left.push({ ...common, pk: BigInt(nonce), nonce, raw })
    state.taken = new Error('the provider does not answer')
    await sender.adopt()
    assert.deepEqual(sent, [left[1]?.raw])
    for (const { pk } of left) assert.ok(sender.find(pk))
  })

  it('logs a transaction that the node did not take, and none that it has already', async () => {
    const { sender, member, lines, state } = senderOf()
    await using _sender = sender
    state.mines = true
    state.taken = new RpcError('rejected', 'already known', {})
    await sender.submit(member())
    assert.deepEqual(lines, [])
    state.taken = new RpcError('rejected', 'txpool is full', {})
    await sender.submit(member())
    assert.match(lines.join(), /the node refused it/)
  })

  it('rejects what waits when it ends', async () => {
    const { sender, member, sent } = senderOf()
    const first = sender.submit(member())
    first.catch(() => {})
    await until(() => sent.length === 1)
    const waiting = sender.submit(member())
    waiting.catch(() => {})
    await sender[Symbol.asyncDispose]()
    for (const one of await Promise.allSettled([first, waiting])) assert.equal(one.status, 'rejected')
    assert.equal(sent.length, 1)
  })

  it('rejects what is being stored when it ends, and leaves that and what it follows to the next process', async () => {
    const { sender, member, sent, assigned, released, state } = senderOf()
    const submitted = [sender.submit(member())]
    await until(() => sent.length === 1)
    const storing = Promise.withResolvers<void>()
    state.stored = storing.promise
    submitted.push(sender.submit(member()))
    const outcomes = Promise.allSettled(submitted)
    await until(() => assigned.length === 2)
    const ended = sender[Symbol.asyncDispose]()
    setImmediate(storing.resolve)
    await ended
    assert.deepEqual(released, [1n, 2n])
    for (const { status } of await outcomes) assert.equal(status, 'rejected')
  })

  it('takes nothing after its end', async () => {
    const { sender, member, assigned } = senderOf()
    await sender[Symbol.asyncDispose]()
    await assert.rejects(sender.submit(member()), /closing/)
    assert.deepEqual(assigned, [])
  })
})
