import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import fc from 'fast-check'
import { decodeEventLog, encodeAbiParameters, encodeEventTopics, type AbiEvent } from 'viem'
import { isChainUnavailable } from '../lib/errors.ts'
import { assetRegistryAbi as abi } from './registry-abi.ts'
import { eventKinds, eventTopics, type ChainLog, parseEvents } from './registry-event.ts'

const contract: Hex = '0x00000000000000000000000000000000000000c0'
const word = (n: number): Hex => `0x${n.toString(16).padStart(64, '0')}`
const place = { address: contract, blockNumber: 7n, blockHash: word(7), logIndex: 3, transactionHash: word(8) }
const timeOf = () => 1_700_000_000n

const known = abi.filter((item) => item.type === 'event' && item.name in eventKinds) as readonly AbiEvent[]

const hex = (bytes: number) =>
  fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((it) => `0x${Buffer.from(it).toString('hex')}`)
const anyOf: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  uint256: fc.oneof(
    fc.bigInt(0n, 2n ** 256n - 1n),
    fc.bigInt(0n, 2n ** 54n),
    fc.constantFrom(2n ** 52n, 2n ** 53n, 0n),
  ),
  uint64: fc.oneof(fc.bigInt(0n, 2n ** 64n - 1n), fc.constant(2n ** 64n - 1n)),
  uint32: fc.nat(2 ** 32 - 1),
  bytes32: hex(32),
  address: hex(20),
}

/** A log of an event with any arguments, and what viem reads in it. */
function logOf(event: AbiEvent): fc.Arbitrary<ChainLog> {
  // A state is one of seven, flags are any byte.
  const uint8 = event.name === 'StateChanged' ? fc.nat(6) : fc.nat(255)
  return fc
    .tuple(...event.inputs.map(({ type }) => (type === 'uint8' ? uint8 : (anyOf[type] ?? fc.constant(null)))))
    .map((values) => {
      const args = Object.fromEntries(event.inputs.map(({ name }, index) => [name, values[index]]))
      const plain = event.inputs.filter(({ indexed }) => indexed !== true)
      const data = encodeAbiParameters(
        plain,
        plain.map(({ name }) => args[name ?? '']),
      )
      const topics = encodeEventTopics({ abi: [event], eventName: event.name, args } as never) as Hex[]
      return { ...place, topics, data: data.toLowerCase() as Hex }
    })
}

describe('the events of a token', () => {
  it('are the nine that concern it', () => {
    assert.deepEqual(known.map(({ name }) => name).toSorted(), Object.keys(eventKinds).toSorted())
    assert.equal(eventTopics.length, 9)
  })

  for (const event of known) {
    it(`${event.name} is read as viem reads it`, () => {
      fc.assert(
        fc.property(logOf(event), (log) => {
          const [found] = parseEvents([log], timeOf)
          const topics = log.topics as [Hex, ...Hex[]]
          const args = decodeEventLog({ abi: [event], topics, data: log.data }).args as unknown as Record<
            string,
            unknown
          >
          const isState = event.name === 'StateChanged'
          const expected = {
            kind: eventKinds[event.name as keyof typeof eventKinds],
            tokenId: String(args['tokenId']),
            fromState: isState ? args['from'] : null,
            toState: isState ? args['to'] : null,
            flags: args['flags'] ?? null,
            from: isState ? null : lower(args['from']),
            to: isState ? null : lower(args['to']),
            actor: lower(args['actor']),
            nonce: args['nonce'] ?? null,
            expiry: args['expiry'] ?? null,
            data:
              [args['metadata'], args['metadataHash'], args['tagHash'], args['reasonHash'], args['messageHash']].find(
                Boolean,
              ) ?? null,
            blockNumber: 7n,
            logIndex: 3,
            blockHash: word(7),
            transactionHash: word(8),
            timestamp: 1_700_000_000n,
          }
          assert.deepEqual(found, expected)
        }),
      )
    })

    it(`${event.name} of another shape is a fault`, () => {
      fc.assert(
        fc.property(logOf(event), ({ topics, data, ...rest }) => {
          const wrong: Pick<ChainLog, 'topics' | 'data'>[] = [
            { topics: topics.slice(0, -1), data },
            { topics: [...topics, word(1)], data },
            { topics, data: `${data}00` },
            { topics, data: `${data}${'0'.repeat(64)}` },
            ...(data === '0x' ? [] : [{ topics, data: '0x' as Hex }]),
          ]
          for (const shape of wrong.filter(({ topics: changed }) => changed.length > 1))
            assert.throws(() => parseEvents([{ ...rest, ...shape }], timeOf), isChainUnavailable)
        }),
        { numRuns: 5 },
      )
    })
  }

  it('with dirty upper bits, or a state that does not exist, are faults', () => {
    const one = (name: string) =>
      fc.sample(logOf(known.find((event) => event.name === name) ?? assert.fail()), 1)[0] ?? assert.fail()
    const changed = one('StateChanged')
    const words = changed.data.slice(2).match(/.{64}/g) ?? []
    const dirty = [
      [`${'0'.repeat(61)}101`, words[1], words[2]],
      [words[0], `${'0'.repeat(63)}7`, words[2]],
      [words[0], words[1], `1${'0'.repeat(63)}`],
    ]
    for (const data of dirty)
      assert.throws(() => parseEvents([{ ...changed, data: `0x${data.join('')}` }], timeOf), isChainUnavailable)
    const sold = one('AssetResold')
    const topics = [sold.topics[0] ?? '0x', sold.topics[1] ?? '0x', word(1), `0x1${'0'.repeat(63)}`] as const
    assert.throws(() => parseEvents([{ ...sold, topics }], timeOf), isChainUnavailable)
  })

  it('are found among logs without a token', () => {
    const other = { ...place, topics: [word(99)], data: '0x' as Hex }
    const nameless = { ...place, topics: [], data: '0x' as Hex }
    const minted =
      fc.sample(logOf(known.find(({ name }) => name === 'AssetMinted') ?? assert.fail()), 1)[0] ?? assert.fail()
    assert.deepEqual(parseEvents([other, minted, nameless], timeOf), parseEvents([minted], timeOf))
  })
})

function lower(value: unknown): string | null {
  return typeof value === 'string' ? value.toLowerCase() : null
}
