/** Calldata against another encoder, answers against everything that an answer must not be. */
import { encodeWord } from '../../../lib/words.ts'
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type AssetRecord, type Hex, wordOfRecord } from '@touchstone/verdict'
import fc from 'fast-check'
import { encodeAbiParameters, encodeFunctionData, multicall3Abi, toFunctionSelector } from 'viem'
import registry from '../../../../../contracts/artifacts/AssetRegistry.json' with { type: 'json' }
import { assetRegistryAbi as abi } from '../../../domain/registry-abi.ts'
import {
  encodeListCall,
  encodeCall,
  decodeGetAsset,
  decodeGetAssets,
  decodeGetAssetsWithMetadata,
  decodeGetAssetByTag,
  selectors,
  encodeSupportsCall,
  encodeAggregate,
  decodeAggregate,
} from './abi.ts'
import { registrySlots } from './storage-proof.ts'

const ids = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n })
const hashes = fc.bigInt({ min: 1n, max: 2n ** 256n - 1n }).map((value): Hex => `0x${encodeWord(value)}`)
const plain = { noNullPrototype: true } as const
const records: fc.Arbitrary<AssetRecord> = fc.record(
  {
    owner: fc
      .bigInt({ min: 0n, max: 2n ** 160n - 1n })
      .map((value): Hex => `0x${value.toString(16).padStart(40, '0')}`),
    timestamp: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
    state: fc.constantFrom(1, 2, 3, 4, 5, 6),
    flags: fc.nat(255),
    reserved: fc.nat(65535),
  },
  plain,
)
const found = fc.record({ record: records, metadataHash: fc.option(hashes) }, plain)
const lists = fc.array(found, { maxLength: 20 })

const zeroHash: Hex = `0x${encodeWord(0n)}`
const words = { type: 'uint256[]' } as const
const hashList = { type: 'bytes32[]' } as const
const wordsOf = (list: readonly { record: AssetRecord }[]) => list.map(({ record }) => wordOfRecord(record))

describe('the calldata of a read', () => {
  it('is what another encoder writes', () => {
    fc.assert(
      fc.property(fc.array(ids), ids, hashes, (list, id, tag) => {
        for (const functionName of ['getAssets', 'getAssetsWithMetadata'] as const) {
          const expected = encodeFunctionData({ abi, functionName, args: [list] })
          assert.equal(encodeListCall(selectors[functionName], list), expected)
        }
        for (const functionName of ['getAsset', 'metadataHash'] as const) {
          const expected = encodeFunctionData({ abi, functionName, args: [id] })
          assert.equal(encodeCall(selectors[functionName], id), expected)
        }
        for (const functionName of ['getAssetByTag', 'getTokenByTag'] as const) {
          const expected = encodeFunctionData({ abi, functionName, args: [tag] })
          assert.equal(encodeCall(selectors[functionName], BigInt(tag)), expected)
        }
      }),
    )
  })

  it('asks ERC-165 for the selector of a function', () => {
    const interfaceId = toFunctionSelector('getAssets(uint256[])')
    const expected = encodeFunctionData({ abi, functionName: 'supportsInterface', args: [interfaceId] })
    assert.equal(encodeSupportsCall(selectors.getAssets), expected)
  })

  it('is, through Multicall3, what another encoder writes', () => {
    const target: Hex = `0x${'12'.repeat(20)}`
    const datas = fc.array(
      fc.uint8Array({ maxLength: 70 }).map((bytes): Hex => `0x${Buffer.from(bytes).toString('hex')}`),
    )
    fc.assert(
      fc.property(datas, (list) => {
        const calls = list.map((callData) => ({ target, allowFailure: true, callData }))
        const expected = encodeFunctionData({ abi: multicall3Abi, functionName: 'aggregate3', args: [calls] })
        assert.equal(encodeAggregate(target, list), expected)
      }),
    )
  })
})

describe('the answer of a list read', () => {
  it('gives each token its own record and metadata hash', () => {
    fc.assert(
      fc.property(lists, (list) => {
        const metadata = list.map(({ metadataHash }) => metadataHash ?? zeroHash)
        const both = encodeAbiParameters([words, hashList], [wordsOf(list), metadata])
        assert.deepEqual(decodeGetAssetsWithMetadata(both, list.length), list)
        const without = list.map(({ record }) => ({ record, metadataHash: null }))
        assert.deepEqual(decodeGetAssets(encodeAbiParameters([words], [wordsOf(list)]), list.length), without)
      }),
    )
  })

  it('is rejected when it is for another number of tokens, cut, extended or laid out otherwise', () => {
    const list = wordsOf(fc.sample(found, { numRuns: 3, seed: 7 }))
    const one = encodeAbiParameters([words], [list])
    const two = encodeAbiParameters([words, hashList], [list, [zeroHash, zeroHash, zeroHash]])
    for (const [decode, data] of [
      [decodeGetAssets, one],
      [decodeGetAssetsWithMetadata, two],
    ] as const) {
      assert.notEqual(decode(data, 3), null)
      for (const count of [0, 2, 4]) assert.equal(decode(data, count), null)
      for (const other of [data.slice(0, -64), data.slice(0, -2), `${data}${encodeWord(0n)}`, '0x']) {
        assert.equal(decode(other as Hex, 3), null)
      }
    }
    const changed = (data: Hex, at: number): Hex => {
      const digit = 2 + 64 * at + 63
      return `0x${data.slice(2, digit)}${data[digit] === '1' ? '2' : '1'}${data.slice(digit + 1)}`
    }
    for (const at of [0, 1]) assert.equal(decodeGetAssets(changed(one, at), 3), null, `word ${at}`)
    for (const at of [0, 1, 2, 6]) assert.equal(decodeGetAssetsWithMetadata(changed(two, at), 3), null, `word ${at}`)
  })

  it('points at the token whose word cannot be a record', () => {
    const impossible = [7n << 224n, 1n]
    for (const word of impossible) {
      const data = encodeAbiParameters([words], [[0n, word]])
      const [first, second] = decodeGetAssets(data, 2) ?? []
      assert.deepEqual([first?.record.state, second], [0, null])
    }
  })
})

