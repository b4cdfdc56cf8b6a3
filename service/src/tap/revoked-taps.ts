/**
 * The taps of revoked batches. A thief with the keys of a batch makes the first tap of any of its chips, which verifies the product in lists
 * (spec §2.9). Once the batch is revoked such taps are taken back, and so are honest ones, which look the same.
 */
import { bytes } from '../db/columns.ts'
import { momentBefore } from '../db/cluster/moment.ts'
import type { Database } from '../db/database.ts'
import { locks } from '../db/locks.ts'
import type { TagHash } from './tag-hash.ts'
import { tagStore } from './tag-registry.ts'
import { toHex } from './bytes.ts'

type Options = Readonly<{
  database: Pick<Database, 'query' | 'hold'>
  /** The commitments under which a tag can be bound. None: the chips of this process have no products, and nothing is taken back. */
  tagHashes: readonly TagHash[]
  /** Takes back the taps of some tags in one transaction. */
  takeBackTaps: (tagHashes: readonly `0x${string}`[]) => Promise<void>
  /** Rows of tags that are read at one time, and tags of one transaction. First taps wait for it. */
  rowsAtOnce?: number
  tagsAtOnce?: number
  /** Seconds after which no tap is under way any more that was accepted before the revocation. */
  settledSeconds?: number
}>

export type RevokedTaps = ReturnType<typeof createRevokedTaps>

/**
 * Creates the passes over all tags. Of several processes one at a time makes a pass, and the others leave it to that one. A pass that was
 * interrupted is made again by the next `settle` of any process.
 */
export function createRevokedTaps({
  database,
  tagHashes,
  takeBackTaps,
  rowsAtOnce = 2_000,
  tagsAtOnce = 100,
  settledSeconds = 60,
}: Options) {
  async function pass(ageSeconds: number, signal?: AbortSignal): Promise<void> {
    if (tagHashes.length === 0 || (await due(ageSeconds)).length === 0) return
    const held = await database.hold(locks.revokedTaps)
    if (held === null) return
    try {
      const began = [await momentBefore(database), await momentBefore(database, settledSeconds / 86_400)]
      const batches = await due(ageSeconds)
      if (batches.length > 0 && (await passOver(batches, signal)))
        await database.query(doneStatement, [batches, ...began])
    } finally {
      await held.release()
    }
  }

  async function due(ageSeconds: number): Promise<readonly string[]> {
    const rows = await database.query<{ id: string }>(dueStatement, [ageSeconds])
    return rows.map(({ id }) => id)
  }

  /** Returns false when the signal ended it. Taps go on meanwhile: it holds no lock between its transactions. */
  async function passOver(batches: readonly string[], signal?: AbortSignal): Promise<boolean> {
    let last: Pick<TagRow, 'uid' | 'epoch'> = { uid: new Uint8Array(), epoch: 0 }
    for (;;) {
      const rows = await database.query<TagRow>(pageStatement, [last.uid, last.epoch, rowsAtOnce])
      const uids = [
        ...new Map(rows.filter(({ batch }) => batches.includes(batch)).map((row) => [toHex(row.uid), row.uid])),
      ]
      for (let at = 0; at < uids.length; at += tagsAtOnce) {
        if (signal?.aborted === true) return false
        const copied = await copiedOf(uids.slice(at, at + tagsAtOnce).map(([, uid]) => uid))
        if (copied.length > 0) await takeBackTaps(copied.flatMap((uid) => tagHashes.map((hash) => hash(uid))))
      }
      const end = rows.at(-1)
      if (end === undefined || rows.length < rowsAtOnce) return true
      if (signal?.aborted === true) return false
      last = end
    }
  }

  /**
   * Returns those of the chips that a revoked batch signs for. A chip that was written anew with keys of another batch, and tapped since,
   * stands for its product. Its former lives say nothing: their counter is the highest once it is written anew.
   */
  async function copiedOf(uids: readonly Uint8Array[]): Promise<readonly Uint8Array[]> {
    const revoked = new Set(await tagStore(database).revokedBatches())
    const rows = await database.query<TagRow & { tapped: boolean }>(livesStatement, [
      bytes(uids.map((uid) => `0x${toHex(uid)}` as const)),
    ])
    const lives = Map.groupBy(rows, ({ uid }) => toHex(uid))
    return uids.filter((uid) => {
      const ofChip = lives.get(toHex(uid)) ?? []
      const leaked = ofChip.filter(({ batch }) => revoked.has(batch)).map(({ epoch }) => epoch)
      const newest = Math.max(...leaked)
      return leaked.length > 0 && !ofChip.some(({ tapped, epoch }) => tapped && epoch > newest)
    })
  }

  return {
    /** Takes back the taps of batches that are revoked now. A tap that is under way is left to `settle`. */
    takeBack: (signal?: AbortSignal) => pass(0, signal),
    /** Does the same for batches that were revoked a while ago, once each. It costs a look into an index where there is none. */
    settle: (signal?: AbortSignal) => pass(settledSeconds, signal),
  }
}

type TagRow = Readonly<{ uid: Uint8Array; epoch: number; batch: string }>

const dueStatement = `select id from tag_batch
  where status = 'revoked' and (taps_taken_back_at is null or taps_taken_back_at < status_at)
    and ($1::float8 = 0 or status_at < statement_timestamp() - make_interval(secs => $1::float8))`

/** A pass that began too early for taps that were under way is no last one. */
const doneStatement = `update tag_batch set taps_taken_back_at = $2::text::timestamptz
  where id = any($1::text[]) and status = 'revoked' and status_at < $3::text::timestamptz`

const pageStatement = `select uid, epoch, batch_id as batch from tag where (uid, epoch) > ($1, $2) order by uid, epoch limit $3`

const livesStatement = `select uid, epoch, batch_id as batch, last_counter > coalesce(baseline_counter, 0) as tapped
  from tag where uid = any($1::bytea[])`
