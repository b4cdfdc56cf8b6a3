import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { serve } from '../../../test/support/http.ts'
import { until } from '../../../test/support/wait.ts'
import { createLog } from '../../lib/log.ts'
import { type AnyProvider, createAnyProvider } from './any-provider.ts'

const contract = `0x${'c'.repeat(40)}` as const

/** Serves a provider that answers with these, one after another; the last one stays. */
function serveAnswers(answers: readonly object[]) {
  const left = [...answers]
  return serve((request, response) => {
    request.setEncoding('utf8').on('data', (body: string) => {
      const { id, method } = JSON.parse(body) as { id: number; method: string }
      const answer = method === 'eth_chainId' ? { result: '0x14a34' } : left.length > 1 ? left.shift() : left[0]
      response.end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
    })
  })
}

/** Opens providers with the answers of each. */
async function providersOf(each: readonly (readonly object[])[], neededForReceipts = 1, rpcTimeoutMs = 8_000) {
  const served = await Promise.all(each.map(serveAnswers))
  const rpcUrls = served.map(({ url }) => url)
  const options = { rpcUrls, contract, chainId: 84532, neededForReceipts, rpcTimeoutMs, log: createLog(() => {}) }
  const any = createAnyProvider(options)
  return {
    rpc: any.rpc,
    async [Symbol.asyncDispose]() {
      await any.close()
      await Promise.all(served.map((it) => it.close()))
    },
  }
}

const providerOf = (answers: readonly object[]) => providersOf([answers])

const refused = (message: string) => ({ error: { code: -32000, message } })

describe('a read over all providers', () => {
  it('is repeated while the block is unknown, in whatever words a node says so', async () => {
    for (const message of ['unknown block', 'header for hash not found', 'hash is not currently canonical']) {
      await using provider = await providerOf([refused(message), refused(message), { result: '0x2a' }])
      assert.equal(await provider.rpc('eth_call', []), '0x2a', message)
    }
  })

  it('is repeated after limits of the rate, within its time', async () => {
    const limit = { error: { code: -32005, message: 'rate limit exceeded' } }
    await using provider = await providerOf([limit, limit, limit, { result: '0x2a' }])
    assert.equal(await provider.rpc('eth_call', []), '0x2a')
    // The pause that this one asks for is longer than the time of the read.
    const { url, close } = await serve((_request, response) => response.writeHead(429, { 'retry-after': '30' }).end())
    const options = { rpcUrls: [url], contract, chainId: 84532, neededForReceipts: 1, rpcTimeoutMs: 20_000 }
    const any = createAnyProvider({ ...options, log: createLog(() => {}) })
    await assert.rejects(any.rpc('eth_call', []), { kind: 'busy' })
    await any.close()
    await close()
  })

  it('is repeated after a limit whose text has a word of a transaction', async () => {
    for (const message of [
      'limit exceeded: requests are pending',
      'limit exceeded: no gas',
      'limit exceeded, reverted',
    ]) {
      const limit = { error: { code: -32005, message } }
      await using provider = await providerOf([limit, { result: '0x2a' }])
      assert.equal(await provider.rpc('eth_call', []), '0x2a', message)
    }
  })

  it('is not repeated once the providers are closed', async () => {
    const { url, close } = await serve((_request, response) => response.writeHead(429, { 'retry-after': '30' }).end())
    const options = { rpcUrls: [url], contract, chainId: 84532, neededForReceipts: 1, rpcTimeoutMs: 60_000 }
    const log = createLog(() => void any.close(), 'debug') // its first line is about the limit
    const any: AnyProvider = createAnyProvider({ ...options, log })
    await assert.rejects(any.rpc('eth_call', []), { kind: 'busy' })
    await close()
  })

  it('gives hex in lower case, whatever a node writes', async () => {
    const receipt = { to: '0xABCDEF', logs: [{ address: '0xAb', topics: ['0xDDF252AD'], data: '0xAA' }], note: 'Plain' }
    await using provider = await providerOf([{ result: receipt }])
    assert.deepEqual(await provider.rpc('eth_call', []), {
      to: '0xabcdef',
      logs: [{ address: '0xab', topics: ['0xddf252ad'], data: '0xaa' }],
      note: 'Plain',
    })
  })

  it('is not repeated where the contract reverts', async () => {
    await using provider = await providerOf([refused('execution reverted'), { result: '0x2a' }])
    await assert.rejects(provider.rpc('eth_call', []), /execution reverted/)
  })
})

