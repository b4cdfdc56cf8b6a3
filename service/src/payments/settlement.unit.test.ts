/** The outcomes of a settlement by chain, facilitator and ledger (spec §4.8): the charge and the proof. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { toHex } from 'viem'
import { createLog } from '../lib/log.ts'
import type { SettlementReport } from './facilitator/facilitator.ts'
import { formatPayload, type PaymentRow } from './ledger/table.ts'
import type { AuthorizationStatus } from './on-chain.ts'
import { createSettlement, type PaymentComponents, type Settling } from './settlement.ts'
import type { Payment } from './x402/payment.ts'

const [account, hash, other] = [toHex(7, { size: 20 }), toHex(8, { size: 32 }), toHex(9, { size: 32 })]
const block = { number: 5n, hash }
const key = { payer: account, nonce: hash }
const payment: Payment = {
  from: account,
  to: account,
  value: 10n,
  validAfter: 0n,
  validBefore: 2n ** 40n,
  nonce: hash,
  signature: '0x12',
}
const row: Settling = { key, payment, proof: '{"state":"OWNED"}', fromBlock: 6n, transaction: null, settlement: null }
const answer =
  '{"state":"OWNED","payment":{"success":true,"transaction":"' +
  `${hash}","payer":"0x0000000000000000000000000000000000000007","network":"base-sepolia","amount":"10","asset":"0xa"}}`
const came = 1_000n

const paid = { kind: 'paid', transaction: hash, block } as const
const earlier = { ...paid, kind: 'earlier' } as const
const [unsent, perhaps, reverted] = [{ sent: 'no' }, { sent: 'perhaps' }, { sent: 'reverted' }] as const

type World = {
  status?: AuthorizationStatus
  /** The chain's answer from the second look on. */
  later?: AuthorizationStatus
  report?: SettlementReport
  /** Transactions that were sent for the payment. */
  sent?: readonly Hex[]
  /** This service signed the one that the chain shows. */
  isSigned?: boolean
  /** Time of the block that has the transfer. */
  minedAt?: bigint
  reason?: string | Error | undefined
  fate?: 'dropped' | 'sent' | undefined
  stored?: PaymentRow | Error | undefined
  /** Another process has written first that the payment is done. */
  isOld?: boolean
  /** Writes that a paid payment is done, without an answer of the database. */
  lost?: number
}

/** A settlement in such a world, with what it wrote and counted. */
function open(world: World) {
  const did: unknown[] = []
  const calls = { settle: 0, look: 0 }
  const looked = Promise.withResolvers<void>()
  let { lost = 0, status = { kind: 'unused' } } = world
  const ledger = {
    setTransaction: async () => void did.push('transaction'),
    sentFor: async () => ({ transactions: world.sent ?? [], isSigned: world.isSigned ?? false, since: came }),
    done: async (_key: unknown, { answer }: { answer: string }) => {
      if ((lost -= 1) >= 0) throw new Error('connection terminated')
      did.push('done')
      return { answer, isNew: world.isOld !== true }
    },
    reject: async (_key: unknown, reason: string) => (did.push(`reject ${reason}`), 3n),
    drop: async () => (did.push('drop'), world.fate),
    setUndelivered: async (_key: unknown, is: boolean) => (did.push(is ? 'undelivered' : 'delivered'), null),
    find: async () => {
      if (world.stored instanceof Error) throw world.stored
      return world.stored
    },
    release: async () => void did.push('release'),
  }
  const chain = {
    transferStatus: async () => {
      calls.look += 1
      looked.resolve()
      const seen = status
      status = world.later ?? seen
      return seen
    },
    timeOf: async () => world.minedAt ?? came,
    rejectionReason: async () => {
      if (world.reason instanceof Error) throw world.reason
      return world.reason
    },
  }
  const facilitator = { settle: async () => ((calls.settle += 1), world.report ?? perhaps) }
  const count = (what: string, amount = 1n) => did.push([what, amount])
  const terms = { asset: '0xa' }
  const parts = { ledger, chain, facilitator, terms, count, log: createLog(() => {}) } as unknown as PaymentComponents
  const settlement = createSettlement(parts)
  const close = async () => {
    settlement.stop()
    await settlement.idle()
  }
  return { settlement, did, calls, looked: looked.promise, [Symbol.asyncDispose]: close }
}

