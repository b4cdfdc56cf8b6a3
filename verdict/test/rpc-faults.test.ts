/** recheck and prove against an RPC that refuses requests, lacks blocks or is on another chain. */
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { type Fetch, prove, recheck, type RpcHeader, untrustedOf, VerdictError } from '../src/index.ts'
import { claimed, startChain } from './_chain.ts'
import { changedAnswers, changedResult, refusing, type RpcRequest } from './_liar.ts'
import { failed } from './_report.ts'

const chain = await startChain()
after(() => chain[Symbol.asyncDispose]())

const { rpcUrl, contract, codeHash } = chain
await chain.store(1n, claimed)
const verdict = await chain.verdict(1n)

const rechecked = (of: unknown, fetch: Fetch) => recheck(of, { rpcUrl, contract, fetch })
const proven = (of: unknown, fetch: Fetch) => prove(of, { rpcUrl, contract, codeHash, fetch })
const unavailable = (error: unknown) => error instanceof VerdictError && error.code === 'RPC_UNAVAILABLE'

/** A read pinned to a block hash (EIP-1898). */
const byHash = ({ method, params }: RpcRequest): boolean =>
  ['eth_call', 'eth_getProof'].includes(method) && typeof params.at(-1) === 'object'

describe('an RPC that refuses block hashes', () => {
  it('is asked by number, and must have the hash at that number before and after', async () => {
    const asked: string[] = []
    const fetch = refusing((request) => {
      asked.push(request.method)
      return byHash(request)
    })
    assert.deepEqual(failed(await rechecked(verdict, fetch)), [])
    const around = ['eth_call', 'eth_getBlockByNumber', 'eth_call', 'eth_getBlockByNumber']
    const latest = 'eth_getBlockByNumber'
    assert.deepEqual(asked, ['eth_chainId', 'eth_getBlockByHash', ...around, latest])
    assert.deepEqual(failed(await proven(verdict, fetch)), [])
  })

  it('is reported when a reorganisation comes before or between', async () => {
    for (const [forkedAt, field] of [
      [1, 'record'],
      [2, 'block.canonical'],
    ] as const) {
      let looks = 0
      const fetch = changedAnswers((request, answer) => {
        if (byHash(request)) return { error: { code: -32602, message: 'invalid argument' } }
        if (request.method === 'eth_getBlockByNumber') looks += 1
        return looks === forkedAt && request.method === 'eth_getBlockByNumber'
          ? { result: { hash: `0x${'00'.repeat(32)}` } }
          : answer
      })
      assert.deepEqual(failed(await rechecked(verdict, fetch)), [field])
    }
  })

  it('is reported when it still answers for a block that a reorganisation dropped', async () => {
    const fetch = changedResult('eth_getBlockByNumber', (block) => ({
      ...(block as RpcHeader),
      hash: `0x${'00'.repeat(32)}`,
    }))
    assert.deepEqual(failed(await rechecked(verdict, fetch)), ['block.canonical'])
    assert.deepEqual(failed(await proven(verdict, fetch)), ['block.canonical'])
  })

  it('is unavailable when it refuses numbers too, as without old state', async () => {
    const fetch = refusing(({ method }) => method === 'eth_call' || method === 'eth_getProof', {
      code: -32000,
      message: 'missing trie node',
    })
    await assert.rejects(rechecked(verdict, fetch), unavailable)
    await assert.rejects(proven(verdict, fetch), unavailable)
  })
})

describe('an RPC on the way to the record', () => {
  const reported: [name: string, fields: string[], fetch: Fetch][] = [
    ['is on another chain', ['rpc.chain_id'], changedResult('eth_chainId', () => '0x1')],
    ['does not know the block', ['block'], changedResult('eth_getBlockByHash', () => null)],
    [
      'says so with an error',
      ['block'],
      refusing(({ method }) => method === 'eth_getBlockByHash', { code: -32000, message: 'header not found' }),
    ],
    [
      'gives another block',
      ['block'],
      changedResult('eth_getBlockByHash', (block) => ({ ...(block as object), gasUsed: '0x7' })),
    ],
    [
      'gives a thin block of another hash',
      ['block'],
      changedResult('eth_getBlockByHash', () => ({ hash: `0x${'11'.repeat(32)}`, number: '0x1' })),
    ],
    ['finds no contract', ['record'], changedResult('eth_call', () => '0x')],
    [
      'finds a contract that reverts',
      ['record'],
      refusing(({ method }) => method === 'eth_call', { code: 3, message: 'execution reverted' }),
    ],
    [
      'answers with more than the record',
      ['record'],
      changedResult('eth_call', (data) => `${String(data)}${'0'.repeat(64)}`),
    ],
  ]
  for (const [name, fields, fetch] of reported) {
    it(`is reported when it ${name}`, async () => assert.deepEqual(failed(await rechecked(verdict, fetch)), fields))
  }

  it('leaves the metadata undecided where the contract has no hash to give, and finds another hash wrong', async () => {
    const options = { rpcUrl, contract, metadata: '{}' }
    const isHash = ({ method, params }: RpcRequest) =>
      method === 'eth_call' && (params[0] as { data: string }).data.startsWith('0x219cc8bc')
    const of = { ...verdict, untrusted: untrustedOf({}) }
    const reverting = refusing(isHash, { code: 3, message: 'execution reverted' })
    const silent = changedAnswers((request, answer) => (isHash(request) ? { result: '0x' } : answer))
    for (const fetch of [reverting, silent]) {
      const report = await recheck(of, { ...options, fetch })
      assert.deepEqual([report.outcome, failed(report)], ['undecided', ['metadata.hash']])
    }
    assert.equal((await recheck(of, options)).outcome, 'differs')
  })

  it('may give a block without header members: then its word for the hash must do for a recheck, and nothing is proven', async () => {
    const thin = changedResult('eth_getBlockByHash', (block) => ({
      hash: (block as RpcHeader)['hash'],
      number: (block as RpcHeader)['number'],
    }))
    assert.deepEqual(failed(await rechecked(verdict, thin)), [])
    assert.deepEqual(failed(await proven(verdict, thin)), ['proof.header'])
    const beside = changedResult('eth_getBlockByHash', (block) => ({ ...(block as object), slotNumber: '0x1' }))
    assert.deepEqual(failed(await proven(verdict, beside)), [])
  })

  const useless: [name: string, method: string, result: unknown][] = [
    ['no chain id', 'eth_chainId', null],
    ['a chain id that is no quantity', 'eth_chainId', 84532],
    ['a block that is a text', 'eth_getBlockByHash', 'block'],
    ['a block without a number', 'eth_getBlockByHash', { hash: verdict.chainRef.block_hash }],
    ['a huge block number', 'eth_getBlockByHash', { hash: verdict.chainRef.block_hash, number: `0x${'f'.repeat(60)}` }],
  ]
  for (const [name, method, result] of useless) {
    it(`is unavailable with ${name}`, async () => {
      await assert.rejects(
        rechecked(
          verdict,
          changedResult(method, () => result),
        ),
        unavailable,
      )
      await assert.rejects(
        proven(
          verdict,
          changedResult(method, () => result),
        ),
        unavailable,
      )
    })
  }
})
