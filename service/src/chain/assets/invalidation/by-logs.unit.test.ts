/** Compares the table of events with the contract's own ABI. An event that is missing or read wrongly would be a stale answer. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { type AbiEvent, encodeAbiParameters, toEventSelector } from 'viem'
import { assetRegistryAbi } from '../../../domain/registry-abi.ts'
import { findTouched } from './by-logs.ts'
import type { ChainLog } from '../../../domain/registry-event.ts'

const events = assetRegistryAbi.filter((item) => item.type === 'event') as readonly AbiEvent[]
import { encodeWord } from '../../../lib/words.ts'
const token = 0xabcdefn
const word = (value: bigint): Hex => `0x${encodeWord(value)}`

/** The event with the token in every place of the name tokenId, and 7 in all others. */
function logOf(event: AbiEvent): ChainLog {
  const valueOf = ({ name }: { name?: string | undefined }) => (/^_?tokenId$/.test(name ?? '') ? token : 7n)
  const data = event.inputs.filter(({ indexed }) => !indexed)
  const topics = event.inputs.filter(({ indexed }) => indexed).map((input) => word(valueOf(input)))
  const place = { blockNumber: 1n, blockHash: word(1n), logIndex: 0, transactionHash: word(2n) }
  return {
    ...place,
    address: '0x',
    topics: [toEventSelector(event), ...topics],
    data: encodeAbiParameters(
      data.map(() => ({ type: 'uint256' })),
      data.map(valueOf),
    ),
  }
}

/** Those that are about no single token. */
const aboutNone = (
  'ApprovalForAll ContractURIUpdated RoleGranted RoleRevoked RoleAdminChanged AttesterLimitSet DefaultAdminTransferScheduled ' +
  'DefaultAdminTransferCanceled DefaultAdminDelayChangeScheduled DefaultAdminDelayChangeCanceled'
).split(' ')
const aboutAll = ['BatchMetadataUpdate', 'EIP712DomainChanged']

describe('what an event touches', () => {
  for (const event of events) {
    const expected = aboutNone.includes(event.name)
      ? new Set()
      : aboutAll.includes(event.name)
        ? 'all'
        : new Set([token])
    it(`${event.name}: ${expected === 'all' ? 'all tokens' : expected.size === 0 ? 'none' : 'the token it names'}`, () => {
      assert.deepEqual(findTouched([logOf(event)]).tokens, expected)
    })
  }

  it('is every token for an event that is not known, has another shape, or has no name', () => {
    const transfer = events.find(({ name }) => name === 'Transfer')
    assert.ok(transfer !== undefined)
    const log = logOf(transfer)
    for (const topics of [[word(1n), word(token)], log.topics.slice(0, 3), []]) {
      assert.equal(findTouched([{ ...log, topics }]).tokens, 'all')
    }
    const locked = events.find(({ name }) => name === 'Locked')
    assert.ok(locked !== undefined)
    assert.equal(findTouched([{ ...logOf(locked), data: '0x' }]).tokens, 'all')
  })

  it('is the sum of all logs, and silence only without any', () => {
    const named = events.filter(({ name }) => ['FlagsChanged', 'RoleGranted'].includes(name)).map(logOf)
    assert.deepEqual(findTouched(named), { tokens: new Set([token]), silent: false, newCode: false })
    assert.deepEqual(findTouched([]), { tokens: new Set(), silent: true, newCode: false })
  })

  it('is everything, and for good, when a proxy changes its code', () => {
    const topics = [toEventSelector('Upgraded(address)'), word(1n)]
    const [log] = events.map(logOf)
    assert.ok(log !== undefined)
    assert.deepEqual(findTouched([{ ...log, topics }]), { tokens: 'all', silent: false, newCode: true })
  })
})