const sold = ['done', ['settled', 1n], ['units', 10n]]
const pending = [['pending', 1n], 'undelivered']
const poor = 'insufficient_funds'
const rejected = (reason: string) => [`reject ${reason}`, ['lostGas', 3n]]
const used = rejected('nonce_already_used')
const [blocked, unfunded] = [
  { ...unsent, rejection: 'payer_blocked' },
  { ...unsent, rejection: 'payment_unavailable' },
] as const

describe('a payment', () => {
  const cases: readonly (readonly [what: string, World, expected: unknown[], more?: Partial<Settling>])[] = [
    ['that the chain shows paid is sold', { status: paid, minedAt: 0n }, sold],
    ['that another process has found paid is counted there', { status: paid, isOld: true }, ['done']],
    ['that was mined is sold as soon as the chain shows it', { report: { sent: 'mined' }, later: paid }, sold],
    [
      'whose transaction the facilitator names has that',
      { report: { ...perhaps, transaction: other } },
      ['transaction', ...pending],
    ],
    ['that the facilitator has seen paid is sold', { report: { sent: 'mined', paid } }, sold],
    [
      'that its own transaction has paid is sold, whatever the clock says',
      { status: earlier, sent: [hash], isSigned: true, minedAt: 0n },
      sold,
    ],
    ['that a named transaction has just paid is sold', { status: earlier, sent: [hash], minedAt: came - 60n }, sold],
    ['that a named one has paid long before is not', { status: earlier, sent: [hash], minedAt: came - 61n }, used],
    ['that another transaction has paid is not', { status: earlier, sent: [other] }, used],
    [
      'that a transaction of ours has paid, which another one replaced, is sold',
      { status: earlier, sent: [other], isSigned: true, minedAt: 0n },
      sold,
    ],
    ['that was paid before and never sent is not', { status: earlier, report: unsent }, used],
    ['that was paid before and perhaps sent is undecided', { status: earlier }, pending],
    ['whose nonce has another use ends', { status: { kind: 'spent' } }, used],
    ['that came too late ends', { status: { kind: 'expired' } }, rejected('authorization_expired')],
    ['whose logs are not there is undecided', { status: { kind: 'unknown' }, report: unsent }, pending],
    ['that may have been sent is undecided', { reason: poor, fate: 'dropped' }, pending],
    ['that moved nothing ends for the reason of the chain', { report: reverted, reason: poor }, rejected(poor)],
    [
      'that moved nothing ends, also without a reason',
      { report: reverted, reason: new Error('gone') },
      rejected('payment_rejected'),
    ],
    [
      'that moved nothing and whose nonce is used is undecided',
      { report: reverted, reason: 'nonce_already_used' },
      pending,
    ],
    ['that was refused is forgotten', { report: unsent, reason: poor, fate: 'dropped' }, ['drop']],
    [
      'that was sent and is refused stays',
      { report: unsent, reason: poor, fate: 'sent' },
      ['drop', ...rejected(poor)],
      { transaction: other, settlement: 3n },
    ],
    [
      'that was sent and is blocked stays, for a lasting reason',
      { report: blocked, fate: 'sent' },
      ['drop', ...rejected('payment_rejected')],
    ],
    ['that was sent and finds no gas is undecided', { report: unfunded, fate: 'sent' }, ['drop', ...pending]],
    ['that another process holds by now is undecided', { report: unsent, reason: poor }, ['drop', ...pending]],
    ['that the token would take is undecided', { report: unsent }, pending],
    [
      'that was not sent and whose nonce is used is undecided',
      { report: unsent, reason: 'nonce_already_used' },
      pending,
    ],
    [
      'that an older version may have sent is undecided',
      { report: unsent, reason: poor, fate: 'dropped' },
      pending,
      { transaction: other },
    ],
  ]
  for (const [what, world, expected, more] of cases)
    it(what, async () => {
      await using opened = open(world)
      const outcome = await opened.settlement.settle({ ...row, ...more })
      assert.deepEqual(opened.did, expected)
      assert.equal(outcome.kind === 'proof' ? outcome.body : outcome.kind, expected.includes('done') ? answer : 'error')
    })

  it('that is blocked says for how long', async () => {
    await using opened = open({ report: { ...blocked, retryAfter: 7 }, fate: 'dropped' })
    const outcome = await opened.settlement.settle(row)
    assert.deepEqual(outcome, { kind: 'error', error: 'payer_blocked', retryAfter: 7 })
  })

  it('into a channel is no sale', async () => {
    await using opened = open({ status: paid })
    await opened.settlement.settle({ ...row, payment: { ...payment, deposit: {} as Payment['deposit'] } })
    assert.deepEqual(opened.did, ['done', ['deposits', 1n]])
  })

  for (const [fault, isOld] of [
    ['fails', false],
    ['loses its answer', true],
  ] as const)
    it(`that is paid gets its proof although the ledger ${fault}, which has it later and counts it once`, async () => {
      await using opened = open({ status: paid, lost: 2, isOld })
      const outcome = await opened.settlement.settle(row)
      assert.ok(outcome.kind === 'proof' && outcome.body === answer)
      assert.deepEqual(opened.settlement.own(), [key])
      await outcome.recorded
      assert.deepEqual([opened.did, opened.settlement.own()], [sold, []])
    })
})

