/** A pass of the reconciler beside a provider that contradicts the others (spec §4.8). */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { toHex } from 'viem'
import { createLog } from '../lib/log.ts'
import { formatPayload } from './ledger/table.ts'
import type { Receipt } from './facilitator/tracker.ts'
import { createReconciler } from './reconcile.ts'
import type { Payment } from './x402/payment.ts'

const hash = toHex(7, { size: 32 })
const block = { number: 7n, hash, age: 10 }
const slot = { pk: 3n, sender: `0x${'a'.repeat(40)}`, nonce: 1, raw: '0x', hashes: [hash] }
const receipt = {
  status: '0x1',
  gasUsed: '0x1',
  effectiveGasPrice: '0x1',
  blockNumber: '0x7',
  blockHash: hash,
  logs: [],
}

/** A reconciler beside a provider that contradicts the others, and what its passes do. Its clock is `ahead` by some seconds. */
function open(onLine: (line: string) => void = () => {}, ahead = 0n) {
  const did: string[] = []
  const note =
    <T>(name: string, answer: T) =>
    async () => {
      did.push(name)
      return answer
    }
  const reconciler = createReconciler({
    ledger: {
      adopt: async () => [],
      recentBlocks: async () => [block],
      settledIn: note('settledIn', []),
      rejected: note('rejected', []),
      prune: note('prune', 0),
    },
    slots: {
      minedIn: async () => [slot],
      orphaned: async (_block: unknown, unsure: readonly unknown[]) => void did.push(`orphaned but ${unsure.length}`),
      lostLately: note('lostLately', []),
    },
    facilitator: { adopt: async () => {} },
    settlement: { own: () => [] },
    chain: { isCanonical: async () => false, heads: { isClockRight: () => ahead === 0n } },
    rpc: async () => receipt,
    log: createLog(onLine),
    count: () => {},
    intervalMs: 60_000,
    paidDays: 3_650,
  } as unknown as Parameters<typeof createReconciler>[0])
  return { did, reconciler }
}

describe('a block that is no longer in the chain, of which a provider still has a receipt', () => {
  it('is looked through for its payments, and keeps neither lost settlements nor old rows waiting', async () => {
    const { did, reconciler } = open()
    await assert.rejects(reconciler.pass(), /receipt is in a block 7/)
    assert.deepEqual(did, ['orphaned but 1', 'settledIn', 'lostLately', 'rejected', 'prune'])
    await reconciler[Symbol.asyncDispose]()
  })
})

describe('old rows', () => {
  it('stay where the clock of this machine is ahead of the chain', async () => {
    const { did, reconciler } = open(undefined, 3_600n)
    await assert.rejects(reconciler.pass(), /receipt is in a block 7/)
    assert.deepEqual(did, ['orphaned but 1', 'settledIn', 'lostLately', 'rejected'])
    await reconciler[Symbol.asyncDispose]()
  })
})

describe('looks that are hours or minutes apart', () => {
  it('are as far apart when the clock of the machine is set back', async (t) => {
    let [wall, ticks] = [1_795_227_313_000, 0]
    t.mock.method(Date, 'now', () => wall)
    t.mock.method(performance, 'now', () => ticks)
    t.mock.timers.enable({ apis: ['setInterval'] })
    let ended = () => {}
    const { did, reconciler } = open(() => ended())
    const pass = async () => {
      did.length = 0
      const logged = new Promise<void>((resolve) => (ended = resolve)) // each pass fails at the block
      t.mock.timers.tick(60_000)
      await logged
      return did.filter((name) => name === 'prune' || name === 'rejected')
    }
    assert.deepEqual(await pass(), ['rejected', 'prune'])
    wall -= 86_400_000
    ticks += 60_000
    assert.deepEqual(await pass(), [])
    ticks += 300_000
    assert.deepEqual(await pass(), ['rejected'])
    ticks += 3_600_000
    assert.deepEqual(await pass(), ['rejected', 'prune'])
    await reconciler[Symbol.asyncDispose]()
  })
})

const account = toHex(8, { size: 20 })
const payment = {
  from: account,
  to: account,
  value: 10n,
  validAfter: 0n,
  validBefore: 1n,
  nonce: hash,
  signature: '0x12',
}
const row = { payer: account, nonce: hash, payload: formatPayload(payment as Payment), proof: '{}', fromBlock: 1n }
const key = { payer: account, nonce: hash }

type Status = { readonly kind: string }
type World = {
  /** The status of the payment on the chain, look by look. */
  statuses?: Status[]
  rows?: readonly object[]
  isRemovedAlready?: boolean
  isRemovedLately?: boolean
  outcome?: string
  paidLater?: object | undefined
  pruned?: number[]
  isCanonical?: boolean
  /** Seconds since the payment ended. */
  age?: number
  hasRemoved?: boolean
  /** The block in which the chain has the transaction, if any. It is a lost one, or one of the block. */
  receiptIn?: string
  lost?: boolean
}

