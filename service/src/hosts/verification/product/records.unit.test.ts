/** The cost of look-ups of batches and models: it must not grow with the texts of suppliers at each request. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { metadataHashOf } from '@touchstone/verdict'
import type { History } from '../../../assets/history.ts'
import { encodeWord } from '../../../lib/words.ts'
import { hasProduct, type ProductSite, readProduct } from './records.ts'

const wordOf = (value: number) => `0x${encodeWord(BigInt(value))}` as const
const details = wordOf(1_000)
const count = 50

const texts = new Map<string, string>([[details, JSON.stringify({ batch: 'L-1' })]])
for (let item = 0; item < count; item++) texts.set(wordOf(item), JSON.stringify({ details, name: `Item ${item}` }))

const site: ProductSite = {
  baseUrl: 'https://a.example',
  contract: `0x${'c'.repeat(40)}`,
  items: { tokenOfItem: async () => null },
  classes: {
    itemsOfClass: async () =>
      Array.from({ length: count }, (_, item) => ({ tokenId: BigInt(item), metadataHash: wordOf(item) })),
  },
  metadataTexts: { get: async (hash) => texts.get(hash) },
  metadata: { stored: async (hash) => texts.get(hash) },
  reader: { read: () => Promise.reject(new Error('No item of this batch is read.')) },
  history: () => Promise.reject(new Error('No history is asked for.')),
}

describe('the look-up of a batch', () => {
  it('parses the metadata of an item once, however often batches of its model are asked for', async (t) => {
    const { mock } = t.mock.method(JSON, 'parse')
    for (const batch of ['A', 'B', 'C', 'D'])
      assert.equal(await hasProduct(site, { kind: 'batch', gtin: '09520123456788', batch }), false)
    assert.ok(mock.callCount() <= count + 1, `${mock.callCount()} texts parsed`)
  })
})

describe('a passport at a moment', () => {
  const metadata = metadataHashOf('{"name":"Item"}')
  const place = { blockNumber: 1n, blockHash: details, transactionHash: details, logIndex: 0, timestamp: 100n }
  const set = { ...place, type: 'MetadataHashSet', metadataHash: metadata } as const
  const mint = { ...place, type: 'StateChanged', toState: 'MINTED' } as const
  const readAt = (known: History, at = 100) =>
    readProduct(
      {
        ...site,
        metadata: { stored: async () => '{"name":"Item"}' },
        reader: {
          read: async () => ({
            asset: { record: { state: 1, flags: 0 }, metadataHash: metadata },
            block: { number: 1n, hash: details },
          }),
        },
        history: async () => known,
      },
      { kind: 'token', tokenId: 1n },
      { at },
    )
  const whole = (...events: readonly object[]) => ({ available: true, events }) as unknown as History

  it('is not read without a history that is whole and has all times', async () => {
    assert.equal((await readAt(whole(mint, set)))?.text.name, 'Item')
    assert.equal(await readAt(whole(mint, set), 99), null)
    for (const known of [
      { available: false, reason: 'INDEX_BEHIND' } as History,
      whole(mint, { ...set, timestamp: 0n }),
      whole({ ...mint, timestamp: 0n }, set),
      whole(set),
    ])
      await assert.rejects(readAt(known), { code: 'HISTORY_UNAVAILABLE' })
  })
})

describe('the facts of an item', () => {
  it('are those of its metadata where the text of its details is missing or was altered', async () => {
    const body = JSON.stringify({ details, name: 'Item' })
    const metadataHash = metadataHashOf(body)
    for (const text of [undefined, 'altered']) {
      const record = await readProduct(
        {
          ...site,
          metadata: { stored: async () => body },
          metadataTexts: { get: async () => text },
          reader: {
            read: async () => ({
              asset: { record: { state: 1, flags: 0 }, metadataHash },
              block: { number: 1n, hash: details },
            }),
          },
        },
        { kind: 'token', tokenId: 1n },
      )
      assert.deepEqual([record?.text.name, record?.details, record?.evidence[0]?.detailsHash], ['Item', {}, null])
    }
  })
})

describe('the product information of a model', () => {
  it('cleans the texts of an item once, however often it is asked for', async (t) => {
    const owner = `0x${'a'.repeat(40)}` as const
    const record = { owner, timestamp: 1n, state: 3, flags: 0, reserved: 0 } as const
    const ofHash = new Map<string, string>()
    const put = (document: object) => {
      const text = JSON.stringify(document)
      ofHash.set(metadataHashOf(text), text)
      return metadataHashOf(text)
    }
    const hashes = Array.from({ length: 20 }, (_, item) =>
      put({ details: put({ care: [`Wipe ${item}.`] }), name: `N${item}` }),
    )
    const model: ProductSite = {
      ...site,
      classes: {
        itemsOfClass: async () => hashes.map((metadataHash, item) => ({ tokenId: BigInt(item), metadataHash })),
      },
      metadataTexts: { get: async (hash) => ofHash.get(hash) },
      metadata: { stored: async (hash) => ofHash.get(hash) },
      reader: {
        read: async (tokenId) => ({
          asset: { record, metadataHash: hashes[Number(tokenId)] ?? null },
          block: { number: 7n, hash: details },
        }),
      },
    }
    const read = async () => (await readProduct(model, { kind: 'class', gtin: '09520123456788' }))?.evidence.length
    assert.equal(await read(), 20)
    const { mock } = t.mock.method(JSON, 'parse')
    assert.equal(await read(), 20)
    assert.equal(mock.callCount(), 0)
  })
})
