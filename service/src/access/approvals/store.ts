/**
 * Requests for the approval of a second key or operator, in the database. It has their pages, and the changes that the audit trail records
 * in the same transaction. The row of a request never changes in what was asked for, and its first audit entry says the same once more.
 */
import { type Actor, appendAudit, type AuditBody, auditText } from '../../db/audit.ts'
import { countWithin } from '../../db/bounded-count.ts'
import { behindOf, hex, instant, isRecent, type KeysetPage } from '../../db/columns.ts'
import type { Database, Sql } from '../../db/database.ts'
import type { ApprovalAct } from '../rights.ts'
import { parseJsonObject } from '../../lib/json.ts'
import { randomId } from '../api-keys.ts'

export type ApprovalStatus = 'PENDING' | 'APPROVED' | 'DONE' | 'FAILED' | 'REJECTED' | 'EXPIRED'

/** The subject as it was when the act was asked for. No fact is secret. */
export type ApprovalFacts = Readonly<Record<string, string | number | boolean | null | readonly string[]>>

/**
 * `subject` is a token id, a batch or the id of an API key. `requestedBy` and `decidedBy` are `key:<id>` or `local:<user>`. Times are RFC
 * 3339. `txHash` is the transaction that carries the act out, `failure` why it was not done.
 */
export type Approval = Readonly<{
  id: string
  pk: bigint
  act: ApprovalAct
  subject: string
  facts: string
  status: ApprovalStatus
  requestedBy: string
  requestedAt: string
  expiresAt: string
  decidedBy: string | null
  decidedAt: string | null
  failure: string | null
  txHash: string | null
}>

/** `requestKey` is the key under which the same request is found again; null for none. */
export type NewApproval = Pick<Approval, 'act' | 'subject' | 'facts'> & Readonly<{ requestKey: string | null }>

/** `brands` are those whose products a reader may see: then the list has the requests about these products only. */
export type ApprovalFilter = Readonly<{ status?: ApprovalStatus | undefined; brands?: readonly string[] | null }>

/** The key of the operation that carries out an approved write. It exists at most once, so that the act is done at most once. */
export const operationKeyOf = (id: string): string => `approval:${id}`

/** Returns whether text is the id of an approval: 12 letters and digits. */
export const isApprovalId = (text: string): boolean => /^[a-z0-9]{12}$/.test(text)