const found: PaymentRow = {
  ...key,
  state: 'rejected',
  requestHash: '',
  payload: formatPayload(payment),
  proof: row.proof,
  fromBlock: 6n,
  transaction: null,
  settlement: null,
  reason: 'insufficient_funds',
  answer: null,
  channel: null,
  undelivered: false,
  isRecent: true,
}

/** It is tried again when its buyer comes back. By itself, it is tried a minute later. */
const late: Settling = { ...row, payment: { ...payment, validBefore: 1n } }

describe('an undecided payment whose row has changed meanwhile', () => {
  for (const [what, stored, expected] of [
    ['paid: gets the stored proof', { ...found, state: 'done', answer: 'stored', transaction: hash }, 'stored'],
    ['rejected: gets the reason', found, 'insufficient_funds'],
    ['deleted: is looked for again', undefined, 'settlement_pending'],
    ['still settling: is tried again', { ...found, state: 'settling', reason: null }, answer],
  ] as const)
    it(what, async () => {
      await using opened = open({ stored, later: paid })
      await opened.settlement.settle(late)
      const outcome = await opened.settlement.settle(late)
      assert.equal(outcome.kind === 'proof' ? outcome.body : outcome.error, expected)
      assert.equal(opened.settlement.isRunning(key), false)
    })
})

describe('an undecided payment', () => {
  it('is not sent again while the ledger does not answer', async () => {
    await using opened = open({ stored: new Error('connection terminated') })
    await opened.settlement.settle(late)
    await opened.settlement.settle(late)
    assert.equal(opened.calls.settle, 1)
  })

  it('is left to the next process when this one ends, also while it looks for a transfer that was mined', async () => {
    const opened = open({ report: { sent: 'mined' }, stored: { ...found, state: 'settling', reason: null } })
    const settling = opened.settlement.settle(row)
    await opened.looked
    await opened[Symbol.asyncDispose]()
    assert.equal((await settling).kind, 'error')
    assert.ok(opened.did.includes('release'))
    assert.deepEqual(opened.calls, { settle: 1, look: 1 })
  })
})

describe('a payment of another process', () => {
  it('is sold where the chain shows it paid, and nothing is sent for it', async () => {
    await using opened = open({ later: paid })
    assert.equal(await opened.settlement.poll(row), undefined)
    assert.equal((await opened.settlement.poll(row))?.kind, 'proof')
    assert.deepEqual(opened.did, sold)
  })
})

describe('a rejected payment', () => {
  const later = async (world: World, more: Partial<PaymentRow> = {}) => {
    await using opened = open(world)
    const outcome = await opened.settlement.findPaidLater({ ...found, ...more })
    return [outcome?.body, ...opened.did]
  }

  it('that was executed all the same has its proof, which the buyer does not have yet', async () => {
    assert.deepEqual(await later({ status: paid }), [answer, ...sold, 'undelivered'])
    for (const kind of ['unused', 'spent', 'expired'] as const)
      assert.deepEqual(await later({ status: { kind } }), [undefined])
    await assert.rejects(later({ status: { kind: 'unknown' } }), /settlement_pending/)
  })

  it('that had expired, or whose nonce was used, has one only where it was sent within the hour', async () => {
    for (const reason of ['authorization_expired', 'nonce_already_used']) {
      assert.deepEqual(await later({ status: paid }, { reason }), [undefined])
      assert.deepEqual(await later({ status: paid }, { reason, transaction: hash, isRecent: false }), [undefined])
      assert.equal((await later({ status: paid }, { reason, transaction: hash }))[0], answer)
    }
  })

  it('has none where it is settling, or no proof was made', async () => {
    assert.deepEqual(await later({ status: paid }, { state: 'settling' }), [undefined])
    assert.deepEqual(await later({ status: paid }, { proof: null }), [undefined])
  })
})
