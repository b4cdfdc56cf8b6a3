/**
 * Acts that take two: one key or operator requests, another one approves (APPROVALS). What is carried out is exactly what was requested, on a
 * subject that is as it was then, once, whichever process ends when.
 */
import { type Actor, appendAudit, auditText, localActor } from '../../db/audit.ts'
import type { Database, Sql } from '../../db/database.ts'
import type { ApprovalAct } from '../rights.ts'
import { reasonOf, ServiceError } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'
import { type Approval, approvalStore, type ApprovalFacts, type LockedApproval } from './store.ts'

/**
 * An act that is done in the transaction of its approval. `facts` returns null for a subject on which it cannot be done. `apply` returns
 * false where the facts that were read have changed.
 */
type DatabaseAct = Readonly<{
  facts: (sql: Sql, subject: string) => Promise<ApprovalFacts | null>
  apply: (sql: Sql, subject: string, by: Actor, facts: ApprovalFacts) => Promise<boolean>
  /** Updates what is outside of the database. It may be repeated, and left out by a crash. */
  afterwards?: (subject: string) => Promise<void>
}>

/** An act that is done on chain after its approval. `carryOut` does it at most once for each id, however often it is called. */
type ChainAct = Readonly<{
  readFacts: (subject: string) => Promise<ApprovalFacts | null>
  isBegun: (id: string) => Promise<boolean>
  carryOut: (subject: string, id: string, by: Actor) => Promise<Carried>
}>

/** `block` is that of the transaction; null while it is not mined. `isFinal` is false where the same act may succeed later. */
type Carried = Readonly<{ ok: true; block: bigint | null } | { ok: false; isFinal: boolean; message: string }>

export type Acts = Readonly<
  Partial<Record<ApprovalAct, ChainAct | DatabaseAct>> &
    Record<'batch-revoke' | 'batch-restore' | 'key-deletion', DatabaseAct>
>

/** The key or user that decides. `key` is the API key, whose brands limit what it may decide; null for a user of the machine. */
export type Decider = Actor & Readonly<{ key: Readonly<{ id: string; brands: readonly string[] | null }> | null }>

/** `block` is that of the act, where it is mined. `because` is the reason of a refusal: then nothing was done. */
export type Decided =
  | Readonly<{ ok: true; approval: Approval; block: bigint | null }>
  | Readonly<{ ok: false; because: keyof typeof refusals; message: string; approval: Approval | null }>

const refusals = {
  unknown: 'There is no such request for approval.',
  own: 'A second key or operator must approve it: the one that asked may only reject it.',
  young: 'This key was made after the request, so that it cannot approve it.',
  gone: 'This key was revoked or has ended.',
  settled: 'It was decided, or has expired.',
  changed: 'The subject has changed since the request, so that nothing was done: ask again.',
  altered: 'The request is not the one of the audit trail, so that nothing was done. Run touchstone audit verify.',
  elsewhere: 'This process cannot carry it out: it needs the chain (CHAIN_RPC_URLS, CHAIN_CONTRACT).',
} as const

export type Requested =
  | Readonly<{ ok: true; approval: Approval }>
  | Readonly<{ ok: false; because: 'missing' | 'other_request' }>

export type Approvals = ReturnType<typeof createApprovals>

/**
 * `required` are the acts of APPROVALS, `hours` the time in which a request must be approved. `indexed` is the database for reads of
 * products, which fail while the index is being filled.
 */
