import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { VerdictError } from '../lib/errors.ts'
import { askEndpoints, endpointHost } from './endpoints.ts'
import { compare, type Outcome, type Report, reportOf, undecided } from './report.ts'

const reports: Record<Outcome, Report> = {
  agrees: reportOf([compare('state', 1, 1)]),
  differs: reportOf([compare('state', 1, 2), compare('flagged', 1, 2)]),
  undecided: reportOf([compare('state', 1, 1), undecided('contract', 1, 'not pinned')]),
}
const fault = new VerdictError('RPC_UNAVAILABLE', 'no')

type Answer = Outcome | 'fault' | 'other fault'

/** Asks one endpoint for each answer. */
async function ask(answers: readonly Answer[], agree?: number): Promise<Report> {
  const asked: string[] = []
  const rpcUrl = answers.map((_, index) => `https://rpc${index}.example/key`)
  const report = askEndpoints({ rpcUrl, agree }, async (url) => {
    asked.push(url)
    const answer = answers[rpcUrl.indexOf(url)]
    if (answer === undefined || answer === 'other fault') throw new Error('secret')
    if (answer === 'fault') throw fault
    return reports[answer]
  })
  await report.catch(() => {})
  assert.deepEqual(asked, rpcUrl)
  return report
}

describe('askEndpoints', () => {
  it('returns the report of a single endpoint as it is', async () => {
    for (const outcome of ['agrees', 'differs', 'undecided'] as const) {
      assert.equal(await ask([outcome]), reports[outcome])
      assert.equal(
        await askEndpoints({ rpcUrl: 'https://rpc.example' }, async () => reports[outcome]),
        reports[outcome],
      )
    }
    await assert.rejects(ask(['fault']), fault)
  })

  const outcomes: [answers: Answer[], agree: number | undefined, outcome: Outcome][] = [
    [['agrees', 'agrees'], undefined, 'agrees'],
    [['agrees', 'differs'], undefined, 'differs'],
    [['agrees', 'differs'], 1, 'agrees'],
    [['differs', 'differs'], 1, 'differs'],
    [['differs', 'fault'], 1, 'undecided'],
    [['differs', 'fault'], undefined, 'differs'],
    [['agrees', 'fault'], undefined, 'undecided'],
    [['agrees', 'fault'], 1, 'agrees'],
    [['undecided', 'undecided'], undefined, 'undecided'],
    [['undecided', 'agrees'], 1, 'agrees'],
    [['undecided', 'differs'], 1, 'undecided'],
    [['agrees', 'agrees', 'differs'], 2, 'agrees'],
    [['agrees', 'differs', 'differs'], 2, 'differs'],
    [['agrees', 'differs', 'undecided'], 2, 'undecided'],
    [['agrees', 'fault', 'other fault'], 3, 'undecided'],
  ]
  for (const [answers, agree, outcome] of outcomes)
    it(`${outcome === 'undecided' ? 'is undecided' : outcome} for ${answers.join(', ')}, of which ${agree ?? 'all'} must agree`, async () => {
      const report = await ask(answers, agree)
      assert.deepEqual([report.outcome, report.ok], [outcome, outcome === 'agrees'])
    })

  it('shows the rows of a report of that outcome, and one for each endpoint', async () => {
    const report = await ask(['fault', 'differs', 'agrees', 'other fault', 'undecided'], 1)
    const claimed = 'this verdict'
    assert.deepEqual(report.checks, [
      ...reports.agrees.checks,
      { field: 'endpoint 1 of 5', ok: false, undecided: true, claimed, found: 'RPC_UNAVAILABLE' },
      { field: 'endpoint 2 of 5', ok: false, claimed, found: 'differs: state, flagged' },
      { field: 'endpoint 3 of 5', ok: true, claimed, found: 'agrees' },
      { field: 'endpoint 4 of 5', ok: false, undecided: true, claimed, found: 'no answer' },
      { field: 'endpoint 5 of 5', ok: false, undecided: true, claimed, found: 'undecided: contract' },
    ])
    const differing = await ask(['agrees', 'differs'])
    assert.deepEqual(differing.checks.slice(0, 2), reports.differs.checks)
    // No report has the outcome, which follows from the fault of the other: the first one is shown.
    assert.deepEqual((await ask(['agrees', 'fault'])).checks.slice(0, 1), reports.agrees.checks)
  })

  it('throws the first fault where none answered', async () => {
    await assert.rejects(ask(['fault', 'other fault']), fault)
    await assert.rejects(ask(['other fault', 'fault'], 1), /secret/)
  })

  it('rejects a number that does not fit, before it asks', async () => {
    const check = async () => assert.fail('was asked')
    const two = ['https://a.example', 'https://b.example']
    for (const agree of [0, -1, 3, 1.5, Number.NaN, Infinity])
      await assert.rejects(askEndpoints({ rpcUrl: two, agree }, check), {
        name: 'TypeError',
        message: 'Give at least one RPC URL, and a number that must agree from 1 to 2.',
      })
    for (const agree of [undefined, 0, 1])
      await assert.rejects(askEndpoints({ rpcUrl: [], agree }, check), { name: 'TypeError' })
  })

  it('rejects one provider given twice, and names both places', async () => {
    const rpcUrl = ['https://a.example', 'https://b.example/x', 'https://c.example', 'http://B.example./y']
    await assert.rejects(
      askEndpoints({ rpcUrl, agree: 1 }, async () => assert.fail('was asked')),
      { name: 'TypeError', message: /^RPC URLs 2 and 4 name the same provider/ },
    )
  })
})

describe('endpointHost', () => {
  const hosts: [url: string, host: string][] = [
    ['https://rpc.example/v2/key?x=1', 'rpc.example:'],
    ['http://RPC.example.:80/', 'rpc.example:'],
    ['https://rpc.example:80', 'rpc.example:'],
    ['http://rpc.example:443', 'rpc.example:'],
    ['https://rpc.example:8443', 'rpc.example:8443'],
    ['https://rpc.example:4430', 'rpc.example:4430'],
    ['https://rpc.example:1080', 'rpc.example:1080'],
    ['http://127.0.0.1:8545', 'localhost:8545'],
    ['http://127.255.1.20:8545', 'localhost:8545'],
    ['http://127.1:8545', 'localhost:8545'],
    ['http://0.0.0.0:8545', 'localhost:8545'],
    ['http://[::1]:8545', 'localhost:8545'],
    ['http://[::]:8545', 'localhost:8545'],
    ['http://[::ffff:127.0.0.1]:8545', 'localhost:8545'],
    ['http://[::ffff:0.0.0.0]:8545', 'localhost:8545'],
    ['https://[::ffff:203.0.113.7]/v2/key', '203.0.113.7:'],
    ['https://[::ffff:10.0.1.255]', '10.0.1.255:'],
    ['https://[1::ffff:203.0.113.7]', '[1::ffff:cb00:7107]:'],
    ['http://[::12]:8545', '[::12]:8545'],
    ['http://[1::1]:8545', '[1::1]:8545'],
    ['http://10.0.0.0:8545', '10.0.0.0:8545'],
    ['http://10.127.0.1:8545', '10.127.0.1:8545'],
    ['http://x127.0.0.1.example', 'x127.0.0.1.example:'],
    ['http://127.0.0.1.example', '127.0.0.1.example:'],
    ['http://a0.0.0.0.example', 'a0.0.0.0.example:'],
    ['no url', 'no url'],
  ]
  for (const [url, host] of hosts) it(`is ${host} of ${url}`, () => assert.equal(endpointHost(url), host))
})
