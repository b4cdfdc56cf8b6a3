import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ServiceError, reasonOf } from '../../lib/errors.ts'
import type { Fault, FaultName } from '../../../test/support/fault-rpc.ts'
import { useProviders } from '../../../test/support/providers.ts'
import { until } from '../../../test/support/wait.ts'
import { cell, echo, nothing, reverting, type TestAnvil, wordOf } from '../../../test/support/rpc-anvil.ts'
import { isBusy } from './failover.ts'
import { quantity, nonCanonical, rangeTooWide } from './answer.ts'
import type { Block } from './block.ts'

/** Faults of a provider that can be detected, and the reads that they fail. */
type Spoiled = readonly ('head' | 'call' | 'calls')[]
const all: Spoiled = ['head', 'call', 'calls']
const silent: readonly FaultName[] = [
  ...(['hang', 'drip', 'die', 'status500', 'status429', 'redirect', 'garbage', 'truncated', 'wrong-id'] as const),
  ...(['null-result', 'no-result', 'rpc-error', 'rate-limit', 'other-chain'] as const),
]
const faults: readonly (readonly [what: string, fault: Fault, spoiled: Spoiled])[] = [
  ...silent.map((name) => [name, { name }, all] as const),
  ['an empty result', { name: 'empty-result' }, ['call', 'calls']],
  ['a result that is no text', { methods: ['eth_call'], rewrite: () => 1 }, ['call', 'calls']],
  ['a result with half a byte', { methods: ['eth_call'], rewrite: () => '0x123' }, ['call', 'calls']],
  ['a header that does not hash to its hash', changeBlock({ stateRoot: wordOf(1) }), ['head']],
  ['a zero stateRoot', changeBlock({ stateRoot: wordOf(0) }), ['head']],
  ['a pending block', changeBlock({ hash: null, number: null }), ['head']],
]

/** Faults that only a deadline ends. */
const endless: readonly (FaultName | undefined)[] = ['hang', 'drip']
const quick = { attemptTimeoutMs: 1_000, readTimeoutMs: 2_000 }
/** Deadlines beyond those of the tests: what ends earlier did not wait for them. */
const patient = { attemptTimeoutMs: 600_000, readTimeoutMs: 600_000 }

function changeBlock(part: object): Fault {
  const isBlock = (method: string) => method.startsWith('eth_getBlock')
  return { rewrite: (method, _params, result) => (isBlock(method) ? { ...(result as object), ...part } : result) }
}

const twoWords = [wordOf(1), wordOf(2)]

const { anvil, first, second, sourceOver } = useProviders(2, [3, 4, 5])

const isUnavailable = (error: unknown) =>
  error instanceof ServiceError &&
  error.code === 'CHAIN_UNAVAILABLE' &&
  error.message === 'The chain could not be read.'