export function createApprovals({
  database,
  indexed = database,
  required,
  hours,
  acts,
  log,
  leaseMs = 60_000,
}: {
  readonly database: Pick<Database, 'query' | 'transaction' | 'dialect'>
  readonly indexed?: Sql
  readonly required: ReadonlySet<ApprovalAct>
  readonly hours: number
  readonly acts: Acts
  readonly log: Log
  /** Time after which an unfinished execution is taken up by another process. */
  readonly leaseMs?: number
}) {
  const store = approvalStore(database, indexed)

  /** Requests an act. For the same key, or while a request for the same act waits, it returns that request. */
  async function request(
    { act, subject, requestKey = null }: Pick<Approval, 'act' | 'subject'> & { readonly requestKey?: string | null },
    by: Actor = localActor(),
  ): Promise<Requested> {
    const known = requestKey === null ? null : await store.findByKey(requestKey)
    if (known !== null && (known.act !== act || known.subject !== subject))
      return { ok: false, because: 'other_request' }
    if (known !== null) return { ok: true, approval: known }
    const definition = acts[act]
    if (definition === undefined) throw new Error(`The act ${act} cannot be asked for here.`)
    const facts =
      'facts' in definition ? await definition.facts(database, subject) : await definition.readFacts(subject)
    if (facts === null) return { ok: false, because: 'missing' }
    const wanted = { act, subject, requestKey, facts: JSON.stringify(facts) }
    const { approval, added } = await store.add(wanted, hours, by)
    // Another process may have stored a request under this key since the first look.
    if (approval.subject !== subject || approval.act !== act) return { ok: false, because: 'other_request' }
    if (approval.status === 'PENDING' && approval.facts !== wanted.facts) {
      await store.end(approval.id, refusals.changed, 'PENDING') // the subject has changed since it was asked for
      return request({ act, subject, requestKey }, by)
    }
    if (added) log.info('approval asked for', { id: approval.id, act, subject, by: by.who })
    else if (requestKey !== null) await store.join(approval.id, requestKey)
    return { ok: true, approval }
  }

  /** Approves a request, and carries it out. Resolves when it is done, or under way on chain. */
  async function approve(id: string, by: Decider): Promise<Decided> {
    const found = await store.find(id)
    // The brand is compared again under the lock. Here a request of another brand ends before anything of it shows, as by a fault of the chain.
    if (found === null || !(await mayDecide(indexed, found, by))) return refused('unknown')
    const definition = acts[found.act]
    if (definition === undefined) return refused('elsewhere', found)
    // The chain is read before the row is locked: a slow provider must not hold a connection of the database.
    const isPending = found.status === 'PENDING'
    const seen = isPending && 'readFacts' in definition ? await definition.readFacts(found.subject) : undefined
    const decided = await underLock(id, by, async (sql, locked) => {
      const because = objection(locked, by)
      if (because !== null) return refused(because, locked)
      const facts = 'facts' in definition ? await definition.facts(sql, locked.subject) : (seen ?? null)
      if (facts === null || JSON.stringify(facts) !== locked.facts) return refused('changed', locked)
      if ('facts' in definition && !(await definition.apply(sql, locked.subject, { ...by, approval: id }, facts)))
        return refused('changed', locked)
      await store.decide(sql, locked, 'facts' in definition ? 'DONE' : 'APPROVED', by)
      return null
    })
    if (decided !== null) return noteRefusal(decided, by)
    log.info('approved', { id, act: found.act, subject: found.subject, by: by.who })
    const block = 'facts' in definition ? null : await carryOut(definition, found, by.requestId)
    if ('facts' in definition) await followUp(definition, found.subject)
    return { ok: true, approval: (await store.find(id)) ?? found, block }
  }

  /** Decides a request under its row lock. Returns the refusal, or null where it was decided. */
  function underLock(id: string, by: Decider, decide: (sql: Sql, locked: LockedApproval) => Promise<Decided | null>) {
    return database.transaction(async (sql) => {
      const locked = await store.lock(sql, id, by.key?.id ?? null)
      return locked !== null && (await mayDecide(sql, locked, by)) ? decide(sql, locked) : refused('unknown')
    })
  }

  /** Notes an attempt to approve in the audit trail, and ends a request that cannot be approved any more. */
  async function noteRefusal(decided: Decided, by: Decider): Promise<Decided> {
    if (decided.ok || decided.approval === null || decided.because === 'settled') return decided
    const { because, message, approval } = decided
    const { id, act, subject } = approval
    await appendAudit(database, auditText(by, { act, subject, outcome: 'REFUSED', approval: id, because: message }))
    log.warn('approval refused', { id, because, by: by.who })
    const isDecided = because === 'changed' && !(await store.end(id, message, 'PENDING'))
    const now = await store.find(id)
    return isDecided ? refused('settled', now) : { ...decided, approval: now }
  }

  /** Rejects a request. The one that asked may take its own back, whatever its rights are. */
  async function reject(id: string, by: Decider): Promise<Decided> {
    const found = await store.find(id)
    if (found === null || !(await mayDecide(indexed, found, by))) return refused('unknown')
    const decided = await underLock(id, by, async (sql, locked) => {
      if (locked.isGone) return refused('gone', locked)
      if (locked.status !== 'PENDING') return refused('settled', locked)
      await store.decide(sql, locked, 'REJECTED', by)
      return null
    })
    const approval = await store.find(id)
    if (decided !== null || approval === null) return decided ?? refused('unknown')
    log.info('approval rejected', { id, act: approval.act, subject: approval.subject, by: by.who })
    return { ok: true, approval, block: null }
  }

  /** Carries out an approved act on chain, or leaves it to `resume`. Returns the block of its transaction. */
  async function carryOut(
    act: ChainAct,
    { id, subject, facts, requestedBy }: Approval,
    requestId?: string,
  ): Promise<bigint | null> {
    const by = { who: requestedBy, approval: id, ...(requestId !== undefined && { requestId }) }
    try {
      const isUnchanged = (await act.isBegun(id)) || JSON.stringify(await act.readFacts(subject)) === facts
      const carried = isUnchanged
        ? await act.carryOut(subject, id, by)
        : ({ ok: false, isFinal: true, message: refusals.changed } as const)
      if (carried.ok) return carried.block
      log.warn('approved act not done', { id, reason: carried.message })
      if (carried.isFinal) await store.end(id, carried.message, 'APPROVED')
    } catch (error) {
      log.warn('approved act not done yet', { id, reason: reasonOf(error) })
      if (!(error instanceof ServiceError)) throw error
    }
    return null
  }

  async function followUp({ afterwards }: DatabaseAct, subject: string): Promise<void> {
    await afterwards?.(subject).catch((error: unknown) =>
      log.warn('approved act not followed up', { reason: reasonOf(error) }),
    )
  }

  /** Ends requests that were not decided in time, and carries out what a crash or the chain left undone. It may run in every process. */
  async function resume(): Promise<void> {
    await store.expire()
    for (const { id, isLate } of await store.takeLeft(leaseMs, hours)) {
      const approval = await store.find(id)
      const act = approval === null ? undefined : acts[approval.act]
      if (approval === null || act === undefined || 'facts' in act) continue
      if (isLate) await store.end(id, 'It could not be done in time.', 'APPROVED')
      else await carryOut(act, approval).catch(() => {}) // logged; tried again after the lease
    }
  }

  return {
    isRequired: (act: ApprovalAct): boolean => required.has(act === 'batch-restore' ? 'batch-revoke' : act),
    request,
    approve,
    reject,
    resume,
    find: store.find,
    findByKey: store.findByKey,
    page: store.page,
    count: store.count,
  }
}

