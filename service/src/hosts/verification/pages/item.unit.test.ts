import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  type AssetRecord,
  metadataHashOf,
  type StateCode,
  untrustedOf,
  type Verdict,
  verdictOf,
} from '@touchstone/verdict'
import canonicalize from 'canonicalize'
import type { HistoryEvent } from '../../../assets/history.ts'
import type { BrandTheme } from '../../../pages/brands/theme.ts'
import type { ResolvedTap } from '../passport/document.ts'
import { brandOfToken, type ItemSite, itemViewOf, timelineOf } from './item.ts'

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

const contract = `0x${'5f'.repeat(20)}` as const
const owner = `0x${'0a'.repeat(20)}` as const
const block = { number: 7n, hash: `0x${'ab'.repeat(32)}` } as const

/** A page of token 42 whose verdict is of block 7. The reader has come to another block, at which the item is another. */
function pageOf({
  state = 3 as StateCode,
  now = {} as Partial<AssetRecord>,
  lacksText = false,
  isFirstClient = true,
  readText = (text?: string) => text,
} = {}) {
  const texts = new Map<string, string>()
  const stored = (metadata: object) => {
    const body = canonicalize(metadata) ?? ''
    texts.set(metadataHashOf(body), body)
    return metadataHashOf(body)
  }
  const detailsOf = (batch: string) => stored({ name: `Bag ${batch}`, details: stored({ kind: 'bag', batch }) })
  const [then, later] = [detailsOf('A'), detailsOf('B')]
  const record = { owner, timestamp: 1_700n, state, flags: state === 5 ? 1 : 0, reserved: state === 5 ? 4 : 0 }
  const untrusted = lacksText ? undefined : untrustedOf(JSON.parse(texts.get(then) ?? ''))
  const verdict = verdictOf({ record, tokenId: 42n, block, contract, chainId: 84532, untrusted })
  assert.ok(verdict)
  const readings: unknown[] = []
  const changesAsked: unknown[] = []
  const read = async (hash: string) => readText(texts.get(hash))
  const site: ItemSite = {
    baseUrl: 'https://verify.example',
    issuerName: 'Example',
    contract,
    items: { itemOfToken: async () => null, tokenOfItem: async () => null },
    classes: { itemsOfClass: async () => [] },
    metadata: { stored: read },
    metadataTexts: { get: read },
    reader: {
      read: async () => ({
        asset: { record: { ...record, timestamp: 1_702n, ...now }, metadataHash: later },
        block: { number: 8n, hash: `0x${'cd'.repeat(32)}` as const },
      }),
    },
    history: async (_tokenId, reading) => {
      readings.push(reading?.block)
      return { available: false, block, reason: 'INDEX_BEHIND' }
    },
    stateChanges: async (_tokenId, { asset, block: at }) => {
      changesAsked.push([asset.record, at])
      return history([change('NONE', 'MINTED')], [change('CLAIMED', 'ACTIVATED')])
    },
    minters: async () => new Map(),
    issuer: { signerFor: () => ({ forms: [] }) as unknown as ReturnType<ItemSite['issuer']['signerFor']> },
    pictureForms: { of: async () => null } as unknown as ItemSite['pictureForms'],
    reportTickets: undefined,
    certificateTickets: undefined,
    pageClaims: { tickets: { issue: () => 'claim' } },
    pageTransfers: { tickets: { issue: () => 'transfer' } },
    pages: {
      windowSeconds: 300,
      publicRpcUrl: null,
      explorerUrl: null,
      ownership: new Set(['report']),
      themes: [],
      examples: [],
    },
  }
  const found = { verdict, flags: record.flags, timestamp: 1_700, metadataHash: then, item: null }
  const tag = { kind: 'tapped', uid: '04C0FFEE000001', tapCounter: 7, isFirstClient } as unknown as ResolvedTap['tag']
  const tap = { kind: 'resolved', tag, block: { ...block, timestamp: 1_800n }, ...found } as const
  return {
    readings,
    changesAsked,
    view: () => itemViewOf(site, { ...found, tap: { kind: 'untapped' } }),
    tapped: () => itemViewOf(site, { ...found, tap }),
  }
}

describe('itemViewOf', () => {
  it('shows details, facts and history of the verdict’s block, whatever a later block holds', async () => {
    const { view, readings } = pageOf()
    const shown = await view()
    assert.equal(shown.product.name, 'Bag A')
    assert.equal(shown.details?.batch, 'A')
    assert.match(shown.information ?? '', /Bag A/)
    assert.doesNotMatch(shown.information ?? '', /Bag B/)
    assert.deepEqual(readings, [block])
  })

  it('reads the changes of state alone where the history is not available and the situation of a tap depends on them', async () => {
    for (const state of [3, 4] as const) {
      const { tapped, view, changesAsked } = pageOf({ state })
      assert.equal((await view()).changes, null)
      assert.deepEqual(changesAsked, [])
      const { history: shown, changes, changedAt } = await tapped()
      assert.deepEqual([shown, changes?.map(({ kind }) => kind), changedAt], [null, ['stateChanged', 'resold'], 1_700])
      assert.deepEqual(changesAsked, [[{ state, flags: 0, timestamp: 1_700n }, block]])
    }
    const bound = pageOf({ state: 2 })
    assert.equal((await bound.tapped()).changes, null)
    assert.deepEqual(bound.changesAsked, [])
  })

  it('shows the stored text where the verdict lacks it, because the store could not be read for a moment', async () => {
    const shown = await pageOf({ lacksText: true }).view()
    assert.deepEqual([shown.metadata, shown.product, shown.details?.batch], ['match', { name: 'Bag A' }, 'A'])
  })

  it('lets only the first client of a tap claim or offer the item, not a second one to whom its link was sent', async () => {
    for (const [isFirstClient, wanted] of [
      [true, ['claim', 'transfer']],
      [false, [null, null]],
    ] as const) {
      const ticketOf = async (state: StateCode) => {
        const { claimTicket, transfers } = await pageOf({ state, isFirstClient }).tapped()
        return state === 3 ? claimTicket : transfers?.ticket
      }
      assert.deepEqual([await ticketOf(3), await ticketOf(4)], wanted)
    }
  })

  it('keeps a text that cannot be read apart from one that is missing or altered', async () => {
    const failing = () => {
      throw new Error('the store does not answer')
    }
    for (const [readText, metadata] of [
      [failing, 'unread'],
      [() => undefined, 'none'],
      [() => '{"name":"Other"}', 'mismatch'],
    ] as const) {
      const shown = await pageOf({ lacksText: true, readText }).view()
      assert.deepEqual([shown.metadata, shown.product, shown.details], [metadata, {}, null])
    }
    assert.equal((await pageOf({ readText: failing }).view()).metadata, 'match')
  })

  it('says that a flagged item has an owner only by a reading of the same record', async () => {
    const same = await pageOf({ state: 5, now: { timestamp: 1_700n } }).view()
    assert.equal(same.owner, 'claimed')
    assert.ok(same.ownerReports?.lift)
    for (const now of [{}, { timestamp: 1_700n, flags: 2 }, { timestamp: 1_700n, state: 4 as const, reserved: 0 }]) {
      const other = await pageOf({ state: 5, now }).view()
      assert.deepEqual([other.owner, other.ownerReports], ['unknown', null])
    }
  })
})
