/**
 * May the database be spread over shards by token id (docs/capacity.md)? Every statement on a table that grows with the products must
 * name the table’s sharding key, so that it goes to one shard, or stand in the list of those that go to all of them. This reads the
 * texts of the statements; it runs no distributed database.
 */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'

const source = fileURLToPath(new URL('../../src/', import.meta.url))

/** Tables with a row or more for each product or tag, and the column that determines the shard of a row. */
const keyOf: Readonly<Record<string, string>> = {
  asset: 'token_id',
  history: 'token_id',
  transfer: 'asset_pk',
  item: 'token_id',
  asset_tap: 'token_id',
  status_place: 'token_id',
  outbox: 'token_id',
  tag: 'uid',
  tap: 'uid',
  tap_log: 'tag_hash',
  tap_anomaly: 'tag_hash',
}

/** Statements that ask every shard, by their file and a piece of their text. */
const fanOuts: readonly (readonly [file: string, piece: string, why: string])[] = [
  [
    'index/queries/products.ts',
    'select ${columns} from ${table}',
    'lists: each shard gives its first rows, which are merged',
  ],
  ['index/queries/products.ts', 'select from asset where ${', 'counts of filters that no sum is kept for'],
  ['index/queries/past.ts', 'where block_number <= b.number', 'the newest event up to a block, for its time'],
  ['index/queries/transfers.ts', 'select t.* from transfer', 'lists; with a product one shard'],
  ['index/queries/transfers.ts', 'union all', 'the same lists, with their products'],
  ['index/queries/transfers.ts', 'select from transfer t where ${', 'counts of transfers'],
  ['index/queries/transfers.ts', 't.id = any', 'one transfer by its id, which begins with its token id'],
  ['index/queries/transfers.ts', 'as "assetpk"', 'transfers of a page of products, by pk: rows of one shard each'],
  ['assets/items.ts', 'where gtin = $1', 'an item by GTIN and serial: a lookup table of its own'],
  ['assets/items.ts', 'gtin = $2', 'the same, with the token'],
  ['tap/tag-registry.ts', 'where ${where} order by t.epoch', 'a tag by its token or item; by its UID one shard'],
  [
    'tap/tag-registry.ts',
    'where batch_id = $1 limit 1',
    'whether a batch has tags, before an operator replaces its keys',
  ],
  ['index/queries/classes.ts', 'where gtin = $1', 'the newest items of a model: each shard gives its first rows'],
  ['passport/signing/status-store.ts', 'from status_place where list', 'one signed status list'],
  ['passport/signing/status-store.ts', 'taken from status_place', 'how full a list is'],
  ['index/outbox.ts', 'from outbox', 'the feed of events, one for all shards'],
  ['db/replica.ts', 'from outbox', 'how far the replica of lists is'],
  ['index/transfers.ts', "set status = 'failed'", 'offers that ran out, now and then'],
  ['index/assets.ts', 'metadata_hash = $1', 'texts of a batch of tokens, when metadata comes late'],
  ['index/history.ts', 'with deleted as', 'a reorganisation'],
  ['index/history.ts', 'as time from history', 'tokens that changed lately, when the feed of events begins'],
  ['index/history.ts', 'where block_number between', 'the comparison of the index with the chain, block by block'],
  ['index/history.ts', 'in (select * from unnest', 'a repair after that comparison'],
  ['index/store.ts', 'delete from transfer', 'a reorganisation'],
  ['index/snapshot.ts', 'from asset', 'the operator’s comparison of index and chain'],
  ['index/store.ts', 'truncate', 'the operator’s rebuild'],
  ['index/store.ts', 'delete from item', 'the operator’s rebuild'],
  ['tap/replay-ledger.ts', 'delete from tap', 'old taps are forgotten, 1,000 at a time'],
  [
    'tap/log/recorder.ts',
    'where tag_hash = any',
    'products of taps by former commitments, while TAG_PEPPER is replaced',
  ],
  ['tap/log/recorder.ts', 'delete from tap_log', 'the same in their log'],
  ['tap/log/recorder.ts', 'delete from tap_anomaly', 'the same for anomalies'],
  [
    'index/queries/groups.ts',
    'groups_of(state, flags, created_at) g',
    'groups of the products of some brands, for a key with brands',
  ],
  ['privacy/personal-data.ts', 'with moves as', 'the operator’s search for the data of an owner'],
  ['privacy/personal-data.ts', 'insert into subject_', 'the same'],
  ['privacy/personal-data.ts', 'delete from transfer_message', 'the erasure of the texts of an owner'],
  ['index/queries/products.ts', 'where tag_hash = any', 'products of a page of taps, by the commitments of their tags'],
]

type Statement = { readonly file: string; readonly text: string }

describe('sharding by token id', () => {
  const statements = globSync(['**/*.ts'], { cwd: source })
    .filter((file) => !file.endsWith('.test.ts'))
    .flatMap((file) => statementsOf(file, readFileSync(source + file, 'utf8')))

  it('reads the statements of the store', () => assert.ok(statements.length > 100, `${statements.length} found`))

  it('every statement on a large table names its sharding key, or is a known fan-out', () => {
    const missing = statements.flatMap(({ file, text }) => {
      if (fanOuts.some(([of, piece]) => of === file && text.includes(piece))) return []
      const tables = Object.keys(keyOf).filter((table) => !namesKey(text, table))
      return tables.map((table) => `${file}: ${table} without ${keyOf[table]}: ${text.slice(0, 160)}`)
    })
    assert.deepEqual(missing, [])
  })

  it('lists no fan-out that no statement has', () => {
    const unused = fanOuts.filter(
      ([of, piece]) => !statements.some(({ file, text }) => file === of && text.includes(piece)),
    )
    assert.deepEqual(unused, [])
  })
})

/** Texts in quotes or backticks that are SQL, in lower case and with single spaces. */
function statementsOf(file: string, code: string): Statement[] {
  const texts = code.matchAll(/`((?:[^`\\]|\\[^])*)`|'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"/g)
  return [...texts]
    .map(([, ...parts]) =>
      (parts.find((part) => part !== undefined) ?? '').replaceAll(/\s+/g, ' ').trim().toLowerCase(),
    )
    .filter((text) => /^\(?(?:select|insert|update|delete|with|truncate) /.test(text))
    .map((text) => ({ file, text }))
}

/** True also where the statement does not touch the table. A new row names the key among its columns, all else in a condition. */
function namesKey(text: string, table: string): boolean {
  const key = new RegExp(`\\b${keyOf[table]}\\b`)
  const inserted = new RegExp(`\\binsert into ${table}(?: as t)? \\(([^)]*)\\)`).exec(text)
  if (inserted !== null && !key.test(inserted[1] ?? '')) return false
  if (!new RegExp(`\\b(?:from|join|update|truncate) ${table}\\b`).test(text)) return true
  const [, ...conditions] = text.split(/\b(?:where|on|using)\b/)
  return key.test(conditions.join(' '))
}
