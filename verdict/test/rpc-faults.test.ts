/** recheck and prove against an RPC that refuses requests or lacks blocks. Of several endpoints a number must agree. */
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { type Fetch, type Outcome, prove, recheck, type RpcHeader, untrustedOf, VerdictError } from '../src/index.ts'
import { claimed, startChain } from './_chain.ts'
import { changedAnswers, changedResult, refusing, type RpcRequest } from './_liar.ts'
import { failed } from './_report.ts'
import { forward } from './_server.ts'

const chain = await startChain()
const other = await startChain({ nonce: 1 })
const second = await forward(chain.rpcUrl)
after(() => Promise.all([chain, other, second].map((opened) => opened[Symbol.asyncDispose]())))

const { rpcUrl, contract, codeHash } = chain
await chain.store(1n, claimed)
await other.store(1n, claimed) // as many blocks
const verdict = await chain.verdict(1n)

const rechecked = (of: unknown, fetch: Fetch) => recheck(of, { rpcUrl, contract, fetch })
const proven = (of: unknown, fetch: Fetch) => prove(of, { rpcUrl, contract, codeHash, fetch })
const dead = 'http://127.0.0.1:1'
const outcome = async (of: unknown, rpcUrls: string[], agree?: number): Promise<Outcome> =>
  (await recheck(of, { rpcUrl: rpcUrls, contract, agree })).outcome
const unavailable = (error: unknown) => error instanceof VerdictError && error.code === 'RPC_UNAVAILABLE'

/** A read pinned to a block hash (EIP-1898). */
const byHash = ({ method, params }: RpcRequest): boolean =>
  ['eth_call', 'eth_getProof'].includes(method) && typeof params.at(-1) === 'object'

describe('an RPC that writes hex in capitals', () => {
  /** JSON with its texts of hex in capitals. */
  const inCapitals = (value: unknown): unknown =>
    JSON.parse(JSON.stringify(value), (_key, text: unknown) =>
      typeof text === 'string' && /^0x[0-9a-f]*$/.test(text) ? `0x${text.slice(2).toUpperCase()}` : text,
    )
  const capitals = changedAnswers((_request, answer) => inCapitals(answer) as typeof answer)

  it('agrees as one that does not', async () => {
    assert.deepEqual(failed(await rechecked(verdict, capitals)), [])
    assert.deepEqual(failed(await proven(verdict, capitals)), [])
  })
})

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
})

describe('several endpoints', () => {
  it('must all agree, or as many as the caller asks for', async () => {
    const lying = { ...verdict, state: 'MINTED', state_code: 1 }
    assert.equal(await outcome(verdict, [rpcUrl, second.url]), 'agrees')
    assert.equal(await outcome(verdict, [rpcUrl, dead]), 'undecided')
    assert.equal(await outcome(verdict, [rpcUrl, dead], 1), 'agrees')
    assert.equal(await outcome(verdict, [rpcUrl, other.rpcUrl, second.url], 2), 'agrees')
    assert.equal(await outcome(verdict, [rpcUrl, other.rpcUrl]), 'differs')
    assert.equal(await outcome(verdict, [rpcUrl, other.rpcUrl, dead], 2), 'undecided')
    assert.equal(await outcome(lying, [rpcUrl, second.url, dead], 1), 'undecided')
    assert.equal(await outcome(lying, [rpcUrl, second.url, dead], 2), 'differs')
  })

  it('are each shown in the report, without their URL', async () => {
    const report = await recheck(verdict, { rpcUrl: [rpcUrl, dead, other.rpcUrl], contract, agree: 1 })
    const rows = report.checks.filter(({ field }) => field.startsWith('endpoint'))
    assert.deepEqual(
      rows.map((row) => [row.field, row.found]),
      [
        ['endpoint 1 of 3', 'agrees'],
        ['endpoint 2 of 3', 'RPC_UNAVAILABLE'],
        ['endpoint 3 of 3', 'differs: block'],
      ],
    )
  })
})
