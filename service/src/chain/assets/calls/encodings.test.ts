/** All forms of reading on a real chain: they must agree, whatever the contract offers. */
import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { encodeFunctionData, parseAbi } from 'viem'
import faulty from '../../../../../contracts/artifacts/FaultyCore.json' with { type: 'json' }
import foreign from '../../../../../contracts/artifacts/ForeignCore.json' with { type: 'json' }
import multicall from '../../../../../contracts/artifacts/Multicall3.json' with { type: 'json' }
import { metadataOf, readerOver, startRegistry } from '../../../../test/support/reader/anvil.ts'
import { createProvenRead, proofEncoding } from './storage-proof.ts'
import { useOpened } from '../../../../test/support/opened.ts'
import { until } from '../../../../test/support/wait.ts'
import { multicallAddress } from '../../../domain/chain.ts'
import { encodeSupportsCall, selectors } from './abi.ts'
import {
  listEncoding,
  multicallEncoding,
  readTagged,
  type CallEncoding,
  registryEncoding,
  singleEncoding,
  createEncodingDetector,
} from './encodings.ts'
import { nonCanonical } from '../../rpc/answer.ts'

const tag: Hex = `0x${'5a'.repeat(32)}`
import { encodeWord } from '../../../lib/words.ts'
const noReason: Hex = `0x${'00'.repeat(32)}`
const soon = () => performance.now() + 60_000