/** A reconciler beside one block and one payment in it, with what its passes did. */
function openPayment(t: TestContext, world: World) {
  const did: unknown[] = []
  let ticks = 0
  t.mock.method(performance, 'now', () => ticks)
  t.mock.timers.enable({ apis: ['setInterval'] })
  const own = { ...block, age: world.age ?? block.age, hasRemoved: world.hasRemoved ?? false }
  const { statuses = [], rows = [row], outcome = 'proof', pruned = [] } = world
  const ledger = {
    adopt: async () => (world.outcome === undefined ? [] : rows),
    recentBlocks: async (seconds: number) => (did.push(`blocks of ${seconds} s`), [own]),
    settledIn: async () => rows,
    rejected: async () => ('paidLater' in world ? rows : []),
    removedLately: async () => (world.isRemovedLately === true ? rows : []),
    moved: async (...given: unknown[]) => did.push(['moved', ...given]),
    removed: async () => (did.push('removed'), world.isRemovedAlready !== true),
    prune: async () => (did.push('prune'), pruned.shift() ?? 0),
  }
  const isCanonical = async () => (did.push('look'), world.isCanonical ?? false)
  const reconciler = createReconciler({
    ledger,
    slots: {
      minedIn: async () => (world.receiptIn !== undefined && world.lost !== true ? [slot] : []),
      orphaned: async () => {},
      lostLately: async () => (did.push('lost'), world.lost === true ? [slot] : []),
      moved: async (_slot: unknown, found: Receipt) => did.push(`moved to ${found.block.hash}`),
      mined: async (_slot: unknown, found: Receipt) => did.push(`mined in ${found.block.hash}`),
    },
    facilitator: {
      adopt: async () => void did.push('adopt'),
      settle: async (_payment: unknown, settlement: unknown) => did.push(`settle ${String(settlement)}`),
    },
    settlement: {
      own: () => [],
      statusOf: async () => statuses.shift(),
      settle: async () => ({ kind: outcome }),
      findPaidLater: async () => world.paidLater,
    },
    chain: { isCanonical, heads: { isClockRight: () => true } },
    rpc: async (method: string) => {
      if (world.receiptIn === 'failing') throw new Error('no provider answers')
      return method === 'eth_getTransactionReceipt' && world.receiptIn
        ? { ...receipt, blockHash: world.receiptIn }
        : null
    },
    log: createLog((line) => {
      const { level, event } = JSON.parse(line) as Record<'level' | 'event', string>
      did.push(`${level}: ${event}`)
    }),
    count: (what: string) => did.push(what),
    intervalMs: 1_000,
    paidDays: 3_650,
  } as unknown as Parameters<typeof createReconciler>[0])
  return {
    did,
    async pass(): Promise<unknown[]> {
      did.length = 0
      await reconciler.pass()
      return did.filter((one) => !/^adopt$|^look$|^prune$|^blocks|^lost$/.test(String(one)))
    },
    /** Runs the pass of the timer when so many seconds have passed. Nothing in it waits. */
    async after(seconds: number): Promise<unknown[]> {
      did.length = 0
      own.age += seconds
      ticks += seconds * 1_000
      t.mock.timers.tick(1_000)
      await new Promise(setImmediate)
      return did
    },
  }
}

describe('a payment in a block that is no longer in the chain', () => {
  const [paid, unused] = [{ kind: 'paid', transaction: hash }, { kind: 'unused' }]
  const again = ['warn: a reorganisation removed a payment; it is submitted again', 'settle null']
  const lost = 'error: a reorganisation removed a payment'
  for (const [what, statuses, expected] of [
    ['is moved where it is in another one', [paid], [['moved', key, paid]]],
    ['is submitted again, and moved', [unused, paid], [...again, ['moved', key, paid]]],
    ['is no revenue where it cannot be submitted now', [unused, unused], [...again, 'removed', lost]],
    ['is no revenue once it has expired', [{ kind: 'expired' }], ['removed', `${lost} for good`]],
    ['is no revenue where its nonce has another use', [{ kind: 'spent' }], ['removed', `${lost} for good`]],
    ['stays as it is where the chain does not show it', [{ kind: 'unknown' }], []],
    ['stays as it is where another transaction may have paid it', [{ kind: 'earlier' }], []],
  ] as const)
    it(what, async (t) => assert.deepEqual(await openPayment(t, { statuses: [...statuses] }).pass(), expected))

  it('is looked at again when it was removed, in whichever block it is then', async (t) => {
    const opened = openPayment(t, { statuses: [paid], isRemovedLately: true, isCanonical: true })
    assert.deepEqual(await opened.pass(), [['moved', key, paid]])
  })

  it('is logged once', async (t) => {
    const opened = openPayment(t, { statuses: [{ kind: 'spent' }], isRemovedAlready: true })
    assert.deepEqual(await opened.pass(), ['removed'])
  })
})

