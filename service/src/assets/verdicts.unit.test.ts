import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type AssetRecord, type Hex, type StateCode, untrustedOf, verdictOf } from '@touchstone/verdict'
import type { BlockId } from '../domain/chain.ts'
import { recordedSpan } from '../../test/support/recorded-span.ts'
import { withSpan } from '../lib/async/span.ts'
import type { Log } from '../lib/log.ts'
import { createVerdicts } from './verdicts.ts'

const contract = '0x5fbdb2315678afecb367f032d93f642f64180aa3'
const chainId = 84532
const owner: Hex = '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266'
const metadataHash: Hex = `0x${'ab'.repeat(32)}`
const tagHash: Hex = `0x${'cd'.repeat(32)}`

const blockAt = (number: bigint) => ({
  number,
  hash: `0x${number.toString(16).padEnd(64, '0')}` as Hex,
  timestamp: number,
})

type Asset = { tokenId: bigint; record: AssetRecord; metadataHash: Hex | null; current: boolean }

function asset(changes: Partial<AssetRecord> = {}, hash: Hex | null = null): Asset {
  const record = { owner, timestamp: 1_800_000_000n, state: 4 as StateCode, flags: 0, reserved: 0, ...changes }
  return { tokenId: 7n, record, metadataHash: hash, current: true }
}

