/**
 * The steps of `touchstone tag import` for planned rows: token, binding on chain, activation, registration, in this order. Each step has
 * an idempotency key made of UID and epoch, so that another run does only what is missing.
 */
import { randomUUID } from 'node:crypto'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { hexToBytes } from '@noble/hashes/utils.js'
import type { Hex } from '@touchstone/verdict'
import { LRUCache } from 'lru-cache'
import { zeroHash } from '../../../domain/chain.ts'
import type { Components } from '../../../app/components.ts'
import { changedKeys } from '../../../assets/metadata.ts'
import { writeWithNextKey } from '../../../chain/transactions/failures.ts'
import type { Session } from '../../session/session.ts'
import { CommandError } from '../../session/output.ts'
import {
  boundTokens,
  createPlanner,
  inColumn,
  type ImportChain,
  isStop,
  notMined,
  type ParsedRow,
  type Plan,
  refusals,
  refused,
  revokedBatch,
  type RowOutcome,
  type Stop,
} from './rows.ts'
import { mapConcurrently } from '../../../lib/async/concurrency.ts'
import { retry } from '../../../lib/async/retry.ts'
import { singleFlight } from '../../../lib/async/single-flight.ts'
import { ifMissing, ServiceError } from '../../../lib/errors.ts'
import { parseJsonObject } from '../../../lib/json.ts'
import { makeFolder } from '../../../lib/private-folder.ts'
import { writePrivateFile } from '../../../lib/sealed/file.ts'

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

/** Rows in progress at the same time. They share the statements that register them; the chain takes them one by one. */
const concurrency = { chain: 16, registry: 128 }
const pausesMs = [500, 2_000, 6_000]

