/**
 * What `touchstone tag import` does with planned rows: token, binding on chain, activation, registration, in this order. Each step
 * has an idempotency key made of UID and epoch, so that running it again only does what is missing.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { zeroHash } from 'viem'
import type { Hex } from '@touchstone/verdict'
import { ServiceError } from '../errors.ts'
import { inParallel } from './in-parallel.ts'
import { activateAsset, bindTag } from './tag-import-chain.ts'
import { openMints } from './tag-import-mints.ts'
import {
  boundTokens,
  createPlanner,
  isStop,
  notMined,
  refusals,
  refused,
  type ImportChain,
  type Plan,
  type RowOutcome,
  type Stop,
} from './tag-import-plan.ts'
import type { ReadRow } from './tag-import-rows.ts'
import type { Session } from './store-command.ts'

export type Wanted = Readonly<{ mint: boolean; bind: boolean; activate: boolean; to: Hex; dryRun: boolean }>
export type RowResult = Readonly<{
  line: number
  uid: string
  batch: string
  epoch: number | ''
  tokenId: bigint | ''
  outcome: RowOutcome
  detail: string
}>

/** Rows under way at the same time; the chain takes them one by one. */
const lanes = 16
/** Pauses before an unanswered step is tried again; a chain that is only busy is back by then. */
const pausesMs = [500, 2_000, 6_000]

