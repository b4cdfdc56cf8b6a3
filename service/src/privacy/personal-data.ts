/**
 * Personal data of one owner or one tag (GDPR articles 15 and 17). It reads what the database has of them, and erases it. The chain, the
 * books of the gateway and the audit trail stay as they are; docs/operators-handbook.md says why.
 */
import type { Hex } from '@touchstone/verdict'
import { appendAudit, auditText, type Actor } from '../db/audit.ts'
import { bytes, bytesToHex, hex, hexToBytes, instant } from '../db/columns.ts'
import type { Database, Sql } from '../db/database.ts'
import { eventKinds } from '../domain/registry-event.ts'

/** An account, or a tag. */
export type DataSubject = Readonly<{ owner: Hex }> | Readonly<{ uid: Uint8Array }>

/** Returns the commitments under which a tag can be bound: one, or two while TAG_PEPPER is replaced. Returns none without a pepper. */
export type TagHashes = (uid: Uint8Array) => readonly Hex[]

type Search = Readonly<{ subject: DataSubject; tagHashes: TagHashes }>

/** Some statements read a whole table: no index has the addresses of events. */
const limits = { statementTimeoutMs: 600_000 }

/**
 * Yields JSON objects, each with its `kind`, of one moment. `write` may wait for its reader. A transaction keeps everybody else from the
 * embedded database, so that there all is read before the first object is written.
 */
export async function exportPersonalData(
  database: Pick<Database, 'transaction' | 'dialect'>,
  search: Search,
  write: (line: string) => Promise<void>,
): Promise<void> {
  if (database.dialect !== 'pglite') return readAll(database, search, write)
  const lines: string[] = []
  await readAll(database, search, async (line) => void lines.push(line))
  for (const line of lines) await write(line)
}

function readAll(
  database: Pick<Database, 'transaction'>,
  search: Search,
  write: (line: string) => Promise<void>,
): Promise<void> {
  return database.transaction(async (sql) => {
    await sql.query('set transaction isolation level repeatable read')
    await findSubject(sql, search)
    for (const [kind, { select }] of Object.entries(kinds)) {
      await sql.query(
        `declare personal no scroll cursor for select row_to_json(found)::text as row from (select '${kind}' as kind, ${select}) found`,
      )
      for (;;) {
        const rows = await sql.query<{ row: string }>('fetch 500 from personal')
        for (const { row } of rows) await write(row)
        if (rows.length === 0) break
      }
      await sql.query('close personal')
    }
  }, limits)
}

/** The number of rows of each kind that were erased. */
export type Erased = Readonly<Record<string, number>>

/** `reference` is what the audit trail names instead of the person. */
type Erasure = Search & Readonly<{ actor: Actor; reference: string; dryRun: boolean }>

/**
 * Erases what may go, and notes it in the audit trail. The events of taps stay in the outbox without their content, so that no position
 * of a subscriber is lost. No erased tap verifies again, because the last counter of its tag stays.
 */
export async function erasePersonalData(
  database: Pick<Database, 'transaction'>,
  { actor, reference, dryRun, ...search }: Erasure,
): Promise<Erased> {
  const counts: Record<string, number> = {}
  const undone = new Error('A dry run ends without a change.')
  try {
    await database.transaction(async (sql) => {
      await findSubject(sql, search)
      for (const [kind, { erase, after = [] }] of Object.entries(kinds)) {
        if (erase === undefined) continue
        const [row] = await sql.query<{ n: number }>(
          `with gone as (${erase} returning 1) select count(*)::int as n from gone`,
        )
        counts[kind] = row?.n ?? 0
        for (const statement of after) await sql.query(statement)
      }
      if (dryRun) throw undone
      const note = { act: 'privacy.erase', subject: reference, outcome: 'DONE', after: counts } as const
      await appendAudit(sql, auditText(actor, note))
    }, limits)
  } catch (error) {
    if (error !== undone) throw error
  }
  return counts
}