/** `indexed` is the database for reads of products. */
export function approvalStore(database: Pick<Database, 'query' | 'transaction' | 'dialect'>, indexed: Sql = database) {
  const one = async (sql: Sql, where: string, values: readonly unknown[]): Promise<Approval | null> =>
    (await sql.query<Approval>(`select ${columns} from ${source} where ${where}`, values))[0] ?? null

  return {
    find: (id: string): Promise<Approval | null> => one(database, 'a.id = $1', [id]),
    /** Finds a request by its key, or by that of another one which asked for the same. */
    findByKey: (requestKey: string): Promise<Approval | null> =>
      one(database, 'a.request_key = $1 or a.joined_keys @> array[$1::text]', [requestKey]),
    /** Adds the key of another one that asked for the same. The keys after the first hundred do not find the request. */
    join: async (id: string, requestKey: string): Promise<void> =>
      void (await database.query(joinStatement, [id, requestKey, mostJoined])),

    /** Stores a request, or returns the one that waits for the same act on the same subject already. */
    async add({ act, subject, facts, requestKey }: NewApproval, hours: number, by: Actor) {
      // In a transaction before: the head of the audit trail must be locked last.
      await database.transaction((sql) => expire(sql, 'act = $1 and subject = $2', [act, subject]))
      return database.transaction(async (sql): Promise<{ readonly approval: Approval; readonly added: boolean }> => {
        const id = randomId(12)
        const values = [id, act, subject, requestKey, facts, by.who, hours]
        const added = (await sql.query(insertStatement, values)).length > 0
        if (added) {
          const entry = { act, subject, outcome: 'REQUESTED', approval: id, after: parseFacts(facts) } as const
          const text = auditText(by, entry)
          await sql.query('update approval set audit_seq = append_audit($2) where id = $1', [id, text])
        }
        const approval = added
          ? await one(sql, 'a.id = $1', [id])
          : ((requestKey === null ? null : await one(sql, 'a.request_key = $1', [requestKey])) ??
            (await one(sql, "a.act = $1 and a.subject = $2 and a.status = 'PENDING'", [act, subject])))
        if (approval === null) throw new Error('A request for approval vanished while it was read.')
        return { approval, added }
      })
    },

    /** Reads a request under its row lock, with the age of the API key that decides. `isAltered`: the audit trail says something else. */
    async lock(sql: Sql, id: string, keyId: string | null): Promise<LockedApproval | null> {
      if ((await sql.query('select 1 from approval where id = $1 for update', [id])).length === 0) return null
      const approval = await one(sql, 'a.id = $1', [id])
      const [entry] = await sql.query<{ body: string | null; younger: boolean; gone: boolean; seq: bigint | null }>(
        `select e.body, a.audit_seq as seq, (k.created_at >= a.requested_at) is true as younger,
           $2::text is not null and (k.id is null or k.revoked_at is not null or (k.expires_at > statement_timestamp()) is false) as gone
         from approval a left join audit_entry e on e.seq = a.audit_seq left join api_key k on k.id = $2 where a.id = $1`,
        [id, keyId],
      )
      if (approval === null || entry === undefined)
        throw new Error('A request for approval vanished while it was read.')
      const { body, younger, gone, seq } = entry
      return { ...approval, seq, isAltered: !isSameRequest(approval, body), isYounger: younger, isGone: gone }
    },

    /** Notes a decision in the row and in the audit trail. Call it last in a transaction. */
    async decide(sql: Sql, locked: LockedApproval, status: Decision, by: Actor): Promise<void> {
      await sql.query(
        `update approval set status = $2, decided_by = $3, decided_at = clock_timestamp(), taken_at = clock_timestamp() where id = $1`,
        [locked.id, status, by.who],
      )
      await noteStep(sql, locked, { by, outcome: status === 'REJECTED' ? 'REJECTED' : 'APPROVED' })
    },

    /**
     * Ends a request of this status that cannot be carried out, and returns whether it did. Another process may have decided it meanwhile.
     * One whose transaction was signed is left to the writer.
     */
    end: (id: string, because: string, from: 'PENDING' | 'APPROVED'): Promise<boolean> =>
      database.transaction(async (sql) => {
        const [ended] = await sql.query<NotedApproval>(
          `update approval a set status = 'FAILED', failure = $2
           where id = $1 and status = $3 and not ${isSigned} returning id, act, subject, audit_seq as seq`,
          [id, because, from],
        )
        if (ended !== undefined) await noteStep(sql, ended, { by: service, outcome: 'FAILED', because })
        return ended !== undefined
      }),

    /** Marks requests as expired that were not decided in time. */
    expire: () => database.transaction((sql) => expire(sql, 'true', [])),

    /**
     * Takes approved requests whose execution a process left unfinished at least `leaseMs` ago. No other process gets them meanwhile. Those
     * that were taken longest ago come first, so that some which cannot be done yet do not take all places. `isLate`: the approval is older
     * than `hours`.
     */
    takeLeft(leaseMs: number, hours: number): Promise<{ id: string; isLate: boolean }[]> {
      const text = `update approval set taken_at = clock_timestamp() where id in (
          select a.id from approval a where a.status = 'APPROVED' and not ${isSigned}
            and not ${isRecent('a.taken_at', "$1 * interval '1 millisecond'")} order by a.taken_at limit 20 for update skip locked)
        returning id, decided_at + $2 * interval '1 hour' < statement_timestamp() as "isLate"`
      return database.query(text, [leaseMs, hours])
    },

    /** Returns a page, the newest first. */
    page: async (filter: ApprovalFilter, { after, backward, limit }: KeysetPage): Promise<Approval[]> => {
      const { conditions, values } = await conditionsOf(database, indexed, filter)
      const [direction, behind] = backward ? (['asc', '>'] as const) : (['desc', '<'] as const)
      if (after !== null) conditions.push(behindOf('(a.requested_at, a.pk)', behind, after, values))
      const order = `a.requested_at ${direction}, a.pk ${direction}`
      const text = `select ${columns} from ${source} where ${conditions.join(' and ')} order by ${order} limit $${values.push(limit)}`
      return database.query<Approval>(text, values)
    },
    count: async (filter: ApprovalFilter): Promise<number | null> => {
      const { conditions, values } = await conditionsOf(database, indexed, filter)
      return countWithin(database, `select from ${source} where ${conditions.join(' and ')}`, values)
    },
  }
}

/** `seq` is the number of the audit entry of the request. */
export type LockedApproval = Approval &
  Readonly<{ seq: bigint | null; isAltered: boolean; isYounger: boolean; isGone: boolean }>
