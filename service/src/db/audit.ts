/**
 * The audit trail: who changed what, appended in the transaction of the change. Each entry has the SHA-256 of the entry before, so that a
 * changed, removed or inserted one is found. It holds no owner's address, key or cryptogram.
 */
import { createHash } from 'node:crypto'
import { userInfo } from 'node:os'
import { hex, instant } from './columns.ts'
import type { Sql } from './database.ts'

/**
 * `who` is `key:<id>`, `local:<user>`, or `page` for a visitor. `requestId` that of the log; `approval` the request that a second one has
 * approved.
 */
export type Actor = Readonly<{ who: string; requestId?: string; approval?: string }>

/**
 * `subject` is a token id, a batch, or the id of an API key. `of` is the number of the entry that this one repeats, replaces, settles or
 * decides, `first` its actor. `approval` is the id of a request for approval, `because` the reason of a refusal or failure.
 */
export type AuditBody = Readonly<{
  who: string
  act: string
  subject: string
  outcome:
    | 'DONE'
    | 'SIGNED'
    | 'REPLAYED'
    | 'CONFIRMED'
    | 'FAILED'
    | 'REQUESTED'
    | 'APPROVED'
    | 'REJECTED'
    | 'EXPIRED'
    | 'REFUSED'
  requestId?: string
  approval?: string
  because?: string
  txHash?: string
  of?: string
  first?: string
  before?: Readonly<Record<string, unknown>>
  after?: Readonly<Record<string, unknown>>
}>

/** `body` is the JSON of an `AuditBody`; `at` is RFC 3339 with microseconds. */
export type AuditEntry = Readonly<{ seq: bigint; at: string; body: string; hash: string }>

/** The number and hash of the last entry. */
export type AuditHead = Readonly<{ seq: bigint; hash: string }>

/** Returns the user of this process, who acts where no API key does. */
export function localActor(): Actor {
  try {
    return { who: `local:${userInfo().username}` }
  } catch {
    return { who: `local:${process.getuid?.() ?? ''}` } // a container's user without a name
  }
}

/** Formats the text of an entry. */
export function auditText({ who, requestId, approval }: Actor, body: Omit<AuditBody, 'who' | 'requestId'>): string {
  const given = { ...(requestId !== undefined && { requestId }), ...(approval !== undefined && { approval }) }
  return JSON.stringify({ who, ...given, ...body })
}

/** Appends an entry. Call it last in a transaction: other writers wait from here to the commit. */
export async function appendAudit(sql: Sql, text: string): Promise<void> {
  await sql.query('select append_audit($1)', [text])
}

/** Returns entries after a number, the oldest first. */
export function readAudit(sql: Sql, after: bigint, limit: number): Promise<AuditEntry[]> {
  return sql.query<AuditEntry>(
    `select seq, ${instant('at')} as at, body, ${hex('hash')} as hash from audit_entry where seq > $1 order by seq limit $2`,
    [after, limit],
  )
}

export async function auditHead(sql: Sql): Promise<AuditHead> {
  const [head] = await sql.query<AuditHead>(`select seq, ${hex('hash')} as hash from audit_head`)
  if (head === undefined) throw new Error('The audit trail has lost its head.')
  return head
}

/** Formats a head as `<number>:<hash>`. */
export function formatHead({ seq, hash }: AuditHead): string {
  return `${seq}:${hash}`
}

const zeroHash = `0x${'00'.repeat(32)}`
const entriesAtOnce = 1_000

/**
 * Checks every entry up to the head of now. `kept` are heads that were noted before: their entries must still be there. Returns the head,
 * or the number of the first entry that is wrong or missing, with the head that it does not agree with.
 * Throws the reason of the signal.
 */
export async function verifyAudit(
  sql: Sql,
  kept: readonly AuditHead[] = [],
  signal?: AbortSignal,
): Promise<
  | { readonly ok: true; readonly head: AuditHead }
  | { readonly ok: false; readonly seq: bigint; readonly kept?: AuditHead }
> {
  const head = await auditHead(sql)
  const keptAt = Map.groupBy(kept, ({ seq }) => seq)
  let last: AuditHead = { seq: 0n, hash: zeroHash }
  for (;;) {
    signal?.throwIfAborted()
    const entries = await readAudit(sql, last.seq, entriesAtOnce)
    for (const entry of entries) {
      if (entry.seq > head.seq) break
      if (entry.seq !== last.seq + 1n || entry.hash !== entryHash(last.hash, entry))
        return { ok: false, seq: last.seq + 1n }
      const other = keptAt.get(entry.seq)?.find(({ hash }) => hash !== entry.hash)
      if (other !== undefined) return { ok: false, seq: entry.seq, kept: other }
      last = entry
    }
    if (last.seq === head.seq || entries.length < entriesAtOnce) break
  }
  if (last.seq !== head.seq || last.hash !== head.hash) return { ok: false, seq: last.seq + 1n }
  const lost = kept.find(({ seq }) => seq > head.seq)
  return lost === undefined ? { ok: true, head } : { ok: false, seq: head.seq + 1n, kept: lost }
}

function entryHash(previous: string, { seq, at, body }: AuditEntry): string {
  const hash = createHash('sha256').update(Buffer.from(previous.slice(2), 'hex'))
  return `0x${hash.update(`${seq}\n${at}\n${body}`).digest('hex')}`
}
