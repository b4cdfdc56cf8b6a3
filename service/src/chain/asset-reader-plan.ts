/**
 * How a reader is set up (spec §2.5): in which form it reads, and who decides what may be kept between two heads.
 * The mode of trust decides both: what is proven is not mixed with what is believed.
 */
import type { Hex } from '@touchstone/verdict'
import type { Log } from '../log.ts'
import type { AssetCache } from './cache.ts'
import { createAudit } from './follower-audit.ts'
import { createEventsFollower } from './follower-events.ts'
import { createRootFollower } from './follower-root.ts'
import { createWindow } from './follower-window.ts'
import { createHeadFollower } from './follower.ts'
import type { Follower } from './follower.ts'
import { createProvenRead, proofForm, registrySlots } from './proof-read.ts'
import type { Slots } from './proof-read.ts'
import type { Found } from './read-calls.ts'
import type { ReadForm } from './read-calls-form.ts'
import { createFormChooser } from './read-calls-probe.ts'
import type { FormChooser, ReadInterface } from './read-calls-probe.ts'
import { blockGone } from './source.ts'
import type { Block, BlockGone, ChainSource } from './source.ts'

export type AssetReaderOptions = Readonly<{
  source: ChainSource
  contract: Hex
  interface: ReadInterface
  /** `quorum` is the source's business; `proof` needs `codeHash` and, for a foreign contract, the three slots. */
  trust: 'rpc' | 'quorum' | 'proof'
  codeHash?: Hex | undefined
  /** Storage slots of the mappings token → record, token → metadata hash, tag → token. */
  recordsSlot?: bigint
  metadataSlot?: bigint
  tagsSlot?: bigint
  /** `events`: an asset is kept until a log names its token. `head`: for one head. `off`: not at all. */
  cache: 'events' | 'head' | 'off'
  /** Assets in the cache; the one that was not asked for longest falls out. */
  cacheEntries: number
  /** How old the head of an answer may be, and from what age on it is renewed in the background. */
  headMaxAgeMs?: number
  headRefreshMs?: number
  /** Tokens in one call, and calls under way at one time. */
  maxBatch?: number
  lanes?: number
  /** Heads between two audits of the cache by events. */
  auditEvery?: number
  /** Milliseconds, never going back. */
  now?: () => number
  log: Log
}>

export type Plan = Readonly<{
  follower: Follower
  /** The form that suits the contract. Throws CHAIN_UNAVAILABLE. */
  formAt: FormChooser
  /** Tokens in one batch. */
  batchSize: number
}>

type PlanOptions = AssetReaderOptions & Readonly<{ cache: AssetReaderOptions['cache']; now: () => number }>

/** Throws for options that can never work. */
export function createPlan(options: PlanOptions, cache: AssetCache): Plan {
  return options.trust === 'proof' ? provenPlan(options, cache) : believedPlan(options, cache)
}

function provenPlan(options: PlanOptions, cache: AssetCache): Plan {
  const { source, contract, codeHash, log } = options
  if (codeHash === undefined) throw new Error('Trust "proof" needs the code hash of the contract.')
  const proven = createProvenRead({ source, contract, codeHash })
  const form = proofForm(proven, slotsOf(options))
  return {
    follower: options.cache === 'events' ? createRootFollower({ cache, proven, log }) : createHeadFollower(cache),
    formAt: () => Promise.resolve(form),
    batchSize: form.maxBatch,
  }
}

/** A slot that is wrong proves, truly, that nothing is stored there: what is not our contract must name all of them. */
function slotsOf({ interface: kind, recordsSlot, metadataSlot, tagsSlot }: AssetReaderOptions): Slots {
  const own = kind === 'foreign' ? undefined : registrySlots
  const records = recordsSlot ?? own?.records
  const metadata = metadataSlot ?? own?.metadata
  const tags = tagsSlot ?? own?.tags
  if (records === undefined || metadata === undefined || tags === undefined) {
    throw new Error('Trust "proof" needs the storage slots of records, metadata hashes and tags of a foreign contract.')
  }
  return { records, metadata, tags }
}

function believedPlan(options: PlanOptions, cache: AssetCache): Plan {
  const { source, contract, interface: kind, maxBatch = 1000, auditEvery = 16, now, log } = options
  const choose = createFormChooser({ source, contract, interface: kind })
  let form: ReadForm | undefined

  async function formAt(block: Block, deadline: number): Promise<ReadForm | BlockGone> {
    const chosen = await choose(block, deadline)
    if (chosen !== blockGone) form = chosen
    return chosen
  }

  /** Past the batches: an audit waits for nobody and nobody waits for it. */
  async function readAgain(ids: readonly bigint[], block: Block): Promise<readonly Found[] | BlockGone | null> {
    const answer = await form?.read(ids, block, performance.now() + auditTimeoutMs)
    if (answer === undefined || answer === blockGone) return answer ?? null
    return 'suspects' in answer ? null : answer
  }

  if (options.cache !== 'events') return { follower: createHeadFollower(cache), formAt, batchSize: maxBatch }
  const window = createWindow()
  const audit = (alarm: (reason: string) => void) =>
    createAudit({
      source,
      cache,
      window,
      alarm,
      log,
      read: readAgain,
      every: auditEvery,
      sample: () => Math.min(maxBatch, form?.maxBatch ?? 0),
    })
  return { follower: createEventsFollower({ source, cache, window, audit, now, log }), formAt, batchSize: maxBatch }
}

const auditTimeoutMs = 3000
