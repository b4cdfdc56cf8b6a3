/** Interleavings of reads, heads, logs, reorganisations and failures that a real chain cannot be forced into. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { wordOfRecord } from '@touchstone/verdict'
import fc from 'fast-check'
import {
  createScriptedChain,
  readNow,
  readerOf,
  type ScriptedChain,
  topics,
  turn,
  warm,
} from '../../../test/support/reader/scripted.ts'
import { chainUnavailable } from '../../lib/errors.ts'
import type { ChainSource } from '../rpc/source.ts'
import type { AssetReading } from './reader.ts'

type Step = Readonly<{ do: keyof typeof weights; value: number }>

/** How often each step comes. `settle` answers all that waits, so that a script gets somewhere. */
const weights = { release: 6, fail: 1, settle: 4, read: 6, mine: 3, rewind: 2, forget: 1, wait: 4 }

const steps = fc.array(
  fc.record({
    do: fc.oneof(
      ...Object.entries(weights).map(([name, weight]) => ({ weight, arbitrary: fc.constant(name as Step['do']) })),
    ),
    value: fc.nat(999),
  }),
  { minLength: 20, maxLength: 250 },
)

/** Bits of a number as tokens from 0 on. */
const tokensOf = (bits: number) => [0, 1, 2, 3, 4, 5, 6].filter((bit) => (bits >> bit) & 1).map(BigInt)

async function run(script: readonly Step[], mode: 'events' | 'head' | 'off'): Promise<void> {
  const chain = createScriptedChain()
  chain.mine([1n, 2n, 3n, 4n])
  const { reader, clock } = readerOf(chain, { cache: mode, auditEvery: 3, cacheEntries: 4 })
  const answers: AssetReading[] = []
  const reads: Promise<unknown>[] = []
  const isTrue = ({ asset, block }: AssetReading) =>
    assert.equal(
      asset.record.state === 0 ? 0n : wordOfRecord(asset.record),
      chain.wordAt(asset.tokenId, block.hash),
      `token ${asset.tokenId} at ${block.number}`,
    )

  const acts: Record<Step['do'], (value: number) => unknown> = {
    release: (value) => chain.waiting() > 0 && chain.release(value),
    fail: (value) => chain.waiting() > 0 && chain.release(value, true),
    settle: () => chain.drain(),
    read: (value) =>
      reads.push(
        reader.read(BigInt(1 + (value % 6))).then(
          (answer) => answers.push(answer),
          () => {},
        ),
      ),
    mine: (value) => chain.mine(tokensOf(value % 128)),
    rewind: (value) => chain.rewind(1 + (value % 10)),
    forget: () => chain.forget(),
    wait: (value) => (clock.ms += value),
  }
  for (const step of script) {
    await acts[step.do](step.value)
    await turn()
    const block = reader.head()
    if (block === undefined) continue
    // Callers show every answer that is still current at the newest head.
    for (const { asset } of answers) if (asset.current) isTrue({ asset, block })
  }
  await chain.drain()
  await Promise.all(reads)
  for (const answer of answers) isTrue({ ...answer, asset: { ...answer.asset, current: false } })
  assert.equal(reader.stats().auditFailures, 0)
}

describe('the asset reader in any interleaving', () => {
  for (const mode of ['events', 'head', 'off'] as const) {
    it(`gives only answers and live assets that are true at their block, cache ${mode}`, async () => {
      await fc.assert(
        fc.asyncProperty(steps, (script) => run(script, mode)),
        { numRuns: mode === 'events' ? 400 : 100 },
      )
    })
  }
})