/** Formats the state of a request that is not done, for the one that asked. */
export function formatWaiting({ id, status, expiresAt, decidedBy, failure }: Approval): string {
  const sentences = {
    PENDING: `It waits until ${expiresAt} for the approval of a second key or operator: nothing is done yet.`,
    APPROVED: `It was approved by ${decidedBy}, and is being carried out.`,
    DONE: `It was approved by ${decidedBy}, and is done.`,
    FAILED: `It was not done. ${failure ?? 'The transaction failed.'}`,
    REJECTED: `It was rejected by ${decidedBy}. Ask again under a new key, if need be.`,
    EXPIRED: `It was not approved before ${expiresAt}. Ask again under a new key, if need be.`,
  }
  return `Request ${id}: ${sentences[status]}`
}

function objection(locked: LockedApproval, { who }: Decider): keyof typeof refusals | null {
  if (locked.isGone) return 'gone'
  if (locked.status !== 'PENDING') return 'settled'
  if (locked.requestedBy === who) return 'own'
  if (locked.isYounger) return 'young'
  return locked.isAltered ? 'altered' : null
}

/** A key with brands decides about their products only, and does not learn of other requests. */
async function mayDecide(sql: Sql, { act, subject }: Approval, { key }: Decider): Promise<boolean> {
  if (key === null || key.brands === null) return true
  if (act !== 'recycle') return false
  const text = 'select from asset where token_id = $1::numeric and brand = any($2::text[])'
  return (await sql.query(text, [subject, key.brands])).length > 0
}

function refused(because: keyof typeof refusals, approval: Approval | null = null): Decided {
  return { ok: false, because, message: refusals[because], approval: because === 'unknown' ? null : approval }
}