/** Finds the items, tags and accounts of the subject, with the times in which they were theirs, for the transaction. */
async function findSubject(sql: Sql, { subject, tagHashes }: Search): Promise<void> {
  for (const statement of places) await sql.query(statement)
  if ('owner' in subject) {
    await sql.query('insert into subject_account values ($1)', [hexToBytes(subject.owner)])
    await sql.query(heldStatement, [hexToBytes(subject.owner), eventKinds.Transfer])
    await sql.query(registeredStatement)
    await findTags(sql, tagHashes)
  } else {
    await sql.query(`insert into subject_tag values ($1, '-infinity', 'infinity')`, [subject.uid])
    await sql.query(boundStatement, [bytes(tagHashes(subject.uid)), subject.uid])
  }
  // The planner takes unknown tables for large ones, and would read those of taps from end to end.
  await sql.query('analyze subject_account, subject_item, subject_tag')
}

/**
 * Finds the tags of items by their commitments. Tags that the registry has of these items come first. All others follow, for as long as an
 * item lacks its tag: a derivation for each tag of a large catalogue takes minutes.
 */
async function findTags(sql: Sql, tagHashes: TagHashes): Promise<void> {
  for (const statement of [registeredUidsStatement, uidsStatement]) {
    let last: Uint8Array | undefined = new Uint8Array()
    while (last !== undefined && (await sql.query(missingStatement)).length > 0) {
      const rows: readonly { uid: Uint8Array }[] = await sql.query(statement, [last, uidsAtOnce])
      const pairs = rows.flatMap(({ uid }) => tagHashes(uid).map((hash) => [bytesToHex(uid), hash] as const))
      const [uids, hashes] = [bytes(pairs.map(([uid]) => uid)), bytes(pairs.map(([, hash]) => hash))]
      await sql.query(matchStatement, [uids, hashes])
      await sql.query(foundStatement, [hashes])
      last = rows[uidsAtOnce - 1]?.uid
    }
  }
}

const uidsAtOnce = 5_000

const places = [
  'create temporary table subject_account (address bytea) on commit drop',
  `create temporary table subject_item (token_id numeric(78, 0), tag_hash bytea, since timestamptz, until timestamptz,
    has_tag boolean not null default false) on commit drop`,
  'create temporary table subject_tag (uid bytea, since timestamptz, until timestamptz) on commit drop',
]

// A person holds an item from the transfer to them up to the next transfer of it.
const heldStatement = `with moves as (
    select token_id, to_addr, ts as since, lead(ts) over (partition by token_id order by block_number, log_index) as until
    from history where kind = $2 and token_id in (select token_id from history where kind = $2 and to_addr = $1))
  insert into subject_item select m.token_id, a.tag_hash, m.since, coalesce(m.until, 'infinity')
  from moves m left join asset a on a.token_id = m.token_id where m.to_addr = $1`

const registeredStatement = `insert into subject_tag select t.uid, i.since, i.until from subject_item i join tag t on t.token_id = i.token_id`

const boundStatement = `insert into subject_item select token_id, tag_hash, '-infinity', 'infinity' from (
    select token_id, tag_hash from asset where tag_hash = any($1::bytea[])
    union select token_id, null from tag where uid = $2 and token_id is not null
    union select null, h from unnest($1::bytea[]) h) found`

const uidsStatement = 'select distinct uid from tag where uid > $1 order by uid limit $2'

const registeredUidsStatement = 'select distinct uid from subject_tag where uid > $1 order by uid limit $2'

const missingStatement = 'select from subject_item where tag_hash is not null and not has_tag limit 1'

const foundStatement = 'update subject_item set has_tag = true where tag_hash = any($1::bytea[])'

const matchStatement = `insert into subject_tag select k.uid, i.since, i.until
  from unnest($1::bytea[], $2::bytea[]) as k (uid, tag_hash) join subject_item i on i.tag_hash = k.tag_hash
  where not exists (select from subject_tag s where s.uid = k.uid and s.since = i.since)`

const during = (item: string, first: string, last = first) => `${last} >= ${item}.since and ${first} < ${item}.until`

/** The end of its day stands for an unknown last time of an anomaly `l`. */
const lastOfAnomaly = `coalesce(l.last_at, (l.day + 1)::timestamp at time zone 'UTC')`