/** Creates the importer. `run` imports up to 200 rows and returns their results in order. */
export async function createImporter(session: Session, chain: ImportChain | null, wanted: Wanted) {
  const { store, config, io } = session
  const { tags } = store
  const plan = createPlanner(tags)
  const batchOf = singleFlight(tags.batch, (id) => id)
  const sent = { mint: 0, bind: 0, activate: 0, reads: 0 }
  const mints =
    chain === null || wanted.dryRun
      ? null
      : await openMints({
          ...chain,
          dataDir: config.dataDir,
          isRegistered,
          ...(wanted.mint && { to: wanted.to }),
          onSent: () => (sent.mint += 1),
          warn: io.err,
        })
  /** The fault that outlasted the retries of a row. */
  let fault: ServiceError | null = null
  const stored = new LRUCache<Hex, true>({ max: 10_000 })

  async function isRegistered(name: string): Promise<boolean> {
    const [uid = '', epochText] = name.split('-')
    const epoch = Number(epochText)
    const known = await tags.tagOfUid(hexToBytes(uid))
    return known !== undefined && (known.epoch > epoch || (known.epoch === epoch && known.tokenId !== null))
  }

  async function run(rows: readonly ParsedRow[], onRow: (outcome: RowOutcome) => void): Promise<RowResult[]> {
    const batches = new Map((await tags.batches()).map((batch) => [batch.id, batch]))
    const plans = await withMinted(await withSameText(await withKnownTokens(await plan(rows, batches))))
    return mapConcurrently(plans, chain === null ? concurrency.registry : concurrency.chain, async (one, index) => {
      const stop = isStop(one) ? one : io.signal.aborted ? stopped : await retried(() => finish(one))
      onRow(stop.outcome)
      return resultOf(rows[index] as ParsedRow, one, stop)
    })
  }

  /** Adds the tokens that an earlier import has minted, or that the chain has bound. */
  async function withKnownTokens(plans: readonly (Plan | Stop)[]): Promise<(Plan | Stop)[]> {
    const missing = plans.filter((plan) => !isStop(plan) && plan.tokenId === undefined) as Plan[]
    if (chain === null || missing.length === 0) return [...plans]
    const bound = await retried(() => boundTokens(chain, missing, () => (sent.reads += 1)))
    return plans.map((plan) => {
      if (isStop(plan) || plan.tokenId !== undefined) return plan
      if ('outcome' in bound) return bound
      const minted = mints?.tokenOf(plan.name)
      if (minted === 'pending') return notMined
      const tokenId = minted ?? bound.get(plan.row.uidText)
      if (tokenId === undefined && wanted.bind && !wanted.mint)
        return refused(
          inColumn('tokenId', 'It is empty, so that there is no asset to bind the tag to; fill it, or add --mint.'),
        )
      return { ...plan, tokenId }
    })
  }

  /** Refuses the rows whose asset has other text on chain. An import mints text, and changes none. */
  async function withSameText(plans: readonly (Plan | Stop)[]): Promise<(Plan | Stop)[]> {
    const named = plans.filter((plan) => !isStop(plan) && plan.tokenId !== undefined && plan.row.metadata) as Plan[]
    if (chain === null || named.length === 0) return [...plans]
    const read = await retried(() => Promise.all(named.map(({ tokenId = 0n }) => chain.reader.read(tokenId))))
    if ('outcome' in read) return plans.map((plan) => (named.includes(plan as Plan) ? read : plan))
    const assets = new Map(named.map((plan, index) => [plan as Plan | Stop, read[index]?.asset]))
    const texts = await store.metadata.getMany([...assets.values()].flatMap((asset) => asset?.metadataHash ?? []))
    return plans.map((plan) => {
      const asset = assets.get(plan)
      if (isStop(plan) || asset === undefined || asset.record.state === 0) return plan
      if (asset.metadataHash === plan.row.metadata?.hash) return plan // its text need not be stored
      const former = asset.metadataHash === null ? {} : parseJsonObject(texts.get(asset.metadataHash) ?? '')
      if (former === null)
        return refused(
          `The metadata of asset ${asset.tokenId} is not stored here, so that the row cannot be compared: leave its cells from name on empty.`,
        )
      const changed = changedKeys(former, { ...former, ...parseJsonObject(plan.row.metadata?.body ?? '') })
      return changed.length === 0 ? plan : refused(otherText(changed, asset.tokenId))
    })
  }

  async function withMinted(plans: (Plan | Stop)[]): Promise<(Plan | Stop)[]> {
    const missing = plans.filter((plan) => !isStop(plan) && plan.tokenId === undefined) as Plan[]
    if (!wanted.mint || mints === null || missing.length === 0) return plans
    const failure = await retried(async () => {
      // Another import may be at work by now, and mint for the same rows.
      if (io.signal.aborted) return stopped
      for (const { row } of missing) if (row.metadata !== undefined) await putOnce(row.metadata)
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

  /** Most rows of a file share the text of their model. */
  async function putOnce(metadata: NonNullable<Plan['row']['metadata']>): Promise<void> {
    if (stored.has(metadata.hash)) return
    await store.metadata.put(metadata)
    stored.set(metadata.hash, true)
  }

  async function finish(plan: Plan): Promise<Stop> {
    if (wanted.dryRun) return { outcome: 'ready', detail: `would be ${stepsOf(plan, wanted).join(', ')}` }
    // A binding on chain is for ever, and the batch may have been revoked since the row was planned.
    if ((await batchOf(plan.row.batchId))?.status === 'revoked') return revokedBatch(plan.row.batchId)
    const done: string[] = typeof mints?.tokenOf(plan.name) === 'bigint' ? ['minted'] : []
    if (chain !== null && plan.tokenId !== undefined) {
      const steps = [...(wanted.bind ? [bindTag] : []), ...(wanted.activate ? [activateAsset] : [])]
      for (const step of steps) {
        const end = await step({ ...chain, sent }, plan, plan.tokenId)
        if (typeof end === 'string') done.push(end)
        else if (end !== null) return end
      }
    }
    const registered = await register(plan)
    if (typeof registered !== 'boolean') return registered
    await mints?.registered(plan.name)
    if (registered) done.push('registered')
    return { outcome: done.length > 0 ? 'done' : 'unchanged', detail: done.join(', ') }
  }

  /** Registers the tag and returns whether anything changed. */
  async function register({ row, known, epoch, tokenId }: Plan): Promise<boolean | Stop> {
    const { uid, batchId, item, counter } = row
    const isSame =
      known?.isRegistered === true &&
      known.epoch === epoch &&
      (tokenId === undefined || known.tokenId === tokenId) &&
      (item === undefined || (known.gtin === item.gtin && known.serial === item.serial)) &&
      (counter === undefined || (known.baselineCounter !== null && known.lastCounter >= counter))
    if (isSame) return false
    if (item !== undefined && tokenId === undefined)
      return refused(inColumn('tokenId', 'It is empty, and an item needs its asset; fill it, or add --mint.'))
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

  /** Retries after a fault, such as a chain that is unavailable. When one row has used up its retries, no other row waits any more. */
  async function retried<T>(work: () => Promise<T>): Promise<T | Stop> {
    const isFault = (error: unknown): error is ServiceError => error instanceof ServiceError
    try {
      return await retry(work, {
        pausesMs,
        signal: io.signal,
        isRetryable: (error) => isFault(error) && fault === null,
      })
    } catch (error) {
      if (!isFault(error)) throw error
      if (!io.signal.aborted) fault ??= error
      return { outcome: 'failed', detail: error.message }
    }
  }

  return { run, sent: (): ImportCounts => sent, fault: () => fault }
}

export type ImportCounts = Readonly<{ mint: number; bind: number; activate: number; reads: number }>

function otherText(columns: readonly string[], tokenId: bigint): string {
  return `Column ${columns.join(', ')}: Asset ${tokenId} has other text on chain, which an import leaves as it is. Change it with touchstone asset metadata ${tokenId}, or correct the row.`
}

const stopped: Stop = { outcome: 'failed', detail: 'The import was stopped before this row.' }

function stepsOf({ tokenId }: Plan, { mint, bind, activate }: Wanted): string[] {
  const steps = [mint && tokenId === undefined && 'minted', bind && 'bound', activate && 'activated', 'registered']
  return steps.filter((step) => typeof step === 'string')
}

function resultOf(read: ParsedRow, plan: Plan | Stop, { outcome, detail }: Stop): RowResult {
  const { epoch, tokenId } = isStop(plan) ? {} : plan
  const known = { epoch: epoch ?? '', tokenId: tokenId ?? '', outcome, detail } as const
  if (!read.ok) return { line: read.line, uid: read.uid, batch: '', ...known }
  return { line: read.row.line, uid: read.row.uidText, batch: read.row.batchId, ...known }
}

/** A step on chain (spec §3, BOUND and ACTIVATED). Returns what was done, `null` when it was done before, or why the row ends. Throws CHAIN_UNAVAILABLE. */
type Step = (
  chain: ImportChain & { sent: { bind: number; activate: number } },
  plan: Plan,
  tokenId: bigint,
) => Promise<string | null | Stop>

const bindTag: Step = async (chain, { row, name }, tokenId) => {
  const tagHash = chain.tagHash(row.uid)
  const former = await chain.formerBinding(row.uid)
  if (former === tokenId) return null
  if (former !== null) return refused(`This tag is bound to asset ${former} on chain.`)
  const result = await written(chain, { kind: 'bindTag', tokenId, tagHash }, `tag-${name}-bind-${tokenId}`)
  if (isSent(result)) chain.sent.bind += 1
  if (result.ok) return endOf(result, 'bound')
  const bound = await chain.reader.readByTag(tagHash)
  return bound.tokenId === tokenId ? null : refused(result.message)
}

const activateAsset: Step = async (chain, { name }, tokenId) => {
  const result = await written(chain, { kind: 'activate', tokenId }, `tag-${name}-activate-${tokenId}`)
  if (isSent(result)) chain.sent.activate += 1
  if (result.ok) return endOf(result, 'activated')
  const { asset } = await chain.reader.read(tokenId)
  return asset.record.state > 2 ? null : refused(result.message)
}

type Write = ImportChain['writer']['write']
type Result = Awaited<ReturnType<Write>>

function isSent(result: Result): boolean {
  return result.ok && !result.repeated
}

function endOf(result: Extract<Result, { ok: true }>, done: string): string | null | Stop {
  if (result.status !== 'CONFIRMED') return notMined
  return result.repeated ? null : done
}

/** Writes under a key, or under further ones when transactions revert. */
function written({ writer }: ImportChain, request: Parameters<Write>[0], key: string): Promise<Result> {
  return writeWithNextKey((tried) => writer.write(request, { idempotencyKey: tried === 1 ? key : `${key}-${tried}` }))
}

/** `name` identifies a chip and its epoch. */
type MintRow = Readonly<{ name: string; metadataHash: Hex }>
type Group = Readonly<{ key: string; to: Hex; rows: readonly MintRow[] }>

type MintsOptions = {
  dataDir: string
  writer: Pick<Components['writer'], 'write'>
  operations: Pick<Components['operations'], 'find'>
  isRegistered: (name: string) => Promise<boolean>
  /** The owner of what this import mints; left out where it mints nothing. */
  to?: Hex
  warn?: (line: string) => void
  /** Reports a transaction that was not sent before. */
  onSent?: () => void
}

/** Opens the groups that an earlier import left. `isRegistered` returns whether a row has its token in the store. */
export async function openMints(options: MintsOptions) {
  const { dataDir, writer, operations, isRegistered, onSent = () => {}, warn = () => {} } = options
  const folder = join(dataDir, 'imports')
  const pathOf = ({ key }: Group) => join(folder, `${key}.json`)
  const tokens = new Map<string, bigint | 'pending'>()
  /** A group whose transaction has an unknown outcome. A retry must be the same group. */
  let unanswered: Group | undefined
  const open = new Map<string, { group: Group; waiting: Set<string> }>()
  for (const group of await readGroups(folder)) {
    const waiting = new Set<string>()
    for (const { name } of group.rows) if (!(await isRegistered(name))) waiting.add(name)
    if (waiting.size === 0) await forget(group)
    else {
      await assertOwner(group)
      await send(group, waiting)
    }
  }

  /** Throws where this import names another owner for rows whose minting was never signed. */
  async function assertOwner(group: Group): Promise<void> {
    if (options.to === undefined || options.to.toLowerCase() === group.to.toLowerCase()) return
    const path = pathOf(group)
    if ((await operations.find(group.key)) === undefined)
      throw new CommandError(
        `Rows of an earlier import are still to be minted for another owner: repeat it with the --to that ${path} names, or remove that file. Nothing of it was signed.`,
      )
    warn(`  An earlier import has sent the minting of rows for the owner that ${path} names, whose assets they stay.`)
  }

  async function send(group: Group, waiting: Set<string>): Promise<string | null> {
    const { key, to, rows } = group
    const metadataHashes = rows.map(({ metadataHash }) => metadataHash)
    const result = await writer.write({ kind: 'mintBatch', to, metadataHashes }, { idempotencyKey: key })
    // A writer that has no key does not check whether it signed for this group before.
    if (!result.ok && result.code !== 'OPERATOR_KEY_MISSING') {
      // Refused or reverted: nothing was minted and nothing will be under this key.
      await forget(group)
      return result.message
    }
    if (isSent(result)) onSent()
    const minted = result.ok && result.status === 'CONFIRMED' ? result.tokenIds : []
    for (const [index, { name }] of rows.entries()) if (waiting.has(name)) tokens.set(name, minted[index] ?? 'pending')
    open.set(key, { group, waiting })
    return result.ok ? null : result.message
  }

  async function forget(group: Group): Promise<void> {
    open.delete(group.key)
    await rm(pathOf(group), { force: true })
  }

  return {
    /** Returns the token that was minted for a row which is not registered yet. Returns `pending` when its transaction is not mined. */
    tokenOf: (name: string) => tokens.get(name),
    /** Mints one token for each row. Returns null, or why nothing was minted. `tokenOf` returns them afterwards. */
    async mint(rows: readonly MintRow[], to: Hex): Promise<string | null> {
      const group: Group =
        unanswered !== undefined && namesOf(unanswered.rows) === namesOf(rows)
          ? unanswered
          : { key: `import-mint-${randomUUID()}`, to, rows }
      await makeFolder(folder)
      await writePrivateFile(pathOf(group), JSON.stringify(group))
      unanswered = group
      const reason = await send(group, new Set(rows.map(({ name }) => name)))
      unanswered = undefined
      return reason
    },
    /** Reports a registered row. A group is deleted when all its rows are registered. */
    async registered(name: string): Promise<void> {
      for (const { group, waiting } of open.values())
        if (waiting.delete(name) && waiting.size === 0) await forget(group)
    },
  }
}

function namesOf(rows: readonly MintRow[]): string {
  return rows.map(({ name }) => name).join(' ')
}

async function readGroups(folder: string): Promise<Group[]> {
  const names = await readdir(folder).catch(ifMissing([]))
  const files = names.filter((name) => /^import-mint-[\w-]+\.json$/.test(name))
  return Promise.all(
    files.map(async (name) => {
      try {
        return JSON.parse(await readFile(join(folder, name), 'utf8')) as Group
      } catch {
        throw new CommandError(`${join(folder, name)} is damaged: without it tokens may be minted twice. Restore it.`)
      }
    }),
  )
}
