/**
 * The invalidator by logs (spec §2.2, §4.1). It reads the logs of every block between two heads, so that an entry is kept as long as no
 * log names its token.
 *
 * An entry that was read at an earlier block P and is shown at the head H is what a read pinned to H gives:
 * 1. The window holds a chain of blocks, each the parent of the next, ending in H. A block comes in only as the parent (by
 *    hash) of one that is in or comes in, and only with all its logs, fetched by its hash. So nothing between is missing.
 * 2. Every write to a record or a metadata hash emits an event that names the token (contracts/src/IAssetRegistry.sol).
 * 3. An entry is put in only if P is in the window and no block after P up to H names its token, and it is dropped in the
 *    same turn in which a block that names its token comes in. So there is no write between P and H: same record.
 * 4. A reorganisation takes the window back to the last common block A, and drops every entry put in at a head above A.
 *    An entry that stays was put in at a head at or below A, which therefore is still in the chain, and 3 held ever since.
 * 5. Whatever cannot be established (a gap, an old window, an answer that fails, an event that is not known) restarts the
 *    window at H with an empty cache, for which 3 holds trivially.
 * The logs are trusted as answers are in trust `rpc`; the audit (audit.ts) checks them.
 */
import type { Hex } from '@touchstone/verdict'
import { toEventSelector } from 'viem/utils'
import type { BlockId } from '../../../domain/chain.ts'
import type { ChainLog } from '../../../domain/registry-event.ts'
import { reasonOf } from '../../../lib/errors.ts'
import type { Log } from '../../../lib/log.ts'
import type { Block } from '../../rpc/block.ts'
import { nonCanonical, type NonCanonical } from '../../rpc/answer.ts'
import { type ChainSource } from '../../rpc/source.ts'
import type { AssetCache } from '../cache.ts'
import { type AuditOptions, createAudit } from './audit.ts'
import { type Invalidator, noStats } from './invalidator.ts'
import { createWindow, type Touched } from './window.ts'

/** Blocks between two heads; over a wider gap the window restarts. */
const maxGap = 64
/** After this many failures in a row the logs are not read for a while. Each failure costs time at every head. */
const failuresBeforeRest = 3
const restMs = 30_000

type LogInvalidatorOptions = Readonly<{
  source: ChainSource
  cache: AssetCache
  audits: Pick<AuditOptions, 'read' | 'every' | 'everyMs' | 'sample'>
  /** Monotonic milliseconds for ages; deadlines are moments of `performance.now()`. */
  now: () => number
  log: Log
}>

export function createLogInvalidator(options: LogInvalidatorOptions): Invalidator {
  const { source, cache, audits, now, log } = options
  const window = createWindow()
  const audit = createAudit({ ...audits, source, cache, window, alarm: switchOff, now, log })
  const counts = { flushes: 0, reorgs: 0, followFailures: 0 }
  let off = false
  let movedAt = -Infinity
  let failuresInARow = 0
  let restUntil = -Infinity
  let lostPins = source.lostPins()

  async function advance(to: Block, deadline: number): Promise<NonCanonical | undefined> {
    if (lostPins !== source.lostPins()) {
      lostPins = source.lostPins()
      restart(to)
    }
    const head = window.head()
    if (head?.hash === to.hash) {
      movedAt = now()
      return undefined
    }
    const moved = head !== undefined && mayFollow(head, to) ? await follow(to, deadline) : 'failed'
    if (moved === nonCanonical) return nonCanonical
    if (moved === 'failed') restart(to)
    if (!off) audit.nextHead()
    return undefined
  }

  function mayFollow(head: Block, to: Block): boolean {
    // A window that has not moved for longer restarts: the audit between two heads would come too late.
    const isMoving = now() - movedAt <= audits.everyMs
    return !off && audit.trusted() && now() >= restUntil && isMoving && to.number - head.number <= maxGap
  }

  async function follow(to: Block, deadline: number): Promise<NonCanonical | 'moved' | 'failed'> {
    try {
      const path = await pathTo(to, deadline)
      if (path === null || path === nonCanonical) return path ?? 'failed'
      const steps = await Promise.all(path.blocks.map((block) => touchedIn(block, deadline)))
      if (steps.includes(nonCanonical)) return nonCanonical
      failuresInARow = 0
      // From here on nothing waits: the head and the cache change in one turn.
      rewindTo(path.ancestor)
      for (const step of steps) {
        if (step === nonCanonical) continue
        window.append(step.block, step.touched)
        if (step.touched.tokens === 'all') flush()
        else for (const tokenId of step.touched.tokens) cache.drop(tokenId)
        if (step.touched.newCode) switchOff('the contract reports that its code may have changed')
      }
      cache.nextHead()
      movedAt = now()
      return off ? 'failed' : 'moved'
    } catch (error) {
      counts.followFailures++
      if (++failuresInARow >= failuresBeforeRest) restUntil = now() + restMs
      log.warn('chain not followed', { block: to.number, reason: reasonOf(error) })
      return 'failed'
    }
  }

  async function touchedIn(block: Block, deadline: number) {
    const logs = await source.logs(block, { deadline })
    return logs === nonCanonical ? logs : { block, touched: findTouched(logs) }
  }

  /** Returns the blocks after the last one of the window, oldest first, or `null` when that is too far away. */
  async function pathTo(
    to: Block,
    deadline: number,
  ): Promise<{ ancestor: BlockId; blocks: Block[] } | NonCanonical | null> {
    const blocks: Block[] = []
    let place: BlockId = to
    let known: Block | undefined = to
    while (!window.knows(place)) {
      if (place.number <= window.base() || blocks.length === maxGap) return null
      const block: Block | NonCanonical = known ?? (await source.block(place.hash, { deadline }))
      if (block === nonCanonical) return nonCanonical
      if (block.hash !== place.hash || block.number !== place.number) return null
      blocks.unshift(block)
      place = { hash: block.parentHash, number: block.number - 1n }
      known = undefined
    }
    return { ancestor: place, blocks }
  }

  function rewindTo(ancestor: BlockId): void {
    if (window.head()?.hash === ancestor.hash) return
    counts.reorgs++
    window.rewind(ancestor)
    cache.dropAbove(ancestor.number)
  }

  function restart(to: Block): void {
    flush()
    window.restart(to)
    movedAt = now()
  }

  function flush(): void {
    if (cache.size() > 0) counts.flushes++
    cache.flush()
  }

  /** Switches off for good, because an operator must look at the reason. From then on an entry is kept for its head only. */
  function switchOff(reason: string): void {
    if (off) return
    off = true
    log.error('cache by events switched off', { reason })
    const head = window.head()
    if (head !== undefined) restart(head)
  }

  return {
    head: window.head,
    knows: window.knows,
    advance,
    restart,
    validity: window.validity,
    stats: () => ({ ...noStats, ...counts, ...audit.stats(), mode: off || !audit.trusted() ? 'head' : 'events' }),
  }
}