describe('the forms of reading', () => {
  const chain = useOpened(startRegistry)
  let other: Hex
  let broken: Hex

  before(async () => {
    await chain.mintMany(60)
    await chain.write('bindTag', [7n, tag])
    await chain.write('activate', [7n])
    await chain.write('flag', [7n, 0x0c, noReason])
    other = await chain.deploy(foreign.bytecode)
    broken = await chain.deploy(faulty.bytecode)
    await withMulticall(true)
  })

  async function withMulticall(there: boolean): Promise<void> {
    await chain.rpc('anvil_setCode', [multicallAddress, there ? multicall.deployedBytecode : '0x'])
    await chain.mine()
  }

  /** Sends to any contract, in a block of its own. */
  async function sendTo(
    to: Hex,
    abi: readonly string[],
    functionName: string,
    args: readonly unknown[],
  ): Promise<void> {
    const data = encodeFunctionData({ abi: parseAbi(abi), functionName, args } as never)
    await chain.rpc('eth_sendTransaction', [{ from: chain.owner, to, data, gas: '0xf4240' }])
    await chain.mine()
  }

  it('agree on every token, minted or not, and on a tag', async () => {
    const { source } = readerOver(chain)
    const { contract, codeHash } = chain
    const options = { source, contract, withMetadata: true }
    const proven = createProvenRead({ source, contract, codeHash })
    const forms = [registryEncoding, listEncoding, multicallEncoding, singleEncoding].map((form) => form(options))
    const ids = [0n, ...Array.from({ length: 48 }, (_, index) => BigInt(index + 20)), 7n, 2n ** 256n - 1n]
    const block = await source.head()
    const answers = await Promise.all([...forms, proofEncoding(proven)].map((form) => form.read(ids, block, soon())))
    for (const answer of answers) assert.deepEqual(answer, answers[0])
    const [first] = answers
    assert.ok(first !== undefined && first !== nonCanonical && 'length' in first)
    assert.deepEqual([first[1]?.metadataHash, first[0]?.metadataHash], [metadataOf(20), null])
    assert.deepEqual([first[0]?.record.state, first[1]?.record.state, first[49]?.record.state], [0, 1, 5])

    const joined = registryEncoding({ ...options, hasMulticall: () => true })
    for (const form of [...forms, joined, proofEncoding(proven)]) {
      const carried: object = { tokenId: 7n, decoded: first[49] }
      assert.deepEqual(await form.byTags([tag], block, soon()), [carried], form.name)
      assert.deepEqual(await form.byTags([noReason, tag], block, soon()), [{ tokenId: null }, carried], form.name)
    }
    let requests = 0
    const calls: typeof source.calls = (...args) => ((requests += 1), source.calls(...args))
    await registryEncoding({ ...options, source: { ...source, calls } }).byTags([noReason, tag], block, soon())
    assert.equal(requests, 1)
    const call: typeof source.call = (...args) => ((requests += 1), source.call(...args))
    await registryEncoding({ ...options, source: { call, calls }, hasMulticall: () => true }).byTags(
      [noReason, tag],
      block,
      soon(),
    )
    assert.equal(requests, 2)
  })

  it('name the tags whose answer is impossible, so that the others are read again', async () => {
    const { source } = readerOver(chain)
    const block = await source.head()
    const failing: Pick<typeof source, 'call' | 'calls'> = {
      call: () => assert.fail('nothing is aggregated'),
      async calls(to, datas, at, { check, ...read } = {}) {
        const answers = await source.calls(to, datas, at, read)
        assert.ok(answers !== nonCanonical)
        const faulty = answers.map((data, index) => (index === 1 ? (`${data}00` as const) : data))
        throw new Error(check?.(faulty) ?? 'the answer is possible')
      },
    }
    const form = registryEncoding({ source: failing, contract: chain.contract, withMetadata: true })
    assert.deepEqual(await form.byTags([noReason, tag], block, soon()), { suspects: new Set([tag]) })
  })

  it('name the tags of a token whose record is impossible', async () => {
    const read = () => Promise.resolve({ suspects: new Set([7n]) })
    const tags = { tagHashes: [noReason, tag], tokenIds: [8n, 7n] }
    const { source } = readerOver(chain)
    assert.deepEqual(await readTagged(read, tags, await source.head(), soon()), { suspects: new Set([tag]) })
  })

  async function chosenFor(contract: Hex, kind: 'auto' | 'foreign' | 'registry'): Promise<CallEncoding['name']> {
    const { source } = readerOver(chain, { contract })
    const form = await createEncodingDetector({ source, contract, interface: kind })(await source.head(), soon())
    assert.ok(form !== nonCanonical)
    return form.name
  }

  it('are chosen by what the contract and the chain offer', async () => {
    await withMulticall(true)
    assert.equal(await chosenFor(chain.contract, 'auto'), 'getAssetsWithMetadata')
    assert.equal(await chosenFor(chain.contract, 'foreign'), 'aggregate3')
    assert.equal(await chosenFor(other, 'auto'), 'aggregate3')
    await withMulticall(false)
    assert.equal(await chosenFor(other, 'auto'), 'getAsset')
    assert.equal(await chosenFor(chain.contract, 'foreign'), 'getAsset')
    await withMulticall(true)
  })

  it('are chosen for a contract with the list of records alone', async () => {
    const { source } = readerOver(chain)
    const call: typeof source.call = (to, data, ...rest) =>
      data === encodeSupportsCall(selectors.getAssetsWithMetadata)
        ? Promise.resolve(noReason)
        : source.call(to, data, ...rest)
    const options = { source: { ...source, call }, contract: chain.contract, interface: 'auto' } as const
    for (const [there, name] of [
      [true, 'aggregate3'],
      [false, 'getAssets'],
    ] as const) {
      await withMulticall(there)
      const form = await createEncodingDetector(options)(await source.head(), soon())
      assert.ok(form !== nonCanonical)
      assert.equal(form.name, name)
    }
    await withMulticall(true)
  })

  it('are chosen again once getAsset answers, and once a missing feature appears', async () => {
    const late = await chain.deploy(faulty.bytecode)
    const answers = (selector: Hex, data: string) =>
      sendTo(late, ['function setAnswer(bytes4 selector, bytes answer)'], 'setAnswer', [selector, data])
    const { source } = readerOver(chain, { contract: late })
    let now = 0
    const choose = createEncodingDetector({ source, contract: late, interface: 'foreign', now: () => now })
    const metadata = async () => {
      const block = await source.head()
      const form = await choose(block, soon())
      assert.ok(form !== nonCanonical)
      const read = await form.read([5n], block, soon())
      return Array.isArray(read) ? (read as readonly { metadataHash: Hex | null }[])[0]?.metadataHash : undefined
    }
    assert.equal(await metadata(), undefined)
    await answers(selectors.getAsset, `0x${[1n, 2n, 1n, 0n, 0n].map(encodeWord).join('')}`)
    assert.equal(await metadata(), null)
    await answers(selectors.metadataHash, `0x${encodeWord(7n)}`)
    assert.equal(await metadata(), null)
    now = 60_000
    await until(async () => (await metadata()) === `0x${encodeWord(7n)}`)
  })

  it('are not chosen while the chain does not answer', async () => {
    const { source } = readerOver(chain)
    const choose = createEncodingDetector({ source, contract: chain.contract, interface: 'auto' })
    const block = await source.head()
    await assert.rejects(choose(block, performance.now()), { code: 'CHAIN_UNAVAILABLE' })
    const form = await choose(block, soon())
    assert.ok(form !== nonCanonical)
    assert.equal(form.name, 'getAssetsWithMetadata')
  })

  it('read a foreign contract, which has no metadata hashes', async () => {
    for (const there of [true, false]) {
      await withMulticall(there)
      const mint = ['function mint(address to, uint256 tokenId, bytes32 metadata)']
      const bind = ['function bindTag(uint256 tokenId, bytes32 tagHash)']
      const tokenId = there ? 11n : 12n
      await sendTo(other, mint, 'mint', [chain.owner, tokenId, metadataOf(1)])
      await sendTo(other, bind, 'bindTag', [tokenId, tag])
      const reader = readerOver(chain, { contract: other, interface: 'auto', cache: 'head' })
      const { asset } = await reader.read(tokenId)
      assert.deepEqual([asset.record.state, asset.record.owner, asset.metadataHash], [2, chain.owner, null])
      assert.equal((await reader.read(13n)).asset.record.state, 0)
      const tagged = await reader.readByTag(tag)
      assert.deepEqual([tagged.tokenId, tagged.asset?.record.state, tagged.asset?.current], [tokenId, 2, false])
    }
  })

  it('give CHAIN_UNAVAILABLE for answers that cannot be', async () => {
    await withMulticall(true)
    const setAnswer = (selector: Hex, answer: string) =>
      sendTo(broken, ['function setAnswer(bytes4 selector, bytes answer)'], 'setAnswer', [selector, answer])
    const asset = (state: bigint) => `0x${[1n, 2n, state, 0n, 0n].map(encodeWord).join('')}`
    const lists = (words: readonly bigint[]) => {
      const list = [BigInt(words.length), ...words].map(encodeWord).join('')
      const empty = [BigInt(words.length), ...words.map(() => 0n)].map(encodeWord).join('')
      return `0x${encodeWord(64n)}${encodeWord(BigInt(96 + 32 * words.length))}${list}${empty}`
    }
    const cases: readonly (readonly ['registry' | 'foreign', Hex, string, boolean])[] = [
      ['foreign', selectors.getAsset, asset(6n), true],
      ['foreign', selectors.getAsset, asset(7n), false],
      ['foreign', selectors.getAsset, asset(1n).slice(0, -64), false],
      ['foreign', selectors.getAsset, `${asset(1n)}${encodeWord(0n)}`, false],
      ['registry', selectors.getAssetsWithMetadata, lists([1n << 224n]), true],
      ['registry', selectors.getAssetsWithMetadata, lists([7n << 224n]), false],
      ['registry', selectors.getAssetsWithMetadata, lists([1n]), false],
      ['registry', selectors.getAssetsWithMetadata, lists([1n << 224n, 1n << 224n]), false],
      ['registry', selectors.getAssetsWithMetadata, `${lists([1n << 224n])}00`, false],
    ]
    for (const [kind, selector, answer, good] of cases) {
      await setAnswer(selector, answer)
      const reader = readerOver(chain, { contract: broken, interface: kind, cache: 'off' })
      if (good) assert.ok((await reader.read(5n)).asset.record.state > 0)
      else await assert.rejects(reader.read(5n), { code: 'CHAIN_UNAVAILABLE' }, `${kind} ${answer}`)
    }
    for (const [record, token, good] of [
      [asset(6n), `0x${encodeWord(5n)}`, true],
      [asset(6n), `0x${encodeWord(5n)}00`, false],
      [asset(7n), `0x${encodeWord(5n)}`, false],
    ] as const) {
      await setAnswer(selectors.getAsset, record)
      await setAnswer(selectors.getTokenByTag, token)
      const reader = readerOver(chain, { contract: broken, interface: 'foreign', cache: 'off' })
      if (good) assert.equal((await reader.readByTag(tag)).tokenId, 5n)
      else await assert.rejects(reader.readByTag(tag), { code: 'CHAIN_UNAVAILABLE' }, token)
    }
  })
})