/** A maker of verdicts on one token of a chain that the test changes. */
function world(first: Asset, maxEntries = 10) {
  const state = {
    asset: first,
    block: blockAt(100n),
    /** Runs inside of `head()`. */
    atHead: () => {},
    head: true,
    texts: new Map<string, string>(),
    asked: 0,
    storeFails: false,
    /** The store answers when this is settled. */
    held: Promise.resolve(),
    now: 0,
    warnings: [] as string[],
    tags: [] as (Hex | undefined)[],
  }
  const log = { warn: (message: string) => state.warnings.push(message) } as unknown as Log
  const verdicts = createVerdicts({
    assets: {
      read: async () => ({ asset: state.asset, block: state.block }),
      head: (): BlockId | undefined => {
        state.atHead()
        return state.head ? state.block : undefined
      },
      readByTag: async (...tags) => {
        state.tags.push(...tags)
        return { asset: tags[0] === tagHash ? state.asset : null, tagHash: tags[1] ?? tagHash, block: state.block }
      },
    },
    metadata: {
      get: async (hash) => {
        state.asked += 1
        await state.held
        if (state.storeFails) throw new Error('no store')
        return state.texts.get(hash)
      },
    },
    contract,
    maxEntries,
    log,
    now: () => state.now,
  })
  return { state, verdicts }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

/** Applies the rules of the client library to the record at the block. */
function expected({ record, tokenId }: Asset, block: BlockId, metadata?: object) {
  return verdictOf({ record, tokenId, block, contract, chainId, ...(metadata && { untrusted: untrustedOf(metadata) }) })
}

describe('the verdict on a token', () => {
  it('is what the rules make of its record at the block, in each state and under each flag', async () => {
    for (const state of [1, 2, 3, 4, 5, 6] as const)
      for (const flags of [0, 1, 0x1f, 0x20]) {
        const one = asset({ state, flags, reserved: state === 5 ? 4 : 0 })
        const { state: chain, verdicts } = world(one)
        const answer = await verdicts.answer(7n)
        assert.ok(answer)
        assert.equal(answer.body, JSON.stringify(expected(one, chain.block)))
        assert.deepEqual(answer.verdict, expected(one, chain.block))
        assert.equal(answer.byteLength, Buffer.byteLength(answer.body))
        assert.equal(answer.flags, flags)
      }
  })

  it('is none for a token that does not exist', async () => {
    const { verdicts } = world(asset({ owner: `0x${'0'.repeat(40)}`, timestamp: 0n, state: 0 }))
    assert.equal(await verdicts.answer(7n), null)
    assert.deepEqual(await verdicts.byTag(tagHash), { block: blockAt(100n), asset: null })
  })

  it('is the same object while the block stays, and names each later block', async () => {
    const one = asset()
    const { state, verdicts } = world(one)
    const first = await verdicts.answer(7n)
    assert.equal(await verdicts.answer(7n), first)
    state.block = blockAt(101n)
    const second = await verdicts.answer(7n)
    assert.ok(first && second)
    assert.equal(second.body, JSON.stringify(expected(one, blockAt(101n))))
    assert.deepEqual(second.verdict, expected(one, blockAt(101n)))
    assert.equal(second.byteLength, Buffer.byteLength(second.body))
    assert.notEqual(second.etag, first.etag)
    assert.equal(first.body, JSON.stringify(expected(one, blockAt(100n))), 'the first one stays as it was')
  })

  it('follows the record when the chain has another', async () => {
    const { state, verdicts } = world(asset())
    await verdicts.answer(7n)
    state.asset = asset({ state: 5, flags: 2, reserved: 4 })
    assert.equal((await verdicts.answer(7n))?.body, JSON.stringify(expected(state.asset, state.block)))
  })

  it('has the same etag in each process of a fleet', async () => {
    const one = asset({ flags: 1 }, metadataHash)
    const { state, verdicts } = world(one)
    state.texts.set(metadataHash, '{"name":"Bag"}')
    const commitment = expected(one, state.block)?.owner_commitment?.slice(2, 18)
    const etag = `"4f-${commitment}-${'ab'.repeat(8)}-${state.block.hash.slice(2, 18)}"`
    assert.equal((await verdicts.answer(7n))?.etag, etag)
  })

  it('has an etag of its own for each state, flag, owner, metadata and block', async () => {
    const text = '{"name":"Bag"}'
    const variants: [Asset, bigint][] = [
      [asset(), 100n],
      [asset(), 101n],
      [asset({ state: 3 }), 100n],
      [asset({ flags: 1 }), 100n],
      [asset({ owner: `0x${'12'.repeat(20)}` }), 100n],
      [asset({ owner: `0x${'0'.repeat(40)}` }), 100n],
      [asset({}, metadataHash), 100n],
      [asset({}, `0x${'ef'.repeat(32)}`), 100n],
    ]
    const etags = new Set<string>()
    for (const [one, block] of variants) {
      const { state, verdicts } = world(one)
      state.block = blockAt(block)
      if (one.metadataHash !== null) state.texts.set(one.metadataHash, text)
      const etag = (await verdicts.answer(7n))?.etag ?? ''
      assert.match(etag, /^"[\w-]+"$/)
      etags.add(etag)
    }
    assert.equal(etags.size, variants.length)
  })
})

describe('the metadata of a verdict', () => {
  const product = { name: 'Bag', description: `"block_number":0,"block_hash":"0x${'0'.repeat(64)}" ünïcode` }

  it('stands in it as untrusted, even where it imitates the place of the block', async () => {
    const one = asset({}, metadataHash)
    const { state, verdicts } = world(one)
    state.texts.set(metadataHash, JSON.stringify(product))
    const answer = await verdicts.answer(7n)
    assert.equal(answer?.body, JSON.stringify(expected(one, state.block, product)))
    assert.deepEqual(answer.verdict, expected(one, state.block, product))
    assert.equal(answer.byteLength, Buffer.byteLength(answer.body))
    state.block = blockAt(101n)
    assert.equal((await verdicts.answer(7n))?.body, JSON.stringify(expected(one, state.block, product)))
    assert.equal(state.asked, 1, 'the text is read once')
  })

  it('is not asked for where the token has none', async () => {
    const { state, verdicts } = world(asset())
    assert.equal('untrusted' in ((await verdicts.answer(7n))?.verdict ?? {}), false)
    state.now = 1e9
    await verdicts.answer(7n)
    assert.equal(state.asked, 0)
  })

  for (const [name, prepare] of [
    ['unknown', () => {}],
    ['in a store that fails', (state: { storeFails: boolean }) => (state.storeFails = true)],
    ['no JSON', (state: { texts: Map<string, string> }) => state.texts.set(metadataHash, '{')],
  ] as const)
    it(`is left out while it is ${name}, and asked for again after 5 s`, async () => {
      const one = asset({}, metadataHash)
      const { state, verdicts } = world(one)
      prepare(state)
      const bare = await verdicts.answer(7n)
      assert.equal(bare?.body, JSON.stringify(expected(one, state.block)))
      assert.equal(state.warnings.length, name === 'unknown' ? 0 : 1)
      state.storeFails = false
      state.texts.set(metadataHash, JSON.stringify(product))
      state.now = 3_999
      assert.equal((await verdicts.answer(7n))?.body, JSON.stringify(expected(one, state.block)))
      assert.ok(verdicts.ready('7'))
      assert.equal(state.asked, 1)
      state.now = 5_000
      assert.equal(verdicts.ready('7'), undefined)
      const whole = await verdicts.answer(7n)
      assert.equal(whole?.body, JSON.stringify(expected(one, state.block, product)))
      assert.notEqual(whole.etag, bare.etag)
      state.now = 1e9
      assert.ok(verdicts.ready('7'))
      await verdicts.answer(7n)
      assert.equal(state.asked, 2)
    })

  it('is left out where the store does not answer within 1.5 s, and found once it does', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const one = asset({}, metadataHash)
    const { state, verdicts } = world(one)
    state.held = new Promise(() => {})
    const bare = verdicts.answer(7n)
    await settled()
    t.mock.timers.tick(1_499)
    await settled()
    assert.deepEqual(state.warnings, [])
    t.mock.timers.tick(1)
    assert.equal((await bare)?.body, JSON.stringify(expected(one, state.block)))
    assert.deepEqual(state.warnings, ['metadata unavailable'])
    state.held = Promise.resolve()
    state.texts.set(metadataHash, JSON.stringify(product))
    state.now = 5_000
    assert.equal((await verdicts.answer(7n))?.body, JSON.stringify(expected(one, state.block, product)))
  })

  it('is looked for while the verdict without it is served, by one request a time', async () => {
    const one = asset({}, metadataHash)
    const { state, verdicts } = world(one)
    const bare = await verdicts.answer(7n)
    state.now = 4_000
    assert.equal(verdicts.ready('7'), bare)
    assert.equal(verdicts.ready('7'), bare)
    await settled()
    assert.equal(state.asked, 2)
    state.now = 8_000
    state.texts.set(metadataHash, JSON.stringify(product))
    assert.equal(verdicts.ready('7'), bare, 'good for five seconds from the second look')
    await settled()
    assert.equal(verdicts.ready('7')?.body, JSON.stringify(expected(one, state.block, product)))
    assert.equal(state.asked, 3)
  })

  it('may be missing for five seconds to the last millisecond', async () => {
    const { state, verdicts } = world(asset({}, metadataHash))
    const bare = await verdicts.answer(7n)
    state.now = 4_999
    assert.equal(verdicts.ready('7'), bare)
    state.now = 5_000
    assert.equal(verdicts.ready('7'), undefined)
  })

  it('does not take the place of a newer verdict, where the asset changed while the text was looked for', async () => {
    const { state, verdicts } = world(asset({}, metadataHash))
    await verdicts.answer(7n)
    state.now = 4_000
    const { promise, resolve } = Promise.withResolvers<void>()
    state.held = promise
    state.texts.set(metadataHash, JSON.stringify(product))
    assert.ok(verdicts.ready('7'))
    state.held = Promise.resolve()
    const stolen = asset({ state: 5, flags: 2, reserved: 4 })
    state.asset = stolen
    const flagged = await verdicts.answer(7n)
    resolve()
    await settled()
    assert.equal(verdicts.ready('7'), flagged)
    assert.deepEqual(flagged?.verdict, expected(stolen, state.block))
  })
})