/**
 * Conditions on a transfer `t` and its message. A message belongs to the transfers whose offer this service sent, as in
 * index/queries/transfers.ts: anyone can put its hash into an offer of their own.
 */
const isOfSubject = 'exists (select from subject_account s where s.address in (t.from_addr, t.to_addr))'
const isSent = `exists (select from operation o where o.tx_hash = t.initiated_tx
  union all select from replaced_transaction r where r.tx_hash = t.initiated_tx)`
/** The offers of the subject with their texts, those included that never became a transfer. */
const ownOffers = `(select o.* from subject_account s join offered_message o on o.from_addr = s.address
  union select o.* from subject_account s join offered_message o on o.to_addr = s.address) o`
const isErased = 'exists (select from erased_message e where e.transfer_id = t.id and e.hash = t.message_hash)'
const isMarked = (offer: string) =>
  `exists (select from erased_message e where e.transfer_id = ${offer}.transfer_id and e.hash = ${offer}.hash)`

type Kind = Readonly<{ select: string; erase?: string; after?: readonly string[] }>

/** `select` follows a column with the kind. `erase` is left out for what stays; it ends before `returning`. `after` follows it, uncounted. */
const kinds: Readonly<Record<string, Kind>> = {
  item: {
    select: `i.token_id::text as "tokenId", a.name, a.brand, a.serial, a.gtin, i.since, i.until
      from subject_item i join asset a on a.token_id = i.token_id
      group by i.token_id, a.name, a.brand, a.serial, a.gtin, i.since, i.until order by i.token_id, i.since`,
  },
  transfer: {
    select: `t.id, ${hex('t.from_addr')} as "from", ${hex('t.to_addr')} as "to", t.status, ${instant('t.initiated_at')} as "initiatedAt",
      ${instant('t.settled_at')} as "settledAt"
      from transfer t where ${isOfSubject} order by t.pk`,
  },
  message: {
    select: `texts.transfer, texts.body from (
        select t.id as transfer, m.body from transfer t join transfer_message m on m.hash = t.message_hash
        where ${isOfSubject} and ${isSent} and not ${isErased}
        union select o.transfer_id, m.body from ${ownOffers} join transfer_message m on m.hash = o.hash
      ) texts order by texts.transfer, texts.body`,
    // Texts are stored once by their hash, so that the same words of other people have the same row.
    erase: `insert into erased_message (transfer_id, hash) select t.id, m.hash
      from transfer t join transfer_message m on m.hash = t.message_hash where ${isOfSubject} and ${isSent}
      union select o.transfer_id, o.hash from ${ownOffers} on conflict do nothing`,
    // Each statement sees what was committed before it began. Offers of others that are stored meanwhile lock their text, and so keep it.
    after: [
      `select from transfer_message m where m.hash in (
        select t.message_hash from transfer t where ${isOfSubject} and ${isSent} union select o.hash from ${ownOffers})
        order by m.hash for update`,
      `with own as (delete from offered_message d using ${ownOffers}
        where (d.hash, d.transfer_id, d.from_addr, d.to_addr) = (o.hash, o.transfer_id, o.from_addr, o.to_addr) and ${isMarked('d')}
        returning d.hash)
      delete from transfer_message m where m.hash in (
        select t.message_hash from transfer t where ${isOfSubject} and ${isSent} union select hash from own)
      and not exists (select from transfer t where t.message_hash = m.hash and ${isSent} and not ${isErased})
      and not exists (select from offered_message o where o.hash = m.hash and not (${isMarked('o')}
        and exists (select from subject_account s where s.address in (o.from_addr, o.to_addr))))`,
    ],
  },
  event: {
    select: `h.token_id::text as "tokenId", h.block_number as "blockNumber", ${hex('h.tx_hash')} as "txHash", ${instant('h.ts')} as at
      from history h where exists (select from subject_account s where s.address in (h.from_addr, h.to_addr, h.actor))
      order by h.block_number, h.log_index`,
  },
  payment: {
    select: `${hex('p.nonce')} as nonce, p.token_id::text as "tokenId", p.amount::text as amount, p.state, ${instant('p.created_at')} as at,
      ${hex('p.tx_hash')} as "txHash", p.payload::json as authorization, (select json_agg(i.id order by i.id) from payment_identifier i
        where (i.chain_id, i.asset, i.payer, i.nonce) = (p.chain_id, p.asset, p.payer, p.nonce)) as identifiers
      from payment p where exists (select from subject_account s where s.address = p.payer) order by p.pk`,
  },
  channel: {
    select: `${hex('c.id')} as channel, ${hex('c.payer')} as payer, c.balance::text as balance, c.claimed::text as claimed,
      c.charged::text as charged, ${instant('c.created_at')} as at from channel c
      where exists (select from subject_account s where s.address in (c.payer, c.payer_authorizer)) order by c.created_at, c.id`,
  },
  tag: {
    select: `encode(t.uid, 'hex') as uid, t.epoch, t.batch_id as batch, t.last_counter as "lastCounter", t.token_id::text as "tokenId"
      from tag t where exists (select from subject_tag s where s.uid = t.uid) order by t.uid, t.epoch`,
  },
  tap: {
    select: `encode(p.uid, 'hex') as uid, p.epoch, p.counter, ${instant('p.first_seen')} as at from tap p
      where exists (select from subject_tag s where s.uid = p.uid and ${during('s', 'p.first_seen')}) order by p.uid, p.epoch, p.counter`,
    // As where old taps are pruned: the counter of the tag alone makes them replays from then on.
    erase: `delete from tap p using subject_tag s where s.uid = p.uid and ${during('s', 'p.first_seen')}
      and exists (select from tag t where t.uid = p.uid and t.epoch = p.epoch and t.last_counter >= p.counter)`,
  },
  // It stays: by it an item counts as verified.
  firstTap: {
    select: `f.token_id::text as "tokenId", ${instant('f.tapped_at')} as at from asset_tap f
      where exists (select from subject_item i where i.token_id = f.token_id and ${during('i', 'f.tapped_at')}) order by f.token_id`,
  },
  announcement: {
    select: `o.token_id::text as "tokenId", ${instant('o.created_at')} as at from outbox o where o.topic = 'tap'
      and exists (select from subject_item i where i.token_id = o.token_id and ${during('i', 'o.created_at')}) order by o.seq`,
    erase: `update outbox o set topic = 'erased', kind = null, happened_at = null, payload = '{}', token_id = 0 where o.topic = 'tap'
      and exists (select from subject_item i where i.token_id = o.token_id and ${during('i', 'o.created_at')})`,
    // Writers of the log wait. Else one that has read taps could note an anomaly with their countries after these are erased.
    after: ['lock table tap_log in share row exclusive mode'],
  },
  presentation: {
    select: `l.counter, l.outcome, l.country, l.times, ${instant('l.first_at')} as "firstAt", ${instant('l.last_at')} as "lastAt"
      from tap_log l where exists (select from subject_item i where i.tag_hash = l.tag_hash and ${during('i', 'l.first_at', 'l.last_at')})
      order by l.id`,
    erase: `delete from tap_log l using subject_item i
      where i.tag_hash = l.tag_hash and ${during('i', 'l.first_at', 'l.last_at')}`,
  },
  anomaly: {
    select: `l.kind as what, l.day, l.counter, l.countries, l.times, ${instant('l.found_at')} as at
      from tap_anomaly l where exists (select from subject_item i where i.tag_hash = l.tag_hash and ${during('i', 'l.found_at', lastOfAnomaly)})
      order by l.id`,
    erase: `delete from tap_anomaly l using subject_item i
      where i.tag_hash = l.tag_hash and ${during('i', 'l.found_at', lastOfAnomaly)}`,
  },
  // Reports of a counterfeit are not its holder's to erase: `touchstone report close` removes them.
  report: {
    select: `r.token_id::text as "tokenId", r.tap_counter as counter, r.role, r.note, ${instant('r.reported_at')} as at
      from difference_report r where exists (
        select from subject_item i where i.token_id = r.token_id and ${during('i', 'r.reported_at')}) order by r.id`,
  },
}