type NotedApproval = Pick<LockedApproval, 'id' | 'act' | 'subject' | 'seq'>
type Decision = 'APPROVED' | 'DONE' | 'REJECTED'

const service: Actor = { who: 'service' }

export function parseFacts(text: string): ApprovalFacts {
  return (parseJsonObject(text) ?? {}) as ApprovalFacts
}

function isSameRequest({ id, act, subject, facts, requestedBy }: Approval, body: string | null): boolean {
  const entry = parseJsonObject(body ?? '') as Partial<AuditBody> | undefined
  return (
    entry?.approval === id &&
    entry.outcome === 'REQUESTED' &&
    entry.act === act &&
    entry.subject === subject &&
    entry.who === requestedBy &&
    JSON.stringify(entry.after) === facts
  )
}

async function expire(sql: Sql, where: string, values: readonly unknown[]): Promise<void> {
  const expired = await sql.query<NotedApproval>(
    `update approval set status = 'EXPIRED' where id in (
       select id from approval where status = 'PENDING' and expires_at <= statement_timestamp() and ${where}
       order by requested_at limit 100 for update skip locked)
     returning id, act, subject, audit_seq as seq`,
    values,
  )
  for (const approval of expired) await noteStep(sql, approval, { by: service, outcome: 'EXPIRED' })
}

/** Notes in the audit trail what became of a request; the entry refers to that of the request itself. */
function noteStep(
  sql: Sql,
  { id, act, subject, seq }: NotedApproval,
  { by, outcome, because }: Pick<AuditBody, 'outcome' | 'because'> & { readonly by: Actor },
): Promise<void> {
  const reason = because === undefined ? {} : { because }
  return appendAudit(
    sql,
    auditText(by, { act, subject, outcome, approval: id, ...reason, ...(seq && { of: String(seq) }) }),
  )
}

/** Returns the tokens of requests that a key with brands sees. Products may be on other servers than requests. */
async function visibleTokens(sql: Sql, indexed: Sql, brands: readonly string[]): Promise<readonly string[]> {
  const asked = await sql.query<{ subject: string }>(recycledStatement, [mostRecycled])
  const rows = await indexed.query<{ id: string }>(ofBrandsStatement, [asked.map(({ subject }) => subject), brands])
  return rows.map(({ id }) => id)
}

/** Requests need two people each, so that there are few. */
const mostRecycled = 10_000
const recycledStatement = `select subject from approval where act = 'recycle' order by requested_at desc limit $1`
const ofBrandsStatement = `select token_id::text as id from asset
  where token_id = any($1::text[]::numeric[]) and brand = any($2::text[])`

/** An act on a batch or a key is of no brand: a key with brands does not see it. */
async function conditionsOf(sql: Sql, indexed: Sql, { status, brands = null }: ApprovalFilter) {
  const values: unknown[] = []
  const conditions = ['true']
  if (status !== undefined) conditions.push(`${statusColumn} = $${values.push(status)}`)
  if (brands !== null)
    conditions.push(
      `a.act = 'recycle' and a.subject = any($${values.push(await visibleTokens(sql, indexed, brands))}::text[])`,
    )
  return { conditions, values }
}

const source = `approval a left join operation o on o.idempotency_key = 'approval:' || a.id`
const isSigned = `exists (select from operation o where o.idempotency_key = 'approval:' || a.id)`

/** The writer's operation decides what became of an approved write. */
const statusColumn = `case
    when a.status = 'PENDING' and a.expires_at <= statement_timestamp() then 'EXPIRED'
    when a.status = 'APPROVED' and o.status = 'CONFIRMED' then 'DONE'
    when a.status = 'APPROVED' and o.status = 'FAILED' then 'FAILED'
    else a.status end`

const columns = `a.id, a.pk, a.act, a.subject, a.facts, ${statusColumn} as status, a.requested_by as "requestedBy",
  ${instant('a.requested_at')} as "requestedAt", ${instant('a.expires_at')} as "expiresAt", a.decided_by as "decidedBy",
  ${instant('a.decided_at')} as "decidedAt", a.failure, ${hex('o.tx_hash')} as "txHash"`

const mostJoined = 100
const joinStatement = `update approval set joined_keys = joined_keys || $2::text
  where id = $1 and request_key is distinct from $2 and not joined_keys @> array[$2::text] and cardinality(joined_keys) < $3`

const insertStatement = `insert into approval (id, act, subject, request_key, facts, requested_by, expires_at)
  values ($1, $2, $3, $4, $5, $6, clock_timestamp() + $7 * interval '1 hour') on conflict do nothing returning id`