describe('the answer of a single read', () => {
  const getAsset = (values: readonly bigint[]): Hex => `0x${values.map(encodeWord).join('')}`

  it('needs exactly five clean words, and one for the metadata hash', () => {
    const clean = [1n, 2n, 1n, 4n, 5n]
    assert.equal(decodeGetAsset(getAsset(clean), zeroHash)?.metadataHash, null)
    assert.equal(decodeGetAsset(getAsset(clean), `0x${encodeWord(9n)}`)?.metadataHash, `0x${encodeWord(9n)}`)
    assert.equal(decodeGetAsset(getAsset([...clean, 0n]), null), null)
    assert.equal(decodeGetAsset(getAsset([2n ** 160n, 2n, 1n, 4n, 5n]), null), null)
    assert.equal(decodeGetAsset(getAsset(clean), '0x'), null)
  })
})

describe('the answer of a read by tag', () => {
  const answer = (...values: bigint[]): Hex => `0x${values.map(encodeWord).join('')}`
  const word = 1n << 224n

  it('is a token with its asset, or nothing at all', () => {
    assert.deepEqual(decodeGetAssetByTag(answer(0n, 0n, 0n)), { tokenId: null })
    const tag = decodeGetAssetByTag(answer(5n, word, 6n))
    assert.ok(tag !== null && tag.tokenId === 5n)
    assert.deepEqual([tag.decoded.record.state, tag.decoded.metadataHash], [1, `0x${encodeWord(6n)}`])
  })

  it('is rejected for a record without a token, a token without a record, and any other size', () => {
    const impossible = [answer(0n, word, 0n), answer(0n, 0n, 1n), answer(5n, 0n, 0n), answer(5n, 7n << 224n, 0n)]
    for (const data of [...impossible, answer(5n, word), answer(5n, word, 6n, 0n)])
      assert.equal(decodeGetAssetByTag(data), null)
  })
})

describe('the answer of Multicall3', () => {
  const results = { type: 'tuple[]', components: [{ type: 'bool' }, { type: 'bytes' }] } as const
  const bytes = fc.uint8Array({ maxLength: 70 }).map((value): Hex => `0x${Buffer.from(value).toString('hex')}`)
  const outcomes = fc.array(fc.tuple(fc.boolean(), bytes), { maxLength: 10 })

  it('gives each call its result, and none to a call that reverted', () => {
    fc.assert(
      fc.property(outcomes, (list) => {
        const data = encodeAbiParameters([results], [list])
        const expected = list.map(([success, result]) => (success ? result : null))
        assert.deepEqual(decodeAggregate(data, list.length), expected)
        assert.equal(decodeAggregate(data, list.length + 1), null)
        assert.equal(decodeAggregate(`${data}${encodeWord(0n)}`, list.length), null)
        assert.equal(decodeAggregate(data.slice(0, -64) as Hex, list.length), null)
      }),
    )
  })

  it('is rejected in any other layout', () => {
    const data = encodeAbiParameters(
      [results],
      [
        [
          [true, '0x1234'],
          [false, '0x'],
        ],
      ],
    )
    for (let at = 2; at < data.length; at++) {
      const changed = `${data.slice(0, at)}${data[at] === '2' ? '4' : '2'}${data.slice(at + 1)}` as Hex
      const decoded = decodeAggregate(changed, 2)?.map((result) => [result !== null, result ?? '0x'] as const)
      // A changed answer that is still decoded encodes to the same bytes.
      assert.ok(decoded === undefined || encodeAbiParameters([results], [decoded]) === changed, `digit ${at}`)
    }
  })
})

describe('the slots of the registry', () => {
  it('are those of its storage layout', () => {
    const slotOf = (name: string) =>
      BigInt(registry.storageLayout.storage.find(({ label }) => label === name)?.slot ?? -1)
    const expected = { records: slotOf('_assets'), tags: slotOf('_tokenByTag'), metadata: slotOf('_metadataHashes') }
    assert.deepEqual(registrySlots, expected)
  })
})
