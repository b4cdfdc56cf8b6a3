/**
 * The proof that no log was missed (spec §2.2). Every so many heads, in the background, two looks that do not use logs:
 * - `eth_getProof` without slots: as long as no log came, the contract's storage root must be the one of the last look.
 * - The next part of a round through the cache is read again: it must be what the cache holds. This one also finds what
 *   hides among other logs, and works its way through all entries.
 * A difference that no log explains, and that is there when asked for a second time, is an alarm: some nodes (anvil) let a
 * read at the head see the block that they are just making. A provider that does not prove cannot be audited, so it is
 * not trusted.
 */
import { wordOfRecord } from '@touchstone/verdict'
import type { EthProof } from '@touchstone/verdict'
import { reasonOf } from '../errors.ts'
import type { Log } from '../log.ts'
import type { AssetCache } from './cache.ts'
import type { Window } from './follower-window.ts'
import type { Found } from './read-calls.ts'
import { blockGone } from './source.ts'
import type { Block, BlockGone, ChainSource } from './source.ts'

export type Audit = Readonly<{
  nextHead: () => void
  /** Whether the last looks were possible at all. */
  trusted: () => boolean
  stats: () => Readonly<{ audits: number; auditFailures: number }>
}>

export type AuditOptions = Readonly<{
  source: ChainSource
  cache: AssetCache
  window: Window
  /** Reads tokens at a block; `null` where it cannot now. */
  read: (ids: readonly bigint[], block: Block) => Promise<readonly Found[] | BlockGone | null>
  /** Heads between two looks. */
  every: number
  /** Entries that are read again in one look. */
  sample: () => number
  alarm: (reason: string) => void
  log: Log
}>

/** Looks in a row that may fail. */
const maxMisses = 3

export function createAudit(options: AuditOptions): Audit {
  const { source, cache, window, read, every, sample, alarm, log } = options
  let last: Readonly<{ block: Block; proof: EthProof }> | undefined
  let trusted = false
  let misses = 0
  let headsSince = Infinity
  let running = false
  const counts = { audits: 0, auditFailures: 0 }

  function nextHead(): void {
    headsSince++
    const head = window.head()
    if (running || head === undefined || headsSince < every) return
    running = true
    headsSince = 0
    void look(head).finally(() => (running = false))
  }

  async function look(head: Block): Promise<void> {
    try {
      if ((await lookAtRoot(head)) === blockGone) return void (headsSince = Infinity)
      trusted = true
      misses = 0
      counts.audits++
    } catch (error) {
      if (++misses >= maxMisses) trusted = false
      if (misses <= maxMisses) log.warn('chain not audited', { block: head.number, reason: reasonOf(error) })
    }
    try {
      await lookAtEntries(head)
    } catch (error) {
      log.warn('cache not audited', { block: head.number, reason: reasonOf(error) })
    }
  }

  async function lookAtRoot(head: Block): Promise<BlockGone | undefined> {
    let proof = await source.proof([], head)
    if (proof !== blockGone && unexplained(proof, head) !== null) proof = await source.proof([], head)
    if (proof === blockGone) return proof
    const reason = unexplained(proof, head)
    if (reason !== null) fail(reason)
    // A head that was reorganised away meanwhile is of no use for the next look.
    if (window.knows(head)) last = { block: head, proof }
    return undefined
  }

  function unexplained({ storageHash, codeHash }: EthProof, head: Block): string | null {
    if (storageHash === undefined || codeHash === undefined) throw new Error('a proof without its hashes')
    if (last === undefined) return null
    if (last.proof.codeHash !== codeHash) return 'the code of the contract changed'
    const changed = last.proof.storageHash !== storageHash && window.silentBetween(last.block, head)
    return changed ? 'the storage of the contract changed without a log' : null
  }

  async function lookAtEntries(head: Block): Promise<void> {
    const unlike = await unlikeCache(cache.round(sample()), head)
    if ((await unlikeCache(unlike, head)).length > 0) fail('a record changed without a log')
  }

  /** Those that the chain shows otherwise than the cache, although no log says so. */
  async function unlikeCache(ids: readonly bigint[], head: Block): Promise<readonly bigint[]> {
    const found = ids.length === 0 ? null : await read(ids, head)
    if (found === null || found === blockGone) return []
    return ids.filter((tokenId, index) => {
      const there = found[index]
      const entry = cache.peek(tokenId)
      // The entry is true at the newest head. What was read at this one is too, where no log came in between.
      const comparable = window.standing(tokenId, head) === 'holds'
      return comparable && there !== undefined && entry !== undefined && !isSame(there, entry)
    })
  }

  function fail(reason: string): void {
    counts.auditFailures++
    alarm(reason)
  }

  return { nextHead, trusted: () => trusted, stats: () => ({ ...counts }) }
}

function isSame(a: Found, b: Found): boolean {
  return wordOfRecord(a.record) === wordOfRecord(b.record) && a.metadataHash === b.metadataHash
}