/** The part of a log that names its token. `none`: no record changes; `all`: any may change; `code`: the contract's code changes. */
type TokenPlace = 'topic 1' | 'topic 3' | 'first word' | 'none' | 'all' | 'code'

const tokenPlaces: Readonly<Record<string, TokenPlace>> = {
  'AssetMinted(uint256,address,bytes32)': 'topic 1',
  'TagBound(uint256,bytes32)': 'topic 1',
  'StateChanged(uint256,uint8,uint8,address)': 'topic 1',
  'AssetResold(uint256,address,address)': 'topic 1',
  'FlagsChanged(uint256,uint8,address,bytes32)': 'topic 1',
  'MetadataHashSet(uint256,bytes32)': 'topic 1',
  'TransferInitiated(uint256,address,address,uint64,uint32,bytes32)': 'topic 1',
  'TransferCancelled(uint256,uint32,address)': 'topic 1',
  'Transfer(address,address,uint256)': 'topic 3',
  'Approval(address,address,uint256)': 'topic 3',
  'NonceInvalidated(uint256,uint32,address)': 'topic 1',
  'RecycleAnnounced(uint256,uint64,address)': 'topic 1',
  'Locked(uint256)': 'first word',
  'MetadataUpdate(uint256)': 'first word',
  'BatchMetadataUpdate(uint256,uint256)': 'all',
  'ApprovalForAll(address,address,bool)': 'none',
  'ContractURIUpdated()': 'none',
  'RoleGranted(bytes32,address,address)': 'none',
  'RoleRevoked(bytes32,address,address)': 'none',
  'RoleAdminChanged(bytes32,bytes32,bytes32)': 'none',
  'DefaultAdminTransferScheduled(address,uint48)': 'none',
  'DefaultAdminTransferCanceled()': 'none',
  'DefaultAdminDelayChangeScheduled(uint48,uint48)': 'none',
  'DefaultAdminDelayChangeCanceled()': 'none',
  'AttesterLimitSet(address,uint32)': 'none',
  'EIP712DomainChanged()': 'all',
  'Upgraded(address)': 'code',
  'BeaconUpgraded(address)': 'code',
  'AdminChanged(address,address)': 'code',
}

/** By the first topic: keccak256 of the event's signature. */
const placeByTopic = new Map(
  Object.entries(tokenPlaces).map(([signature, place]) => [toEventSelector(signature), place]),
)

/**
 * Finds the tokens that logs name (spec §2.5). An event that is not in the table may stand for a write to any record.
 * `newCode`: a proxy changed its code, so that its events prove nothing any more.
 */
export function findTouched(logs: readonly ChainLog[]): Touched & Readonly<{ newCode: boolean }> {
  const named = logs.map(tokenIn)
  const tokens = named.includes('all') ? 'all' : new Set(named.filter((token) => typeof token === 'bigint'))
  const newCode = logs.some(({ topics }) => placeOf(topics) === 'code')
  return { tokens, silent: logs.length === 0, newCode }
}

function tokenIn({ topics, data }: ChainLog): bigint | 'none' | 'all' {
  const place = placeOf(topics)
  if (place === 'none') return 'none'
  if (place === 'topic 1') return parseToken(topics[1])
  if (place === 'topic 3') return parseToken(topics[3])
  if (place === 'first word') return parseToken(data.slice(0, 66))
  return 'all'
}

function placeOf([topic = '0x']: readonly Hex[]): TokenPlace | undefined {
  return placeByTopic.get(topic)
}

/** An event of a known name with another shape is an unknown event. */
function parseToken(text: string | undefined): bigint | 'all' {
  return text !== undefined && text.length === 66 ? BigInt(text) : 'all'
}
