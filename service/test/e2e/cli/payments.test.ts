/** `touchstone payments …`: what the gateway sold, listed, shown, summed and exported (spec §4.8). */
import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { createBook } from '../../../src/payments/book.ts'
import { assertionsOf, commandsOf } from '../../support/processes/cli.ts'
import { startWorld } from '../../support/world.ts'
import { useOpened } from '../../support/opened.ts'

const [alice, bob] = [`0x${'a1'.repeat(20)}`, `0x${'b0'.repeat(20)}`]
const hash = (n: number) => `0x${n.toString(16).padStart(64, '0')}`
/** Sales of the last days of 2025: hour by hour, every eighth one rejected. */
const sales = 2_400

describe('touchstone payments', () => {
  const world = useOpened(startWorld)
  const run = commandsOf(world)
  const { ok, refused } = assertionsOf(run)
  before(async () => {
    const { database } = world.components
    // Two payments in each transaction, and one transaction without any. A transaction costs 60,000 gas at 1 gwei and an L1 data fee of
    // 40,000 gwei.
    await database.query(
      `insert into settlement (pk, chain_id, sender, nonce, state, holder, raw, hashes, gas_used, gas_price, l1_fee, block_number, mined_at)
       overriding system value select n + 1000, 84532, decode(repeat('01', 20), 'hex'), n, 'mined', 0, ''::bytea, '{}', 60000, 1000000000, 40000000000000, 1,
         timestamptz '2025-12-31 23:30:00Z' - make_interval(hours => (2 * n)::int) from generate_series(0, $1::int / 2) n`,
      [sales],
    )
    await database.query(
      `insert into payment (chain_id, asset, payer, nonce, request_hash, state, payload, valid_before, amount, proof, from_block, token_id,
         tx_hash, answer, settlement, settled_at, reason)
       select 84532, decode('036cbd53842c5426634e7929541ec2318f3dcf7e', 'hex'), decode(repeat(case when n % 3 = 0 then 'b0' else 'a1' end, 20), 'hex'),
         decode(lpad(to_hex(n), 64, '0'), 'hex'), decode(repeat('00', 32), 'hex'), case when n % 8 = 0 then 'dead' else 'done' end,
         '{}', 0, 10000, 'secret proof', 1, 7 + n % 2, decode(lpad(to_hex(n / 2), 64, '0'), 'hex'), 'answer', 1000 + n / 2,
         timestamptz '2025-12-31 23:30:00Z' - make_interval(hours => n), case when n % 8 = 0 then 'payment_rejected' end
       from generate_series(0, $1::int - 1) n`,
      [sales],
    )
    await database.query(
      `insert into payment (chain_id, asset, payer, nonce, request_hash, state, payload, valid_before, amount, proof, from_block, created_at)
       values (84532, decode('036cbd53842c5426634e7929541ec2318f3dcf7e', 'hex'), decode(repeat('a1', 20), 'hex'), decode(repeat('ff', 32), 'hex'),
         decode(repeat('00', 32), 'hex'), 'settling', '{}', 0, 10000, 'secret proof', 1, timestamptz '2025-01-01Z')`,
    )
  })

  type Listed = {
    time: string
    outcome: string
    payer: string
    nonce: string
    amount_usdc: string
    gas_wei: string | null
  }
  const listed = async (...argv: string[]) => JSON.parse(await ok('payments list --json', ...argv)) as Listed[]

  it('lists pending payments, then the newest, in columns and without proofs', async () => {
    const lines = (await ok('payments list --limit 3')).split('\n')
    assert.match(lines[0] ?? '', /^time +outcome +payer +nonce +asset +USDC +gas \(ETH\) +transaction or reason$/)
    assert.match(lines[1] ?? '', new RegExp(`^2025-01-01T00:00:00Z +pending +${alice} +0xf{64} +0\\.010000$`))
    assert.match(
      lines[2] ?? '',
      new RegExp(`^2025-12-31T23:30:00Z +rejected +${bob} +${hash(0)} +7 +0\\.010000 +0\\.000050000 +${hash(0)}$`),
    )
    assert.equal(lines.length, 4)
    assert.ok(!lines.join('').includes('secret'))
    assert.equal(lines[2]?.indexOf('0.000050000'), (lines[0]?.indexOf('gas (ETH)') ?? 0) - 2, 'aligned to the right')
  })

  it('lists by outcome, payer and time', async () => {
    const rejected = await listed('--outcome', 'rejected', '--limit', '5')
    assert.deepEqual(
      rejected.map(({ nonce }) => nonce),
      [0, 8, 16, 24, 32].map(hash),
    )
    const ofBob = await listed('--payer', bob, '--since', '2025-12-31', '--until', '2025-12-31T12:00:00Z')
    assert.deepEqual(
      ofBob.map(({ nonce }) => nonce),
      [12, 15, 18, 21].map(hash),
    )
    assert.deepEqual(await listed('--outcome', 'settled', '--since', '2026-01-01'), [])
    for (const name of ['list', 'report', 'export'])
      for (const until of ['2025-12-30', '2025-12-31'])
        assert.match(
          await refused(`payments ${name} --since 2025-12-31 --until`, until),
          /^--until is the day, or moment, before which to stop: give one after --since\.$/,
        )
  })

  it('shows one payment by payer and nonce, or those of a transaction', async () => {
    const shown = await ok(`payments show ${bob} ${hash(3)}`)
    assert.match(shown, /^time +2025-12-31T20:30:00\.000000Z\noutcome +settled\n/)
    assert.match(shown, /^asset +8\nUSDC +0\.010000$/m)
    assert.match(shown, /^gas +0\.000050000 ETH$/m)
    const both = JSON.parse(await ok(`payments show ${hash(4)} --json`)) as Listed[]
    assert.deepEqual(
      both.map(({ nonce }) => nonce),
      [8, 9].map(hash),
    )
    assert.match(await refused(`payments show ${alice} ${hash(3)}`), /^There is no such payment/)
    assert.match(await refused('payments show 0x12'), /A hash is 0x and 64 hex digits/)
    assert.match(await refused(`payments show ${alice}`), /^Give a payer with a nonce/)
  })

  it('sums USDC and gas by day, with the gas of transactions without a payment', async () => {
    const lines = (await ok('payments report --since 2025-12-30')).split('\n')
    assert.match(lines[0] ?? '', /^day +payments +USDC +gas \(ETH\)$/)
    assert.match(lines[1] ?? '', /^2025-12-30 +24 +0\.210000 +0\.001200000$/)
    assert.match(lines[2] ?? '', /^2025-12-31 +24 +0\.210000 +0\.001200000$/)
    assert.match(lines[3] ?? '', /^total +48 +0\.420000 +0\.002400000$/)
    type Sum = { outcome: string; payments: number; usdc: string; gas_wei: string }
    const sums = JSON.parse(await ok('payments report --by outcome --format json')) as Sum[]
    assert.deepEqual(sums, [
      { outcome: 'settled', payments: 2_100, usdc: '21.000000', gas_wei: String(2_100n * 50_000n * 10n ** 9n) },
      { outcome: 'rejected', payments: 300, usdc: '0.000000', gas_wei: String(300n * 50_000n * 10n ** 9n) },
      { outcome: '–', payments: 0, usdc: '0.000000', gas_wei: String(100_000n * 10n ** 9n) },
    ])
    const byPayer = await ok('payments report --by payer,asset --format csv --since 2025-12-31')
    assert.equal(byPayer.split('\n')[0], 'payer,asset,payments,usdc,gas_wei')
    assert.equal(byPayer.split('\n').length, 5)
    assert.match(await refused('payments report --by colour'), /day, outcome, payer, asset/)
    assert.match(await refused(`payments report --by ${'day,'.repeat(8)}colour`), /day, outcome, payer, asset/)
  })

  it('sums the same by hours, as it does on days with many payments', async () => {
    const { database } = world.components
    const asset = '0x036cbd53842c5426634e7929541ec2318f3dcf7e'
    const [since, until] = [Date.parse('2025-12-29T05:10:00Z'), Date.parse('2025-12-31T20:40:00Z')]
    const sumsBy = (mostRowsOfDay: number) =>
      createBook(database, { chainId: 84532, asset, mostRowsOfDay }).report({ since, until }, [
        'day',
        'payer',
        'outcome',
      ])
    const byDays = await sumsBy(1_000)
    assert.equal(byDays?.length, 11)
    assert.deepEqual(new Set(await sumsBy(10)), new Set(byDays))
  })

  it('exports every payment that ended once, oldest first, in CSV and JSON', async () => {
    const lines = (await ok('payments export')).split('\n')
    assert.equal(
      lines[0],
      'time,outcome,payer,nonce,asset_id,amount_usdc,transaction,block,reason,gas_wei,kind,channel',
    )
    const nonces = lines.slice(1).map((line) => line.split(',')[3])
    assert.deepEqual(
      nonces,
      Array.from({ length: sales }, (_, n) => hash(sales - 1 - n)),
    )
    const rows = JSON.parse(await ok('payments export --format json --outcome settled')) as Listed[]
    assert.deepEqual([rows.length, rows[0]?.nonce, rows[0]?.gas_wei], [2_100, hash(2_399), '50000000000000'])
    assert.deepEqual(JSON.parse(await ok('payments export --format json --since 2026-01-01')), [])
  })

  it('waits for its reader page by page', async () => {
    let [waiting, printed] = [0, 0]
    const counts: number[] = []
    const drained = async () => {
      waiting += 1
      counts.push(printed)
    }
    const own = { out: () => void (printed += 1), err: assert.fail, drained }
    const { exit } = await commandsOf(world, {}, own)('payments export')
    assert.deepEqual([exit, waiting, counts], [0, 3, [1_001, 2_001, 2_401]])
  })

  it('says when nothing is there, and exports neither what has not ended nor a part', async () => {
    assert.equal(await ok('payments list --since 2030-01-01'), 'There is no such payment.')
    assert.match(await refused('payments export --outcome pending'), /^Pending payments have not ended/)
    const { exit, err } = await commandsOf(world, {}, { signal: AbortSignal.abort() })('payments export')
    assert.match(err, /The export was interrupted before it was complete\. Repeat the command\.$/)
    assert.equal(exit, 1)
  })

  it('sums what channels hold, what is not claimed, and what no deposit covers', async () => {
    const bytes = (text: string, count: number) => `decode(repeat('${text}', ${count}), 'hex')`
    for (const [id, balance, claimed, charged] of [
      ['01', 900_000, 100_000, 250_000],
      ['02', 50_000, 0, 60_000],
    ] as const)
      await world.components.database.query(
        `insert into channel (id, chain_id, asset, payer, payer_authorizer, receiver, receiver_authorizer, withdraw_delay, salt,
           balance, claimed, withdrawal, read_block, charged, unclaimed_since)
         select ${bytes(id, 32)}, 84532, decode('036cbd53842c5426634e7929541ec2318f3dcf7e', 'hex'), a, a, a, a, 86400,
           ${bytes('00', 32)}, ${balance}, ${claimed}, 0, 1, ${charged}, now() - interval '90 seconds' from (select ${bytes('a1', 20)} a) b`,
      )
    const { oldest_unclaimed_seconds: seconds, ...figures } = JSON.parse(await ok('payments channels --json')) as {
      oldest_unclaimed_seconds: number
    }
    const money = { deposits_usdc: '0.850000', unclaimed_usdc: '0.200000', uncovered_usdc: '0.010000' }
    assert.deepEqual(figures, { channels: 2, ...money })
    assert.ok(seconds >= 90)
    assert.match(
      await ok('payments channels'),
      /^channels +2\ndeposits_usdc +0\.850000\n[^]*\noldest_unclaimed_seconds +\d+$/,
    )
  })
})