describe('the chain over one provider', () => {
  it('gives the head and reads pinned to it', async () => {
    const { source } = sourceOver([first.url])
    const head = await source.head()
    assert.equal(await source.call(cell, '0x', head), wordOf(5))
    assert.deepEqual(await source.calls(echo, twoWords, head), twoWords)
    assert.deepEqual(await source.calls(echo, [], head), [])
    assert.deepEqual(await source.block(head.hash), head)
    const proof = await source.proof([wordOf(0)], head)
    assert.ok(proof !== nonCanonical && BigInt(proof.storageProof[0]?.value ?? 0) === 5n)
    const logs = await source.logs(head)
    assert.ok(logs !== nonCanonical && logs.length === 1)
    assert.deepEqual([logs[0]?.address, logs[0]?.topics, logs[0]?.blockHash], [cell, [wordOf(5)], head.hash])
    assert.deepEqual(await source.logsBetween(head.number, head.number), logs)
  })

  for (const [what, fault, spoiled] of faults) {
    it(`is unavailable, soon, on ${what}`, { timeout: 240_000 }, async () => {
      const { source } = sourceOver([first.url], endless.includes(fault.name) ? quick : patient)
      const block = await headOf(anvil)
      first.set(fault)
      const reads = [source.head(), source.call(cell, '0x', block), source.calls(echo, twoWords, block)]
      const results = await Promise.allSettled<unknown>(reads)
      assert.deepEqual(
        all.filter((_, index) => results[index]?.status === 'rejected'),
        spoiled,
      )
      assert.ok(results.every((result) => result.status === 'fulfilled' || isUnavailable(result.reason)))
    })
  }

  it('is unavailable where no server listens, or without TLS where it must be', async () => {
    for (const url of ['http://127.0.0.1:9', first.url.replace('http:', 'https:')]) {
      const { source } = sourceOver([url])
      await assert.rejects(source.head(), isUnavailable)
    }
  })

  it('is unavailable for a call that reverts or has no code to answer it, which is not the fault of the provider', async () => {
    const { source } = sourceOver([first.url])
    const head = await source.head()
    for (const address of [reverting, nothing]) await assert.rejects(source.call(address, '0x', head), isUnavailable)
    assert.equal(source.stats().faults, 0)
  })

  it('reports a range as too wide if the provider does, or sends too much', async () => {
    const { source } = sourceOver([first.url], patient)
    const { number } = await source.head()
    const long = { address: cell, data: `0x${'00'.repeat(5_000_000)}` }
    for (const fault of [{ name: 'too-wide' }, { rewrite: () => [long] }] as const) {
      first.set(fault)
      assert.equal(await source.logsBetween(0n, number), rangeTooWide)
    }
    await assert.rejects(source.head(), isUnavailable)
  })

  it('reports a range as too wide under a limit that may be any, and one block or a limit of rates as busy', async () => {
    const { source } = sourceOver([first.url], patient)
    const { number } = await source.head()
    first.set({ name: 'vague-limit', methods: ['eth_getLogs'] })
    assert.equal(await source.logsBetween(0n, number), rangeTooWide)
    await assert.rejects(source.logsBetween(number, number), isBusy)
    first.set({ name: 'rate-limit', methods: ['eth_getLogs'] })
    await assert.rejects(source.logsBetween(0n, number), isBusy)
  })

  it('takes the head that the block tag names', async () => {
    const { source } = sourceOver([first.url], { blockTag: 'finalized' })
    assert.equal((await source.head()).number, (await headOf(anvil)).number - 2n)
  })

  for (const blockTag of ['safe', 'finalized'] as const)
    it(`is unavailable, soon, where the provider never knows the ${blockTag} block, and takes that of another one`, async () => {
      for (const name of ['null-result', 'not-canonical', 'too-wide'] as const) {
        const { source, lines } = sourceOver([first.url], { blockTag, ...patient })
        const both = sourceOver([first.url, second.url], { blockTag, ...patient }).source
        first.set({ name, when: (_method, [tag]) => tag === blockTag })
        for (let asked = 0; asked < 7; asked += 1) await assert.rejects(source.head(), isUnavailable)
        assert.match(lines.join(), /"read":"head"/)
        assert.ok((await both.head()).number < (await headOf(anvil)).number)
      }
    })

  it('is unavailable after it was closed', async () => {
    const { source } = sourceOver([first.url])
    await source.head()
    await source.close()
    await assert.rejects(source.head(), isUnavailable)
  })

  for (const name of [
    'batch-refused',
    'rate-limit',
    'status429',
    'status500',
    'batch-drop',
    'batch-duplicate',
    'batch-extra',
  ] as const)
    it(`sends smaller batches where large ones get ${name}, and no large ones any more`, async () => {
      const { source } = sourceOver([first.url], patient)
      const head = await source.head()
      await source.call(cell, '0x', head)
      const numbers = [0n, 1n, 2n, 3n, 0n, 1n, 2n, 3n, 0n, 1n]
      for (const most of [3, 1]) {
        first.set({ name, when: (_method, _params, size) => size > most })
        for (const isFirst of [true, false]) {
          const before = first.struck()
          const blocks = await source.blocksAt(numbers)
          assert.deepEqual(
            blocks.map((block) => block?.number),
            numbers,
          )
          assert.deepEqual(await source.calls(echo, twoWords, head), twoWords)
          assert.equal(first.struck() > before, isFirst)
        }
      }
      assert.equal(source.stats().faults, 0)
    })

  for (const name of ['status429', 'rate-limit'] as const)
    it(`answers a first read where every second request gets ${name}, which is no fault`, async () => {
      const { source } = sourceOver([first.url], { attemptTimeoutMs: 30_000, readTimeoutMs: 60_000 })
      first.set({ name, everyOther: true })
      const head = await source.head()
      assert.equal(await source.call(cell, '0x', head), wordOf(5))
      assert.deepEqual(await source.calls(echo, twoWords, head), twoWords)
      assert.notEqual(await source.proof([wordOf(0)], head), nonCanonical)
      const { faults: faulty, limits, providers } = source.stats()
      assert.deepEqual([faulty, limits > 0, providers[0]?.breaker], [0, true, 'closed'])
    })

  it('does not mind in what order a batch is answered', async () => {
    const { source } = sourceOver([first.url])
    first.set('batch-reorder')
    assert.deepEqual(await source.calls(echo, twoWords, await source.head()), twoWords)
  })

  it('survives one broken socket', async () => {
    const { source } = sourceOver([first.url])
    const head = await source.head()
    first.set({ name: 'die', times: 1 })
    assert.equal(await source.call(cell, '0x', head), wordOf(5))
  })

  it('asks for the chain id once in ten seconds, and for one head at a time', async () => {
    const clock = { ms: 0 }
    const { source } = sourceOver([first.url], { ticks: () => clock.ms })
    const [ids, heads] = [first.count('eth_chainId'), first.count('eth_getBlockByNumber')]
    await Promise.all(Array.from({ length: 20 }, () => source.head()))
    await source.head()
    assert.deepEqual([first.count('eth_chainId') - ids, first.count('eth_getBlockByNumber') - heads], [1, 2])
    clock.ms = 10_000
    const { promise, resolve } = Promise.withResolvers<void>()
    first.set({ methods: ['eth_chainId'], held: promise })
    const reading = source.head()
    await until(() => first.count('eth_getBlockByNumber') - heads === 3) // beside the chain id, not after it
    resolve()
    await reading
    await source.head()
    assert.equal(first.count('eth_chainId') - ids, 2)
  })

  it('is unavailable ten seconds after the provider has turned to another chain, until it turns back', async () => {
    const clock = { ms: 0 }
    const { source, lines } = sourceOver([first.url], { ticks: () => clock.ms })
    const head = await source.head()
    first.set('other-chain')
    clock.ms = 10_000
    await assert.rejects(source.call(cell, '0x', head), isUnavailable)
    await assert.rejects(source.head(), isUnavailable)
    assert.match(lines.join(), /eth_chainId is another chain/)
    first.set('none')
    assert.equal(await source.call(cell, '0x', head), wordOf(5))
  })

  it('asks for the chain id again after a broken socket', async () => {
    const { source } = sourceOver([first.url], { ticks: () => 0 })
    const head = await source.head()
    const ids = first.count('eth_chainId')
    first.set({ name: 'die', times: 1 })
    await source.call(cell, '0x', head)
    assert.equal(first.count('eth_chainId') - ids, 1)
  })

  it('asks for the chain id again after its breaker was open', async () => {
    const clock = { ms: 0 }
    const { source } = sourceOver([first.url], { ticks: () => clock.ms })
    const head = await source.head()
    first.set('status500')
    for (let fault = 0; fault < 5; fault++) await assert.rejects(source.call(cell, '0x', head), isUnavailable)
    first.set('other-chain')
    clock.ms = 5000
    await assert.rejects(source.call(cell, '0x', head), isUnavailable)
  })

  it('asks for the chain id again before it takes a head that no block of its own leads to', async () => {
    const { source } = sourceOver([first.url], { ticks: () => 0 })
    const head = await source.head()
    const block = await anvil.rpc('eth_getBlockByNumber', [quantity(head.number), false])
    await anvil.rpc('anvil_mine', ['0x18'])
    await anvil.store(5)
    const ids = first.count('eth_chainId')
    assert.equal((await source.head()).number, head.number + 25n)
    assert.equal(first.count('eth_chainId') - ids, 1)
    const isHead = (method: string) => method === 'eth_getBlockByNumber'
    first.set({ rewrite: (method, _, result) => (isHead(method) ? block : method === 'eth_chainId' ? '0x1' : result) })
    await assert.rejects(source.head(), isUnavailable)
  })

  it('asks for the chain id again after a wrong one', async () => {
    const { source } = sourceOver([first.url])
    first.set('other-chain')
    await assert.rejects(source.head(), isUnavailable)
    first.set('none')
    await source.head()
  })

  it('keeps to the deadline of the caller', { timeout: 240_000 }, async () => {
    const { source } = sourceOver([first.url], patient)
    const head = await source.head()
    first.set('hang')
    const deadline = performance.now() + 50
    await assert.rejects(source.call(cell, '0x', head, { deadline }), isUnavailable)
    await assert.rejects(source.head({ deadline }), isUnavailable)
  })

  it('rejects a head that is too old', async () => {
    const { timestamp } = await headOf(anvil)
    const clock = { ms: Number(timestamp) * 1000 }
    const { source, lines } = sourceOver([first.url], { maxHeadAgeSeconds: 30, now: () => clock.ms })
    await source.head()
    clock.ms += 31_000
    await assert.rejects(source.head(), isUnavailable)
    assert.match(lines.join(), /head is 31 s old/)
  })

  it('counts headers it cannot check, and rejects them where the block must be proven', async () => {
    first.set(changeBlock({ nonce: undefined, rootOfTheNextFork: wordOf(1) }))
    const { source } = sourceOver([first.url])
    await source.head()
    assert.equal(source.stats().uncheckedHeaders, 1)
    const { source: proving, lines } = sourceOver([first.url], { trust: 'proof' })
    await assert.rejects(proving.head(), isUnavailable)
    assert.match(lines.join(), /header has fields that cannot be checked/)
    assert.equal(proving.stats().uncheckedHeaders, 1)
  })

  it('warns of members it does not know, and goes on where the others hash to the block hash', async () => {
    first.set(changeBlock({ rootOfTheNextFork: wordOf(1), 'a key: s3cret': '0x1' }))
    const { source, lines } = sourceOver([first.url], { trust: 'proof' })
    await source.head()
    await source.head()
    assert.equal(source.stats().uncheckedHeaders, 2)
    assert.equal(lines.filter((line) => /other members.*rootOfTheNextFork/.test(line)).length, 1)
    assert.doesNotMatch(lines.join(), /s3cret/)
  })

  it('opens its breaker after five faults and tries again after five seconds', async () => {
    const clock = { ms: 0 }
    const { source, lines } = sourceOver([first.url], { ticks: () => clock.ms })
    const head = await source.head()
    first.set('status500')
    const read = () => source.call(cell, '0x', head)
    for (let fault = 0; fault < 5; fault++) await assert.rejects(read(), isUnavailable)
    first.set('none')
    const asked = source.stats().requests
    await assert.rejects(read(), isUnavailable)
    assert.deepEqual([source.stats().requests, source.stats().providers[0]?.breaker], [asked, 'open'])
    clock.ms = 5000
    assert.equal(await read(), wordOf(5))
    assert.equal(await read(), wordOf(5))
    assert.equal(source.stats().providers[0]?.breaker, 'closed')
    assert.equal(lines.filter((line) => line.includes('chain provider answers again')).length, 1)
  })

  it('never names a key of a URL, neither to the caller nor in the log', async () => {
    const { source, lines } = sourceOver([`${first.url.replace('//', '//user:pass1234@')}/v2/secretkey`])
    first.set('rpc-error')
    await assert.rejects(source.head(), (error) => isUnavailable(error) && !/secretkey|pass1234/.test(reasonOf(error)))
    assert.ok(lines.length > 0 && !/secretkey|pass1234/.test(lines.join()))
  })
})