describe('a transaction', () => {
  const elsewhere = toHex(9, { size: 32 })

  it('of a removed block moves to the one that has it', async (t) => {
    assert.deepEqual(await openPayment(t, { rows: [], receiptIn: elsewhere }).pass(), [`moved to ${elsewhere}`])
  })

  it('of a removed block moves nowhere without a receipt', async (t) => {
    assert.deepEqual(await openPayment(t, { rows: [], receiptIn: '' }).pass(), [])
  })

  it('that counts as lost, and that the chain has, is the one of its payments', async (t) => {
    const paid = { kind: 'paid' }
    const opened = openPayment(t, { statuses: [paid], lost: true, receiptIn: elsewhere, isCanonical: true })
    assert.deepEqual(await opened.pass(), [`mined in ${elsewhere}`, ['moved', key, paid]])
  })

  for (const [what, more, expected] of [
    ['is found where the chain has it', { receiptIn: elsewhere, isCanonical: true }, [`mined in ${elsewhere}`]],
    ['is none where its block is not in the chain', { receiptIn: elsewhere, isCanonical: false }, []],
    ['is none without a receipt', { isCanonical: true }, []],
  ] as const)
    it(`that counts as lost ${what}`, async (t) =>
      assert.deepEqual(await openPayment(t, { rows: [], lost: true, ...more }).pass(), expected))
})

describe('a removed payment of a block that is in the chain', () => {
  it('is looked at again', async (t) => {
    const paid = { kind: 'paid' }
    const opened = openPayment(t, { statuses: [paid], isCanonical: true, hasRemoved: true })
    assert.deepEqual(await opened.pass(), [['moved', key, paid]])
  })
})

describe('a payment that no process works on', () => {
  it('counts as reconciled where it is sold, and one that cannot be read keeps no other waiting', async (t) => {
    const rows = [{ ...row, proof: null }, row]
    const expected = ['error: a payment of the ledger cannot be read', 'reconciled']
    assert.deepEqual(await openPayment(t, { rows, outcome: 'proof', isCanonical: true }).pass(), expected)
  })

  it('does not count where it is still not sold', async (t) => {
    assert.deepEqual(await openPayment(t, { outcome: 'error', isCanonical: true }).pass(), [])
  })

  it('counts as reconciled where it was rejected, and is paid', async (t) => {
    assert.deepEqual(await openPayment(t, { paidLater: {}, isCanonical: true }).pass(), ['reconciled'])
  })

  it('does not count where it was rejected, and is not paid', async (t) => {
    assert.deepEqual(await openPayment(t, { paidLater: undefined, isCanonical: true }).pass(), [])
  })
})

describe('the passes of a reconciler', () => {
  it('look at a block after 8, 30 and 110 seconds, and back to the last pass', async (t) => {
    const opened = openPayment(t, { isCanonical: true, age: 0 })
    const rest = ['lost', 'prune']
    assert.deepEqual(await opened.after(7), ['adopt', 'blocks of 727 s', ...rest])
    assert.deepEqual(await opened.after(1), ['adopt', 'blocks of 121 s', 'look'])
    assert.deepEqual(await opened.after(21), ['adopt', 'blocks of 141 s'])
    assert.deepEqual(await opened.after(1), ['adopt', 'blocks of 121 s', 'look'])
    assert.deepEqual(await opened.after(80), ['adopt', 'blocks of 200 s', 'look'])
    assert.deepEqual(await opened.after(7_090), ['adopt', 'blocks of 7200 s', 'lost', 'prune'])
  })

  it('look at ended payments every five minutes, and prune every hour, or a minute after a full pruning', async (t) => {
    const opened = openPayment(t, { isCanonical: true, age: 200, pruned: [10_000, 9_999] })
    const did = async (seconds: number) =>
      (await opened.after(seconds)).filter((one) => one === 'lost' || one === 'prune')
    assert.deepEqual(await did(0), ['lost', 'prune'])
    assert.deepEqual(await did(59), [])
    assert.deepEqual(await did(1), ['prune'])
    assert.deepEqual(await did(239), [])
    assert.deepEqual(await did(1), ['lost'])
    assert.deepEqual(await did(3_359), ['lost'])
    assert.deepEqual(await did(1), ['prune'])
  })

  it('look at every block and every ended payment where they are asked to, and only then', async (t) => {
    const opened = openPayment(t, { isCanonical: true })
    const did = async (work: Promise<unknown>) => (
      await work,
      opened.did.filter((one) => one === 'look' || one === 'lost')
    )
    for (let pass = 0; pass < 2; pass += 1) assert.deepEqual(await did(opened.pass()), ['look', 'lost'])
    assert.deepEqual(await did(opened.after(0)), [])
  })

  it('fail where a lost transaction cannot be looked up, after they have pruned', async (t) => {
    const opened = openPayment(t, { isCanonical: true, lost: true, receiptIn: 'failing' })
    await assert.rejects(opened.pass(), /no provider answers/)
    assert.ok(opened.did.includes('prune'))
  })
})
