/** The block of a verdict as an endpoint gives it: canonical, old, unknown, refused or unusable. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { against, rpcUrl, time } from '../../test/_checkers.ts'
import {
  blockHash,
  contract,
  honest,
  latest,
  recorded,
  recordedChain,
  type RpcAnswer,
  type RpcAnswers,
} from '../../test/_recorded.ts'
import { failed, rowsOf } from '../../test/_report.ts'
import { recheck } from './recheck.ts'

const { header, verdict } = recorded
describe('the block of a verdict', () => {
  it('ends before the record where the block is not the one of the verdict', async () => {
    const other = { ...header, gasUsed: '0x1' }
    const cases: [answer: RpcAnswer, found: string | RegExp][] = [
      [{ result: { number: '0x9', hash: latest['hash'] } }, String(latest['hash'])],
      [{ result: { number: '0x9' } }, 'a block without a hash'],
      [{ result: { number: '0x9', hash: 7 } }, 'a block without a hash'],
      [{ result: other }, /^0x[0-9a-f]{64}$/],
    ]
    for (const name of ['recheck', 'prove'] as const)
      for (const [answer, found] of cases) {
        const report = await against(name, { eth_getBlockByHash: () => answer })
        assert.equal(report.outcome, 'differs')
        const last = report.checks.at(-1)
        assert.deepEqual([last?.field, last?.ok, last?.claimed], ['block', false, blockHash])
        assert.match(last?.found ?? '', typeof found === 'string' ? new RegExp(`^${found}$`) : found)
      }
  })

  it('is undecided where the RPC may only be behind, and differs where the RPC has another one of its number', async () => {
    const unknown: RpcAnswer[] = [
      { result: null },
      { error: { code: -32000, message: 'header not found' } },
      { error: { code: -32000, message: 'Unknown block' } },
    ]
    const behind = 'the RPC knows no such block: it may be behind, or the block never was'
    for (const name of ['recheck', 'prove'] as const)
      for (const answer of unknown) {
        const at = (block: unknown, of: unknown = verdict) =>
          against(
            name,
            {
              eth_getBlockByHash: () => answer,
              eth_getBlockByNumber: ([number]) => ({ result: number === '0x9' ? block : null }),
            },
            {},
            of,
          )
        for (const block of [null, header]) {
          const report = await at(block)
          assert.deepEqual(rowsOf(report.checks).at(-1), ['block', blockHash, behind])
          assert.deepEqual([report.outcome, failed(report)], ['undecided', ['block']])
        }
        const report = await at(latest)
        assert.deepEqual(rowsOf(report.checks).at(-1), ['block', blockHash, latest['hash']])
        assert.deepEqual([report.outcome, failed(report)], ['differs', ['block']])
        for (const number of [-9, 9.5, '9', null]) {
          const chainRef = { ...verdict.chainRef, block_number: number }
          assert.equal((await at(null, { ...verdict, chainRef })).outcome, 'differs')
        }
      }
  })

  it('ends before the record where the chain is another one', async () => {
    for (const name of ['recheck', 'prove'] as const) {
      const report = await against(name, { eth_chainId: () => ({ result: '0x1' }) })
      assert.deepEqual(rowsOf(report.checks).slice(-2), [
        ['rpc.chain_id', '84532', '1'],
        ['block', blockHash, blockHash],
      ])
      assert.deepEqual([report.outcome, failed(report)], ['differs', ['rpc.chain_id']])
    }
  })

  it('says that the block is not canonical, or that none has its number', async () => {
    for (const name of ['recheck', 'prove'] as const) {
      const at = (block: unknown) =>
        against(name, { eth_getBlockByNumber: ([number]) => ({ result: number === '0x9' ? block : latest }) })
      const none = await at(null)
      const row = ['block.canonical', blockHash, 'the RPC has no block at this number: it may be behind']
      assert.deepEqual(rowsOf(none.checks).at(-1), row)
      assert.deepEqual([none.outcome, failed(none)], ['undecided', ['block.canonical']])
      assert.deepEqual(rowsOf((await at(latest)).checks).at(-1), ['block.canonical', blockHash, latest['hash']])
    }
  })

  it('says how old the block is, in seconds or hours, and is undecided beyond the age that the caller allows', async () => {
    const began = Number(header['timestamp'])
    const after = (age: number, maxAgeSeconds?: number) =>
      against(
        'recheck',
        {
          eth_getBlockByNumber: ([at]) => ({
            result: at === '0x9' ? header : { ...latest, timestamp: `0x${(began + age).toString(16)}` },
          }),
        },
        { maxAgeSeconds },
      )
    const row = async (age: number, maxAgeSeconds?: number) => (await after(age, maxAgeSeconds)).checks.at(-1)
    const agreeing = (found: string) => ({ field: 'block.age', ok: true, claimed: time, found })
    assert.deepEqual(await row(3600), agreeing('3600 s before the latest block'))
    assert.deepEqual(await row(-5), agreeing('0 s before the latest block'))
    assert.deepEqual(await row(0), agreeing('0 s before the latest block'))
    assert.deepEqual(await row(7199, Infinity), agreeing('7199 s before the latest block'))
    assert.deepEqual(await row(7200, Infinity), agreeing('2 h before the latest block'))
    assert.deepEqual(await row(10_799, 10_799), agreeing('2 h before the latest block'))
    const old = await after(3601)
    assert.equal(old.outcome, 'undecided')
    assert.deepEqual(old.checks.at(-1), {
      field: 'block.age',
      ok: false,
      undecided: true,
      claimed: time,
      found:
        '3601 s before the latest block: the token may have changed since. Ask the service again, or allow this age',
    })
    for (const limit of [0, -1, Number.NaN]) assert.equal((await after(1, limit)).outcome, 'undecided')
    assert.equal((await after(0, 0)).outcome, 'agrees')
  })
})

describe('a check against answers that are unusable', () => {
  const refused = { error: { code: -32000, message: 'missing trie node' } }
  const useless: [name: string, answers: RpcAnswers, message: RegExp][] = [
    ...[null, 84532, '14a34', '0x', '0xg', ' 0x14a34', `0x${'0'.repeat(10)}14a34`, '0xfffffffffffffff'].map(
      (result): (typeof useless)[number] => [
        `the chain id ${JSON.stringify(result)}`,
        { eth_chainId: () => ({ result }) },
        /answered eth_chainId with something/,
      ],
    ),
    ...['block', 7, [], true].map((result): (typeof useless)[number] => [
      `the block ${JSON.stringify(result)}`,
      { eth_getBlockByHash: () => ({ result }) },
      /answered eth_getBlockByHash with something unusable/,
    ]),
    ...[undefined, 9, '9', '0x', '0x20000000000000', `0x${'f'.repeat(60)}`].map((number): (typeof useless)[number] => [
      `the block number ${JSON.stringify(number)}`,
      { eth_getBlockByHash: () => ({ result: { hash: blockHash, number } }) },
      /answered eth_getBlockByHash with something unusable/,
    ]),
    ...['block', 7, [], {}, { hash: 7 }].map((result): (typeof useless)[number] => [
      `the canonical block ${JSON.stringify(result)}`,
      { eth_getBlockByNumber: () => ({ result }) },
      /answered eth_getBlockByNumber with something unusable/,
    ]),
    [
      'no latest block',
      { eth_getBlockByNumber: ([at]) => ({ result: at === 'latest' ? null : header }) },
      /answered eth_getBlockByNumber with something unusable/,
    ],
    ...[undefined, 1, '0x', '0x1643408b81'].map((timestamp): (typeof useless)[number] => [
      `the time ${JSON.stringify(timestamp)}`,
      { eth_getBlockByNumber: () => ({ result: { ...header, timestamp } }) },
      /answered eth_getBlockByNumber with something unusable/,
    ]),
    [
      'a refusal to give the block',
      { eth_getBlockByHash: () => refused },
      /refused eth_getBlockByHash \(code -32000\)\. For old blocks it must keep old state\./,
    ],
    [
      'an error without a message',
      { eth_getBlockByHash: () => ({ error: {} }) },
      /refused eth_getBlockByHash\. For old blocks it must keep old state\./,
    ],
  ]
  for (const [what, answers, message] of useless)
    it(`is a fault for ${what}`, async () => {
      for (const name of ['recheck', 'prove'] as const)
        await assert.rejects(against(name, answers), { name: 'VerdictError', code: 'RPC_UNAVAILABLE', message })
    })

  it('reads a time up to the year 5000 and a number of 14 digits', async () => {
    const timestamp = '0x1643408b80'
    const far = await against(
      'recheck',
      { eth_getBlockByNumber: () => ({ result: { ...header, timestamp } }) },
      { maxAgeSeconds: Infinity },
    )
    assert.equal(far.checks.at(-1)?.claimed, '5000-01-01T00:00:00Z')
    const padded = await against('recheck', { eth_chainId: () => ({ result: '0x00000000014A34' }) })
    assert.equal(padded.outcome, 'agrees')
  })
})

describe('a check against an endpoint that refuses the hash of a block', () => {
  const refused: RpcAnswer = { error: { code: -32602, message: 'invalid argument' } }
  const pinnedBy = (at: unknown) => (typeof at === 'object' ? 'hash' : at)
  it('asks by number, between two looks at the block of that number', async () => {
    const answers: RpcAnswers = { eth_call: (params) => (params[1] === '0x9' ? honest.eth_call(params) : refused) }
    const { fetch, requests } = recordedChain(answers)
    assert.equal((await recheck(verdict, { rpcUrl, contract, fetch })).outcome, 'agrees')
    assert.deepEqual(
      requests.slice(2).map(({ method, params }) => [method, pinnedBy(params[method === 'eth_call' ? 1 : 0])]),
      [
        ['eth_call', 'hash'],
        ['eth_getBlockByNumber', '0x9'],
        ['eth_call', '0x9'],
        ['eth_getBlockByNumber', '0x9'],
        ['eth_getBlockByNumber', 'latest'],
      ],
    )
  })

  it('does not read by number where another block has it', async () => {
    const { fetch, requests } = recordedChain({
      eth_call: () => refused,
      eth_getBlockByNumber: () => ({ result: latest }),
    })
    const report = await recheck(verdict, { rpcUrl, contract, fetch })
    assert.deepEqual([report.outcome, failed(report)], ['differs', ['record', 'block.canonical']])
    assert.equal(requests.filter(({ method }) => method === 'eth_call').length, 1)
  })

  it('is a fault where no block has the number, as at an endpoint that is behind', async () => {
    const { fetch, requests } = recordedChain({
      eth_call: () => refused,
      eth_getBlockByNumber: () => ({ result: null }),
    })
    await assert.rejects(recheck(verdict, { rpcUrl, contract, fetch }), {
      name: 'VerdictError',
      code: 'RPC_UNAVAILABLE',
    })
    assert.equal(requests.filter(({ method }) => method === 'eth_call').length, 1)
  })

  it('is a fault where the number is refused too, and where a request fails otherwise', async () => {
    const unavailable = { name: 'VerdictError', code: 'RPC_UNAVAILABLE' }
    const state = /For old blocks it must keep old state\.$/
    await assert.rejects(against('recheck', { eth_call: () => refused }), {
      ...unavailable,
      message: 'The RPC refused eth_call at this block. For old blocks it must keep old state.',
    })
    await assert.rejects(against('prove', { eth_getProof: () => refused }), { ...unavailable, message: state })
    for (const [name, method] of [
      ['recheck', 'eth_call'],
      ['prove', 'eth_getProof'],
    ] as const) {
      let asked = 0
      const nothing = () => {
        asked += 1
        return {}
      }
      await assert.rejects(against(name, { [method]: nothing }), { ...unavailable, message: /something that is not/ })
      assert.equal(asked, 1)
    }
  })
})

describe('a check against an endpoint that ignores the hash of a block', () => {
  const asset = String(honest.eth_call([{ to: contract, data: '0xeac8f5b8' }]).result)
  /** The answers of its latest block, at which the token is claimed. */
  const later = ([call]: readonly unknown[]): RpcAnswer =>
    'to' in (call as object)
      ? { result: `${asset.slice(0, 193)}4${asset.slice(194)}` }
      : { result: `0x${'a'.padStart(64, '0')}` }
  const ignoring: RpcAnswers = {
    eth_call: (params) => (params[1] === '0x9' ? honest.eth_call(params) : later(params)),
    eth_getProof: (params) => (params[2] === '0x9' ? honest.eth_getProof(params) : { result: { accountProof: [] } }),
  }

  it('reads the record of the block of the verdict', async () => {
    const claimed = { ...verdict, state: 'CLAIMED', state_code: 4 }
    for (const name of ['recheck', 'prove'] as const) {
      assert.equal((await against(name, ignoring)).outcome, 'agrees')
      assert.deepEqual(failed(await against(name, ignoring, {}, claimed)), ['state', 'state_code'])
    }
  })
})