describe('a verdict that is ready', () => {
  it('is that of the head, at once', async () => {
    const one = asset()
    const { state, verdicts } = world(one)
    assert.equal(verdicts.ready('7'), undefined, 'not before it was made')
    await verdicts.answer(7n)
    state.block = blockAt(105n)
    assert.equal(verdicts.ready('7')?.body, JSON.stringify(expected(one, blockAt(105n))))
    assert.equal(verdicts.ready('8'), undefined)
  })

  it('is none once the asset has changed, or changes while the head is read, or where there is no head', async () => {
    const one = asset()
    const { state, verdicts } = world(one)
    await verdicts.answer(7n)
    state.head = false
    assert.equal(verdicts.ready('7'), undefined)
    state.head = true
    state.atHead = () => (one.current = false)
    assert.equal(verdicts.ready('7'), undefined)
    state.atHead = () => assert.fail('the head is of no interest any more')
    assert.equal(verdicts.ready('7'), undefined)
  })

  it('is none of an asset that was not current when it was read', async () => {
    const { state, verdicts } = world({ ...asset(), current: false })
    const first = await verdicts.answer(7n)
    assert.ok(first)
    state.asset.current = true
    assert.equal(verdicts.ready('7'), undefined)
  })

  it('is one of so many at most', async () => {
    const { state, verdicts } = world(asset(), 2)
    for (const tokenId of [7n, 8n, 9n]) {
      state.asset = { ...asset(), tokenId }
      await verdicts.answer(tokenId)
    }
    assert.deepEqual(
      ['7', '8', '9'].map((key) => verdicts.ready(key) !== undefined),
      [false, true, true],
    )
  })

  it('takes 1.5 kB of memory on the average at most, however long its text is', async () => {
    const maxEntries = 1_000
    const { state, verdicts } = world(asset({}, metadataHash), maxEntries)
    state.texts.set(metadataHash, JSON.stringify({ description: '真皮手提包黄铜配件'.repeat(400) }))
    const keys = Array.from({ length: 300 }, (_, at) => String(at + 1))
    for (const key of keys) {
      state.asset = { ...asset({}, metadataHash), tokenId: BigInt(key) }
      await verdicts.answer(BigInt(key))
    }
    const kept = keys.map((key) => verdicts.ready(key)).filter((answer) => answer !== undefined)
    assert.notEqual(verdicts.ready('300'), undefined)
    // The body and the verdict both have the text, with two bytes for each character.
    const bytes = kept.reduce((sum, { body }) => sum + 2 * 2 * body.length, 0)
    assert.ok(bytes > 1_000_000 && bytes <= maxEntries * 1_500, `${kept.length} verdicts take ${bytes} bytes`)
  })
})

