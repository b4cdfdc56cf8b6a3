/** When the head is resolved, kept and given up; the clock and the chain are the test's. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { wordOfRecord } from '@touchstone/verdict'
import { nonCanonical } from '../rpc/answer.ts'
import { type ChainSource } from '../rpc/source.ts'
import { createScriptedChain, readerOf, readNow, turn, warm } from '../../../test/support/reader/scripted.ts'

describe('the head of the asset reader', () => {
  it('is resolved anew after a receipt above it, even by a read that joins an older request', async () => {
    const { chain, reader } = await lookingUp()
    const receipt = chain.mine([1n])
    reader.dropHead(receipt.number)
    assert.equal(reader.head(), undefined)
    const { asset, block } = await readNow(chain, reader, 1n)
    assert.deepEqual([block.hash, wordOfRecord(asset.record)], [receipt.hash, chain.wordAt(1n, receipt.hash)])
  })

  it('is resolved anew when its block is not canonical, even by a read that joins an older request', async () => {
    const { chain, reader } = await lookingUp([1n, 2n])
    chain.rewind(1)
    const other = chain.mine([2n])
    const reading = reader.read(2n)
    await turn()
    for (let gate = 0; gate < 2; gate++) {
      chain.release(1) // the read, pinned to the non-canonical block
      await turn()
    }
    const ofCached = reader.read(1n)
    chain.release(0) // the older request
    await turn()
    assert.equal(reader.head(), undefined)
    await chain.drain()
    const { asset, block } = await reading
    assert.deepEqual([block.hash, wordOfRecord(asset.record)], [other.hash, chain.wordAt(2n, other.hash)])
    assert.equal((await ofCached).block.hash, other.hash)
  })

  it('is kept for a second where a second read does not find it: the backends behind one URL are apart', async () => {
    const chain = createScriptedChain()
    let lacking = 3
    const call: ChainSource['call'] = (...args) => {
      if (lacking-- === 0) return chain.source.call(...args)
      chain.mine([])
      clock.ms += 250
      return Promise.resolve(nonCanonical)
    }
    const source = { ...chain.source, call }
    const { reader, clock } = readerOf(chain, { source, retryPausesMs: [0, 0, 0] })
    const { block } = await readNow(chain, reader, 1n)
    assert.deepEqual([block.number, chain.tip().number, chain.asked.head], [101n, 103n, 2])
  })

  it('stays when the receipt is at or below it', async () => {
    const { chain, reader } = await warm()
    const { block } = await readNow(chain, reader, 1n)
    reader.dropHead(block.number)
    assert.equal(reader.head(), block)
  })

  it('serves for a second after its question was sent, and is renewed once in the background', async () => {
    const { chain, reader, clock } = await warm()
    const { block } = await readNow(chain, reader, 1n)
    const heads = chain.asked.head
    clock.ms += 200
    reader.head()
    assert.equal(chain.asked.head, heads)
    clock.ms += 800
    assert.equal(reader.head(), block)
    reader.head()
    assert.equal(chain.asked.head, heads + 1)
    clock.ms += 1
    assert.equal(reader.head(), undefined)
  })

  it('is as old as its question, however long the answer took', async () => {
    const { chain, reader, clock } = await warm()
    clock.ms += 2_000
    const reading = reader.read(1n)
    await turn()
    clock.ms += 900
    await chain.drain()
    const { block } = await reading
    assert.equal(reader.head(), block)
    clock.ms += 101
    assert.equal(reader.head(), undefined)
  })

  it('is nothing after the end', async () => {
    const { chain, reader } = await warm()
    await readNow(chain, reader, 1n)
    reader.close()
    assert.equal(reader.head(), undefined)
    await assert.rejects(reader.read(1n), { code: 'CHAIN_UNAVAILABLE' })
  })
})

/** A reader whose head is looked up while the answer is on its way. */
async function lookingUp(tokens?: readonly bigint[]) {
  const { chain, reader, clock } = await warm(tokens)
  await readNow(chain, reader, 1n)
  clock.ms += 300
  reader.head()
  await turn()
  chain.release(0)
  await turn()
  return { chain, reader }
}