describe('the chain over two providers', () => {
  for (const [what, fault] of faults) {
    it(`is read from the second when the first shows ${what}`, { timeout: 240_000 }, async () => {
      const { source } = sourceOver([first.url, second.url], patient)
      first.set(fault)
      const head = await source.head()
      assert.equal(head.hash, (await headOf(anvil)).hash)
      assert.equal(await source.call(cell, '0x', head), wordOf(5))
      assert.deepEqual(await source.calls(echo, twoWords, head), twoWords)
    })
  }
})

/** Answers as a node whose head is the block before `end`: the logs up to there, without an error. */
function behind(end: Block): Fault {
  return {
    rewrite(method, [at], result) {
      if (method === 'eth_getBlockByNumber') return at === quantity(end.number) ? null : result
      return method === 'eth_getLogs' ? [] : result
    },
  }
}

describe('the logs of a range', () => {
  it(
    'are not read from a provider that lacks its last block: it would leave out the newest',
    { timeout: 240_000 },
    async () => {
      const { source } = sourceOver([first.url, second.url], patient)
      const head = await source.head()
      const logs = await source.logsBetween(head.number, head.number)
      assert.ok(logs !== rangeTooWide && logs.length === 1)
      first.set(behind(head))
      assert.deepEqual(await source.logsBetween(head.number, head.number), logs)
      second.set(behind(head))
      await assert.rejects(source.logsBetween(head.number, head.number), isUnavailable)
    },
  )
})

function headOf({ url }: TestAnvil): Promise<Block> {
  return sourceOver([url]).source.head()
}