describe('the verdict on the token of a tag', () => {
  it('is that of the token at the block, with the time of its record and its metadata hash', async () => {
    const one = asset({}, metadataHash)
    const { state, verdicts } = world(one)
    state.texts.set(metadataHash, '{"name":"Bag"}')
    const former: Hex = `0x${'ee'.repeat(32)}`
    assert.deepEqual(await verdicts.byTag(tagHash, former), {
      block: state.block,
      asset: {
        verdict: expected(one, state.block, { name: 'Bag' }),
        flags: 0,
        timestamp: 1_800_000_000,
        metadataHash,
        tagHash: former,
      },
    })
    assert.deepEqual(state.tags, [tagHash, former])
  })

  it('is none where no token carries the tag', async () => {
    const { verdicts } = world(asset())
    assert.deepEqual(await verdicts.byTag(metadataHash), { block: blockAt(100n), asset: null })
  })
})

describe('the verdicts on many tokens', () => {
  /** A maker whose reads return these blocks, one after another, the last one from then on. */
  function reading(...numbers: bigint[]) {
    const asked: bigint[] = []
    const verdicts = createVerdicts({
      assets: {
        read: async (tokenId) => {
          const block = blockAt(numbers[Math.min(asked.length, numbers.length - 1)] ?? 0n)
          asked.push(tokenId)
          return { asset: { ...asset(tokenId === 9n ? { state: 0 } : {}), tokenId }, block }
        },
        head: () => undefined,
        readByTag: () => assert.fail('no tag is read'),
      },
      metadata: { get: async () => undefined },
      contract,
      maxEntries: 10,
      log: { warn: () => {} } as unknown as Log,
    })
    return { asked, verdicts }
  }

  it('stand at one block, in the order of the tokens, null for one that does not exist', async () => {
    const { asked, verdicts } = reading(100n)
    const { block, answers } = await verdicts.answers([8n, 9n, 7n])
    assert.deepEqual(block, blockAt(100n))
    assert.deepEqual(
      answers.map((answer) => answer?.body),
      [8n, undefined, 7n].map((id) => id && JSON.stringify(expected({ ...asset(), tokenId: id }, blockAt(100n)))),
    )
    assert.deepEqual(asked, [8n, 9n, 7n])
  })

  it('are read again where the head moved between two reads', async () => {
    for (const numbers of [
      [100n, 101n, 101n],
      [101n, 100n, 101n],
      [100n, 101n, 101n, 100n, 102n, 101n, 101n],
    ]) {
      const { verdicts } = reading(...numbers)
      const { block, answers } = await verdicts.answers([7n, 8n])
      assert.deepEqual(block, blockAt(101n))
      for (const answer of answers) assert.equal(answer?.verdict.chainRef.block_hash, blockAt(101n).hash)
    }
  })

  it('are refused after four attempts', async () => {
    const { asked, verdicts } = reading(...Array.from({ length: 8 }, (_, index) => BigInt(100 + index)), 200n)
    await assert.rejects(verdicts.answers([7n, 8n]), { code: 'CHAIN_UNAVAILABLE' })
    assert.equal(asked.length, 8)
  })

  it('have no block where no token was asked for', async () => {
    assert.deepEqual(await reading(100n).verdicts.answers([]), { block: null, answers: [] })
  })
})

describe('the trace of a verdict', () => {
  it('has one span of this name, however it was asked for', async () => {
    const { span, names } = recordedSpan()
    const { verdicts } = world(asset())
    await withSpan(span, async () => {
      await verdicts.answer(7n)
      await verdicts.answers([7n])
      await verdicts.byTag(tagHash)
    })
    assert.deepEqual(names, ['verdict', 'verdict', 'verdict'])
  })
})
