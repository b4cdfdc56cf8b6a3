/** Statements that ask every shard of a cluster (docs/capacity.md): a piece of the text of each, and its purpose. */
const ofFiles: Readonly<Record<string, readonly (readonly [piece: string, purpose: string])[]>> = {
  'index/queries/products.ts': [
    ['select ${columns} from ${table}', 'lists of products'],
    ['select from asset where ${', 'counts of products under a filter that no sum is kept for'],
    ['select 1 from asset where ${', 'counts of products at an earlier block'],
    ['where tag_hash = any', 'products of a page of taps'],
  ],
  'index/queries/groups.ts': [['groups_of(state, flags, created_at) g', 'groups of products, for a key with brands']],
  'index/queries/transfers.ts': [
    ['select t.* from transfer', 'lists of transfers; with a product one shard'],
    ['select t.* from asset b', 'lists of transfers; with a product one shard'],
    ['select 1 from transfer t where ${', 'counts of transfers; with a product one shard'],
  ],
  'index/queries/past.ts': [
    ['where block_number <= $1', 'the time of an earlier block'],
    ['select token_id from history where block_number >', 'products that changed after an earlier block'],
  ],
  'index/queries/classes.ts': [['where gtin = $1', 'the newest items of a GTIN']],
  'assets/items.ts': [['where gtin = $1 limit 1', 'whether any item of a GTIN is registered']],
  'tap/tag-registry.ts': [
    ['where ${where} order by epoch', 'the newest epoch of a tag: one shard, by its UID'],
    ['where uid > $1 order by uid', 'the tags in pages, while TAG_PEPPER is replaced'],
    ['where batch_id = $1 limit 1', 'whether a batch has tags, before an operator replaces its keys'],
  ],
  'tap/revoked-taps.ts': [['where (uid, epoch) >', 'the taps of a batch that was revoked']],
  'index/assets/taps.ts': [
    ['where tag_hash = any', 'the taps of a batch that was revoked'],
    ['order by t.token_id limit', 'the rebuild of the index'],
    ['delete from asset_tap where tag_hash is null', 'an index that is built anew from another contract'],
  ],
  'tap/log/recorder.ts': [
    ['where tag_hash = any', 'products of taps by former commitments, while TAG_PEPPER is replaced'],
  ],
  'tap/log/queries.ts': [['from ${table} where', 'the log of taps, for a key with brands']],
  'tap/replay-ledger.ts': [['delete from tap', 'old taps are forgotten, 1,000 at a time']],
  'index/transfers.ts': [["where status = 'pending'", 'offers that ran out']],
  'index/assets/texts.ts': [['metadata_hash = $1', 'names of products whose metadata came late']],
  'index/history.ts': [
    ['with deleted as', 'a reorganisation'],
    ['as time from history', 'tokens that changed lately, when the feed of events begins'],
    ['where block_number between', 'the comparison of the index with the chain, block by block'],
    ['delete from history h using unnest', 'a repair after that comparison'],
  ],
  'index/snapshot.ts': [['from asset', 'the comparison of the index with the chain, token by token']],
  'index/store.ts': [
    ['select 1 from history where block_number >', 'events above the cursor, once for each leader'],
    ['truncate', 'the rebuild of the index'],
  ],
  'privacy/personal-data.ts': [
    ['with moves as', 'the search for the data of an owner, which a cluster refuses'],
    ['insert into subject_', 'the search for the data of an owner, which a cluster refuses'],
    ['insert into erased_message', 'the search for the data of an owner, which a cluster refuses'],
    ['select from transfer_message', 'the search for the data of an owner, which a cluster refuses'],
    ['delete from transfer_message', 'the search for the data of an owner, which a cluster refuses'],
  ],
}

export const fanOuts = Object.entries(ofFiles).flatMap(([file, statements]) =>
  statements.map(([piece, purpose]) => [file, piece, purpose] as const),
)