describe('a look that all providers must agree on', () => {
  it('finds the block that one of them has, and counts the most transactions', async () => {
    await using providers = await providersOf([[{ result: null }], [{ result: { hash: '0x01' } }]])
    const block = await providers.rpc('eth_getBlockByNumber', ['0x05', false], { unanimous: true })
    assert.deepEqual(block, { hash: '0x01' })
    await using counts = await providersOf([[{ result: '0x0' }], [{ result: '0x1f' }], [{ result: '0x2' }]])
    assert.equal(await counts.rpc('eth_getTransactionCount', [contract, 'latest'], { unanimous: true }), '0x1f')
  })

  it('finds no block only where each of them says so', async () => {
    await using without = await providersOf([[{ result: null }], [{ result: null }]])
    assert.equal(await without.rpc('eth_getBlockByNumber', ['0x05', false], { unanimous: true }), null)
    await using away = await providersOf([[{ result: null }], [{}]], 1, 200)
    await assert.rejects(away.rpc('eth_getBlockByNumber', ['0x05', false], { unanimous: true }))
    await assert.rejects(away.rpc('eth_getTransactionCount', [contract, 'latest'], { unanimous: true }))
  })
})

describe('a transaction', () => {
  const send = async (each: Parameters<typeof providersOf>[0]) => {
    await using providers = await providersOf(each, 1, 500)
    return await providers.rpc('eth_sendRawTransaction', ['0x01'])
  }
  const [low, known, lost] = [refused('nonce too low'), refused('already known'), {}]

  it('is sent where one of them has it, and refused only where each of them refused it', async () => {
    assert.match(String(await send([[low], [known]])), /^0x[0-9a-f]{64}$/)
    await assert.rejects(send([[low], [low]]), { answered: true, message: /nonce too low/ })
    await assert.rejects(send([[low], [lost]]), { answered: false })
  })
})

describe('a receipt', () => {
  const logs = [{ address: contract, topics: ['0xab'], data: '0x', logIndex: '0x0' }]
  const receipt = { blockHash: `0x${'a'.repeat(64)}`, blockNumber: '0x5', status: '0x1', to: contract, logs }
  const [mined, unknown] = [{ result: receipt }, { result: null }]
  const read = (rpc: Awaited<ReturnType<typeof providersOf>>['rpc'], unanimous = false) =>
    rpc('eth_getTransactionReceipt', ['0x01'], { unanimous })
  /** One look waits for a slow provider no longer than a moment. */
  const untilKnown = async (rpc: Parameters<typeof read>[0]) => {
    let known: unknown
    await until(async () => (known = await read(rpc)) !== null)
    return known as typeof receipt
  }

  it('counts once as many providers as are needed give it alike', async () => {
    const others = {
      result: { ...receipt, gasUsed: '0x1', logs: [{ ...logs[0], address: `0x${'C'.repeat(40)}`, removed: false }] },
    }
    await using providers = await providersOf([[mined], [unknown], [others]], 2)
    assert.deepEqual((await untilKnown(providers.rpc)).logs[0]?.topics, ['0xab'])
  })

  it('is unknown where one provider alone has it, or another one has other logs', async () => {
    const others = [
      { ...receipt, logs: [] },
      { ...receipt, status: '0x0' },
      { ...receipt, logs: [{ ...logs[0], topics: ['0xac'] }] },
      { ...receipt, blockHash: '0x00' },
    ]
    for (const other of [unknown, ...others.map((result) => ({ result }))]) {
      await using providers = await providersOf([[mined], [other], [unknown]], 2)
      assert.equal(await read(providers.rpc), null)
    }
  })

  it('is neither known nor unknown where all are asked and one alone has it, or too few answer', async () => {
    await using lying = await providersOf([[mined], [unknown], [unknown]], 2)
    await assert.rejects(read(lying.rpc, true), /disagree on a receipt/)
    await using away = await providersOf([[mined], [{}], [{}]], 2, 200)
    await assert.rejects(read(away.rpc))
  })

  it('counts from one provider where one is enough', async () => {
    await using providers = await providersOf([[unknown], [mined]])
    assert.deepEqual(await untilKnown(providers.rpc), receipt)
  })
})