/** `run` handles up to 200 rows; results come in their order. */
export async function createImporter(session: Session, chain: ImportChain | null, wanted: Wanted) {
  const { store, dataDir, io } = session
  const { tags } = store
  const planRow = await createPlanner(tags)
  const mints = chain === null || wanted.dryRun ? null : await openMints({ ...chain, dataDir, isRegistered })
  let isChainDown = false

  async function isRegistered(name: string): Promise<boolean> {
    const [uid = '', epochText] = name.split('-')
    const epoch = Number(epochText)
    const known = await tags.tagOfUid(Uint8Array.from(Buffer.from(uid, 'hex')))
    return known !== undefined && (known.epoch > epoch || (known.epoch === epoch && known.tokenId !== null))
  }

  async function run(rows: readonly ReadRow[], onRow: (outcome: RowOutcome) => void): Promise<RowResult[]> {
    const planned: (Plan | Stop)[] = []
    for (const row of rows) planned.push(await planRow(row))
    const plans = await withMinted(await withKnownTokens(planned))
    return inParallel(plans, lanes, async (plan, index) => {
      const stop = isStop(plan) ? plan : io.signal.aborted ? stopped : await answered(() => finish(plan))
      onRow(stop.outcome)
      return resultOf(rows[index] as ReadRow, plan, stop)
    })
  }

  /** Tokens that an earlier import has minted, or that the chain knows. */
  async function withKnownTokens(plans: readonly (Plan | Stop)[]): Promise<(Plan | Stop)[]> {
    const missing = plans.filter((plan) => !isStop(plan) && plan.tokenId === undefined) as Plan[]
    if (chain === null || missing.length === 0) return [...plans]
    const bound = await answered(() =>
      boundTokens(
        chain,
        missing.map(({ row }) => row),
      ),
    )
    return plans.map((plan) => {
      if (isStop(plan) || plan.tokenId !== undefined) return plan
      if ('outcome' in bound) return bound
      const minted = mints?.tokenOf(plan.name)
      if (minted === 'pending') return notMined
      const tokenId = minted ?? bound.get(plan.row.uidText)
      if (tokenId === undefined && wanted.bind && !wanted.mint)
        return refused('Without a tokenId there is nothing to bind the tag to; --mint makes one.')
      return { ...plan, tokenId }
    })
  }

  /** Mints for the rows that have no token yet. */
  async function withMinted(plans: (Plan | Stop)[]): Promise<(Plan | Stop)[]> {
    const missing = plans.filter((plan) => !isStop(plan) && plan.tokenId === undefined) as Plan[]
    if (!wanted.mint || mints === null || missing.length === 0) return plans
    const failure = await answered(async () => {
      for (const { row } of missing) if (row.metadata !== undefined) await store.metadata.put(row.metadata)
      const rows = missing.map(({ name, row }) => ({ name, metadataHash: row.metadata?.hash ?? zeroHash }))
      const reason = await mints.mint(rows, wanted.to)
      return reason === null ? null : refused(reason)
    })
    return plans.map((plan) => {
      if (isStop(plan) || plan.tokenId !== undefined) return plan
      const minted = mints.tokenOf(plan.name)
      return typeof minted === 'bigint' ? { ...plan, tokenId: minted } : (failure ?? notMined)
    })
  }

  async function finish(plan: Plan): Promise<Stop> {
    if (wanted.dryRun) return { outcome: 'ready', detail: `would be ${stepsOf(plan, wanted).join(', ')}` }
    const done: string[] = typeof mints?.tokenOf(plan.name) === 'bigint' ? ['minted'] : []
    if (chain !== null && plan.tokenId !== undefined) {
      for (const [isWanted, step] of [
        [wanted.bind, bindTag],
        [wanted.activate, activateAsset],
      ] as const) {
        const end = isWanted ? await step(chain, plan, plan.tokenId) : null
        if (typeof end === 'string') done.push(end)
        else if (end !== null) return end
      }
    }
    const registered = await register(plan)
    if (isStopped(registered)) return registered
    await mints?.registered(plan.name)
    if (registered) done.push('registered')
    return { outcome: done.length > 0 ? 'done' : 'unchanged', detail: done.join(', ') }
  }

  /** Whether anything changed in the registry of tags. */
  async function register({ row, known, epoch, tokenId }: Plan): Promise<boolean | Stop> {
    const { uid, batchId, item, counter } = row
    const isSame =
      known?.epoch === epoch &&
      (tokenId === undefined || known.tokenId === tokenId) &&
      (item === undefined || (known.gtin === item.gtin && known.serial === item.serial)) &&
      (counter === undefined || (known.baselineCounter !== null && known.lastCounter >= counter))
    if (isSame) return false
    const answer = await tags.importTag({
      uid,
      epoch,
      batchId,
      ...item,
      ...(tokenId !== undefined && { tokenId }),
      ...(counter !== undefined && { baselineCounter: counter }),
    })
    return answer.outcome === 'registered' ? true : refused(refusals[answer.because])
  }

  /** Tries again what the chain did not answer, until it has not answered one row for long; then no row waits any more. */
  async function answered<T>(work: () => Promise<T>): Promise<T | Stop> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await work()
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error
        const pauseMs = pausesMs[attempt]
        isChainDown ||= pauseMs === undefined
        if (isChainDown || io.signal.aborted) return { outcome: 'failed', detail: error.message }
        await delay(pauseMs, undefined, { signal: io.signal }).catch(() => {})
      }
    }
  }

  return { run }
}

const stopped: Stop = { outcome: 'failed', detail: 'The import was stopped before this row.' }

const isStopped = (value: boolean | Stop): value is Stop => typeof value !== 'boolean'

function stepsOf({ tokenId }: Plan, { mint, bind, activate }: Wanted): string[] {
  const steps = [mint && tokenId === undefined && 'minted', bind && 'bound', activate && 'activated', 'registered']
  return steps.filter((step) => typeof step === 'string')
}

function resultOf(read: ReadRow, plan: Plan | Stop, { outcome, detail }: Stop): RowResult {
  const { epoch, tokenId } = isStop(plan) ? {} : plan
  const known = { epoch: epoch ?? '', tokenId: tokenId ?? '', outcome, detail } as const
  if (!read.ok) return { line: read.line, uid: read.uid, batch: '', ...known }
  return { line: read.row.line, uid: read.row.uidText, batch: read.row.batchId, ...known }
}