describe('the asset reader by events', () => {
  it('keeps an asset across blocks that do not name it, at the price of the logs only', async () => {
    const { chain, reader } = await warm([1n, 2n])
    const calls = chain.asked.call
    chain.mine([2n])
    chain.mine([])
    const head = chain.mine([2n])
    const { asset, block } = await readNow(chain, reader, 1n)
    assert.deepEqual([block.hash, asset.current, chain.asked.call, chain.asked.logs], [head.hash, true, calls, 3])
  })

  it('reads again what comes back older than a change that the head has passed', async () => {
    const { chain, reader, clock } = await warm([1n, 2n])
    await readNow(chain, reader, 1n)
    const slow = reader.read(2n)
    await turn()
    chain.release(0)
    await turn() // looked up at the old head; the answer is on its way
    const changed = chain.mine([2n])
    clock.ms += 300
    reader.head()
    await turn()
    // Head and logs overtake it: they wait behind the answer in the list.
    while (reader.head()?.hash !== changed.hash) {
      chain.release(1)
      await turn()
    }
    await chain.drain()
    const { asset, block } = await slow
    assert.deepEqual([block.hash, wordOfRecord(asset.record)], [changed.hash, chain.wordAt(2n, changed.hash)])
  })

  /** Reads token 2. Three answers are on their way while the head passes another change; `last` comes before the third one arrives. */
  async function readOvertaken(last: (chain: ScriptedChain) => void) {
    const { chain, reader, clock } = await warm([1n, 2n])
    await readNow(chain, reader, 1n)
    const slow = reader.read(2n)
    let readAt = chain.tip()
    for (const then of [() => {}, () => {}, last]) {
      await turn()
      chain.release(0) // looked up at this head
      readAt = chain.tip()
      await turn()
      chain.mine([2n])
      then(chain)
      clock.ms += 300
      reader.head()
      await turn()
      while (reader.head()?.hash !== chain.tip().hash) {
        chain.release(1)
        await turn()
      }
      chain.release(0)
    }
    return { slow, readAt, chain }
  }

  it('answers at the block of the third reading where a token changes at each head', async () => {
    const { slow, readAt, chain } = await readOvertaken(() => {})
    const { asset, block } = await slow
    assert.deepEqual(
      [block.hash, asset.current, wordOfRecord(asset.record)],
      [readAt.hash, false, chain.wordAt(2n, readAt.hash)],
    )
  })

  it('gives no answer of a block that was reorganised away on the way', async () => {
    const { slow } = await readOvertaken((chain) => {
      chain.rewind(2)
      chain.mine([2n])
      chain.mine([])
    })
    await assert.rejects(slow, { code: 'CHAIN_UNAVAILABLE' })
  })

  for (const times of [1, 2])
    it(`${times === 1 ? 'follows another head' : 'forgets everything'} where a head is lost ${times} times while it is followed`, async () => {
      const { chain, reader, clock } = await warm([1n, 2n])
      const { asset } = await readNow(chain, reader, 1n)
      chain.mine([])
      chain.mine([])
      clock.ms += 2000
      const reading = reader.read(1n)
      for (let time = 0; time < times; time++) {
        const { block } = chain.asked
        while (chain.asked.block === block) {
          await turn()
          chain.release(0)
          await turn()
        }
        chain.rewind(2)
        chain.mine([])
        chain.mine([])
        chain.forget()
      }
      await chain.drain()
      assert.deepEqual([(await reading).block.hash, asset.current], [chain.tip().hash, times === 1])
    })

  it('follows no block of which one of the logs was lost with a reorganisation', async () => {
    const { chain, reader, clock } = await warm([1n, 2n])
    const { asset } = await readNow(chain, reader, 1n)
    chain.mine([1n])
    chain.mine([])
    clock.ms += 2000
    const reading = reader.read(1n)
    while (chain.asked.logs < 2) {
      await turn()
      chain.release(0)
      await turn()
    }
    chain.release(1) // the newer block is looked up in time
    chain.rewind(2)
    chain.mine([])
    chain.forget()
    await chain.drain()
    assert.deepEqual([(await reading).block.hash, asset.current], [chain.tip().hash, true])
  })

  it('does not ask for logs for half a minute after three failures in a row', async () => {
    const { chain, reader, clock } = await warm([1n, 2n])
    await readNow(chain, reader, 1n)
    /** Reads at a new head, where each question for logs fails. Returns how many there were. */
    const questions = async () => {
      chain.mine([])
      clock.ms += 3000
      const { logs } = chain.asked
      let failed = logs
      let reading: AssetReading | undefined
      void reader.read(1n).then((read) => (reading = read))
      while (reading === undefined) {
        await turn()
        const isFailure = chain.asked.logs > failed
        if (isFailure) failed++
        if (chain.waiting() > 0) chain.release(isFailure ? chain.waiting() - 1 : 0, isFailure)
      }
      await chain.drain()
      assert.equal(reading.block.hash, chain.tip().hash)
      return chain.asked.logs - logs
    }
    const asked: number[] = []
    for (let head = 0; head < 14; head++) asked.push(await questions())
    assert.deepEqual(asked, [1, 1, 1, ...Array<number>(9).fill(0), 1, 0])
  })

  it('drops what was put in above the common ancestor and keeps what is older', async () => {
    const { chain, reader, clock, renew } = await warm([1n, 2n, 3n])
    const old = (await readNow(chain, reader, 1n)).asset
    chain.mine([])
    await renew()
    const young = (await readNow(chain, reader, 3n)).asset
    assert.deepEqual([old.current, young.current], [true, true])
    chain.rewind(1)
    chain.mine([])
    clock.ms += 2000
    await readNow(chain, reader, 1n)
    assert.deepEqual([old.current, young.current, reader.stats().reorgs], [true, false, 1])
    chain.mine([2n])
    clock.ms += 2000
    const { asset } = await readNow(chain, reader, 1n)
    assert.deepEqual([asset === old, old.current, reader.stats().flushes], [true, true, 0])
  })

  it('hands one asset to all who wait for it', async () => {
    const { chain, reader } = await warm([1n, 2n])
    const reads = [reader.read(2n), reader.read(2n)]
    await turn()
    await chain.drain()
    const [first, second] = await Promise.all(reads)
    assert.equal(first?.asset, second?.asset)
    assert.equal(first?.asset.current, true)
  })

  it('keeps its head for a moment when another provider is a little behind, and goes back when it stays there', async () => {
    const { chain, reader, clock, renew } = await warm()
    const head = chain.mine([])
    await readNow(chain, reader, 1n)
    chain.rewind(1)
    await renew()
    assert.equal(reader.head()?.hash, head.hash)
    clock.ms += 800
    assert.equal((await readNow(chain, reader, 1n)).block.hash, head.parentHash)
  })

  it('forgets everything at an event that it does not know', async () => {
    const { chain, reader, clock } = await warm([1n, 2n])
    const { asset } = await readNow(chain, reader, 1n)
    chain.mine([2n], { topic: topics.unheardOf })
    clock.ms += 2000
    await readNow(chain, reader, 2n)
    assert.deepEqual([asset.current, reader.stats().mode, reader.stats().flushes], [false, 'events', 1])
  })

  it('keeps assets for their head only once a proxy reports new code', async () => {
    const { chain, reader, clock } = await warm([1n, 2n])
    chain.mine([2n], { topic: topics.upgraded })
    const { asset } = await readNow(chain, reader, 1n)
    assert.equal(reader.stats().mode, 'head')
    chain.mine([])
    clock.ms += 2000
    await readNow(chain, reader, 1n)
    assert.equal(asset.current, false)
  })

  it('finds a hidden change as soon where heads are seldom asked for', async () => {
    const { chain, reader, clock } = await warm([1n, 2n])
    const { asset } = await readNow(chain, reader, 1n)
    chain.mine([], { hidden: [1n] })
    for (let heads = 0; heads < 2; heads++) {
      await readNow(chain, reader, 2n)
      clock.ms += 2000
      chain.mine([])
    }
    assert.deepEqual([asset.current, reader.stats().auditFailures], [false, 1])
  })

  it('keeps assets for their head only while three audits in a row have failed', async () => {
    const chain = createScriptedChain()
    let isAway = false
    const proof: ChainSource['proof'] = (...args) =>
      isAway ? Promise.reject(chainUnavailable('no proofs')) : chain.source.proof(...args)
    const { reader, clock } = readerOf(chain, { source: { ...chain.source, proof }, auditEvery: 1 })
    const modes: string[] = []
    for (const away of [false, true, true, true, false]) {
      isAway = away
      chain.mine([])
      clock.ms += 2000
      await readNow(chain, reader, 1n)
      modes.push(reader.stats().mode)
    }
    assert.deepEqual(modes, ['events', 'events', 'events', 'head', 'events'])
  })

  it('forgets everything once nothing was asked for longer than an audit may wait', async () => {
    const { chain, reader, clock } = await warm()
    const { asset } = await readNow(chain, reader, 1n)
    chain.mine([])
    clock.ms += 3_201
    await readNow(chain, reader, 2n)
    assert.deepEqual([asset.current, chain.asked.logs], [false, 0])
  })

  it('forgets everything once a provider no longer takes block hashes, at the same head too', async () => {
    const { chain, reader, clock } = await warm([1n, 2n])
    for (const mine of [() => chain.mine([]), () => {}]) {
      const { asset } = await readNow(chain, reader, 1n)
      assert.equal(asset.current, true)
      chain.losePin()
      mine()
      clock.ms += 2000
      await readNow(chain, reader, 2n)
      assert.equal(asset.current, false)
    }
  })

  it('forgets everything over a gap of more than 64 blocks without walking it', async () => {
    const { chain, reader, clock } = await warm()
    const { asset } = await readNow(chain, reader, 1n)
    for (let block = 0; block < 65; block++) chain.mine([])
    clock.ms += 2000
    const { block } = await readNow(chain, reader, 1n)
    assert.deepEqual([asset.current, block.hash, chain.asked.block, chain.asked.logs], [false, chain.tip().hash, 0, 0])
  })
})

describe('a reader on a machine that was suspended', () => {
  it('has no head of before, although its monotonic clock stood still', async (t) => {
    const [stopped, wall] = [performance.now(), Date.now()]
    t.mock.method(performance, 'now', () => stopped)
    const chain = createScriptedChain()
    const token = chain.mine([1n])
    const { reader } = readerOf(chain, { now: undefined })
    await readNow(chain, reader, 1n)
    assert.equal(reader.head()?.hash, token.hash)
    t.mock.method(Date, 'now', () => wall + 28_800_000)
    assert.equal(reader.head(), undefined)
    await readNow(chain, reader, 1n)
    assert.equal(reader.head()?.hash, token.hash)
  })
})
