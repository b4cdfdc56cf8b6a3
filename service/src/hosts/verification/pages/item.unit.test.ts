import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Verdict } from '@touchstone/verdict'
import type { HistoryEvent } from '../../../assets/history.ts'
import type { BrandTheme } from '../../../pages/brands/theme.ts'
import { brandOfToken, timelineOf } from './item.ts'

type Given = Partial<HistoryEvent> & Pick<HistoryEvent, 'type'>

/** Each list is one transaction. */
function history(...transactions: readonly (readonly Given[])[]): HistoryEvent[] {
  return transactions.flatMap((events, index) =>
    events.map((event, logIndex) => ({
      ...event,
      blockNumber: BigInt(index + 1),
      blockHash: `0x${'0b'.repeat(32)}` as const,
      logIndex,
      transactionHash: `0x${String(index).padStart(64, '0')}` as const,
      timestamp: BigInt(1_000 + index),
    })),
  )
}

const change = (fromState: Given['fromState'], toState: Given['toState']) =>
  ({ type: 'StateChanged', ...(fromState && { fromState }), ...(toState && { toState }) }) satisfies Given

describe('brandOfToken', () => {
  const theme = { id: 'acme', issuers: [`0x${'a1'.repeat(20)}`], gtinPrefixes: [], brands: [] }
  const pages = { themes: [theme as unknown as BrandTheme] }
  const verdict = { token_id: '7' } as Verdict

  it('is that of the account that minted the token, also where its history is too long to be read', async () => {
    const asked: unknown[] = []
    const brandOf = (account: `0x${string}` | null) =>
      brandOfToken(
        { pages, minters: async (...all) => (asked.push(all), new Map([[7n, account]])) },
        { verdict, item: null },
      )
    assert.equal((await brandOf(theme.issuers[0] as `0x${string}`))?.id, 'acme')
    assert.deepEqual(asked, [[[7n], theme.issuers]])
    assert.equal(await brandOf(null), null)
  })

  it('is none while the index cannot be read, and is not looked for where there is no theme', async () => {
    const failing = async () => assert.fail('asked')
    assert.equal(await brandOfToken({ pages, minters: failing }, { verdict, item: null }), null)
    assert.equal(await brandOfToken({ pages: { themes: [] }, minters: failing }, { verdict, item: null }), null)
  })
})

describe('timelineOf', () => {
  it('lists the life of an item, one line for each change', () => {
    const events = history(
      [{ type: 'AssetMinted' }, change('NONE', 'MINTED')],
      [{ type: 'TagBound' }, change('MINTED', 'BOUND')],
      [change('BOUND', 'ACTIVATED')],
      [change('ACTIVATED', 'CLAIMED')],
      [{ type: 'TransferInitiated' }],
      [{ type: 'TransferCancelled' }],
      [{ type: 'TransferInitiated' }],
      [{ type: 'AssetResold' }],
      [{ type: 'FlagsChanged' }, change('CLAIMED', 'FLAGGED')],
      [{ type: 'FlagsChanged' }],
      [{ type: 'FlagsChanged' }, change('FLAGGED', 'CLAIMED')],
      [change('CLAIMED', 'ACTIVATED')],
      [{ type: 'MetadataHashSet' }],
      [change('ACTIVATED', 'RECYCLED')],
    )
    assert.deepEqual(
      timelineOf(events).map(({ kind }) => kind),
      [
        'minted',
        'bound',
        'activated',
        'claimed',
        'transferStarted',
        'transferCancelled',
        'transferStarted',
        'transferred',
        'flagged',
        'flagsChanged',
        'unflagged',
        'resold',
        'metadataSet',
        'recycled',
      ],
    )
  })

  it('names time, block and transaction, and an unknown step by its state', () => {
    const [entry] = timelineOf(history([change('ACTIVATED', 'MINTED')]))
    assert.deepEqual(entry, {
      kind: 'stateChanged',
      state: 'MINTED',
      at: 1_000,
      block: 1,
      transaction: `0x${'0'.repeat(64)}`,
    })
  })

  it('ends the life of a flagged item by recycling, not by lifting the flag', () => {
    assert.equal(timelineOf(history([change('FLAGGED', 'RECYCLED')]))[0]?.kind, 'recycled')
  })

  it('looks at each event a few times, however many there are, because an owner can make a thousand', () => {
    const lift = [{ type: 'FlagsChanged' }, change('FLAGGED', 'CLAIMED')] as const
    const reported = history(...Array.from({ length: 250 }, () => lift), [...lift, ...lift])
    let looks = 0
    const events = reported.map((event) => ({
      ...event,
      get transactionHash() {
        looks += 1
        return event.transactionHash
      },
    }))
    assert.equal(timelineOf(events).length, 252)
    assert.ok(looks < 10 * events.length, `${looks} looks at ${events.length} events`)
  })
})
