/**
 * Checks that no log was missed (spec §2.2). After every `every` heads or `everyMs`, in the background, it compares the chain with the
 * cache in two ways that do not use logs:
 * - `eth_getProof` without slots: as long as no log came, the contract's storage root must be that of the last audit.
 * - The next part of a round through the cache is read again and must equal the cache. This also finds a change that hides
 *   among other logs, and reaches all entries in time.
 * A difference that no log explains, and that a second read confirms, is an alarm: some nodes (anvil) let a read at the head
 * see the block in the making. A provider without proofs cannot be audited, so its logs are not trusted.
 */
import { type EthProof, wordOfRecord } from '@touchstone/verdict'
import { reasonOf } from '../../../lib/errors.ts'
import type { Log } from '../../../lib/log.ts'
import type { Block } from '../../rpc/block.ts'
import { nonCanonical, type NonCanonical } from '../../rpc/answer.ts'
import { type ChainSource } from '../../rpc/source.ts'
import type { AssetCache } from '../cache.ts'
import type { DecodedState } from '../calls/abi.ts'
import type { Window } from './window.ts'

export type AuditOptions = Readonly<{
  source: ChainSource
  cache: AssetCache
  window: Window
  /** Reads tokens at a block; `null` where it cannot now. */
  read: (ids: readonly bigint[], block: Block) => Promise<readonly DecodedState[] | NonCanonical | null>
  /** Heads between two audits, at most. */
  every: number
  /** Time between two audits, unless no head comes for longer. */
  everyMs: number
  /** Returns the number of entries that one audit reads again. */
  sample: () => number
  alarm: (reason: string) => void
  /** Monotonic milliseconds. */
  now: () => number
  log: Log
}>

/** Audits in a row that may fail. */
const maxFailures = 3

export function createAudit(options: AuditOptions) {
  const { source, cache, window, read, every, everyMs, sample, alarm, now, log } = options
  let last: Readonly<{ block: Block; proof: EthProof }> | undefined
  let trusted = false
  let failures = 0
  let headsSince = Infinity
  let startedAt = -Infinity
  let running = false
  const counts = { audits: 0, auditFailures: 0 }

  function nextHead(): void {
    headsSince++
    const head = window.head()
    const isDue = headsSince >= every || now() - startedAt >= everyMs
    if (running || head === undefined || !isDue) return
    running = true
    headsSince = 0
    startedAt = now()
    void audit(head).finally(() => (running = false))
  }

  async function audit(head: Block): Promise<void> {
    try {
      if ((await auditRoot(head)) === nonCanonical) return void (headsSince = Infinity)
      trusted = true
      failures = 0
      counts.audits++
    } catch (error) {
      if (++failures >= maxFailures) trusted = false
      if (failures <= maxFailures) log.warn('chain not audited', { block: head.number, reason: reasonOf(error) })
    }
    try {
      await auditEntries(head)
    } catch (error) {
      log.warn('cache not audited', { block: head.number, reason: reasonOf(error) })
    }
  }

  async function auditRoot(head: Block): Promise<NonCanonical | undefined> {
    let proof = await source.proof([], head)
    if (proof !== nonCanonical && unexplained(proof, head) !== null) proof = await source.proof([], head)
    if (proof === nonCanonical) return proof
    const reason = unexplained(proof, head)
    if (reason !== null) raise(reason)
    // A head that was reorganised away meanwhile cannot serve the next audit.
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

  async function auditEntries(head: Block): Promise<void> {
    const tokens = await differing(cache.round(sample()), head)
    if ((await differing(tokens, head)).length > 0) raise('a record changed without a log')
  }

  /** Returns the tokens whose state on the chain differs from the cache without a log. */
  async function differing(ids: readonly bigint[], head: Block): Promise<readonly bigint[]> {
    const found = ids.length === 0 ? null : await read(ids, head)
    if (found === null || found === nonCanonical) return []
    return ids.filter((tokenId, index) => {
      const there = found[index]
      const entry = cache.peek(tokenId)
      // The entry holds at the newest head. So does what was read at this one, where no log came in between.
      const comparable = window.validity(tokenId, head) === 'valid'
      return comparable && there !== undefined && entry !== undefined && !isSame(there, entry)
    })
  }

  function raise(reason: string): void {
    counts.auditFailures++
    alarm(reason)
  }

  return {
    nextHead,
    /** Returns whether the last audits were possible at all. */
    trusted: () => trusted,
    stats: () => ({ ...counts }),
  }
}

function isSame(a: DecodedState, b: DecodedState): boolean {
  return wordOfRecord(a.record) === wordOfRecord(b.record) && a.metadataHash === b.metadataHash
}
