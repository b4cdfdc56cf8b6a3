/**
 * What `touchstone tag import` does with checked rows: token, binding on chain, activation, registration, in this order. Each step
 * has an idempotency key made of UID and epoch, so that running it again only does what is missing.
 */
import { zeroHash } from 'viem'
import type { Hex } from '@touchstone/verdict'
import { ServiceError } from '../errors.ts'
import type { Parts } from '../parts.ts'
import type { ImportOutcome, RegisteredTag } from '../store/tags.ts'
import { inParallel } from './in-parallel.ts'
import { openMints, type Mints } from './tag-import-mints.ts'
import type { ImportRow, ReadRow } from './tag-import-rows.ts'
import { CommandError, type Session } from './store-command.ts'

export type Wanted = Readonly<{ mint: boolean; bind: boolean; activate: boolean; to: Hex; dryRun: boolean }>

/** `done` changed something, `unchanged` had been done before; `pending` and `failed` are done by running the import again. */
export type RowOutcome = 'done' | 'unchanged' | 'refused' | 'pending' | 'failed'
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

type Batches = ReadonlyMap<string, { readonly epoch: number; readonly status: string }>
type Plan = { readonly row: ImportRow; readonly epoch: number; readonly known: RegisteredTag | undefined; tokenId: bigint | undefined }
type Stop = { readonly outcome: RowOutcome; readonly detail: string; readonly plan?: Plan }
type Chain = Pick<Parts, 'reader' | 'writer'> & { readonly tagHash: NonNullable<Parts['tagHash']> }

/** Handles up to 200 rows at a time; results come in the order of the rows. */
export async function createImporter(session: Session, chain: Chain | null, wanted: Wanted) {
  const { store, dataDir } = session
  const { tags } = store
  const batches: Batches = new Map((await tags.batches()).map(({ id, ...rest }) => [id, rest]))
  const seen = new Set<string>()
  const mints = chain === null || wanted.dryRun ? null : await openMints({ dataDir, writer: chain.writer, isRegistered })

  async function isRegistered(name: string): Promise<boolean> {
    const [uid = '', epoch] = name.split('-')
    const known = await tags.tagOfUid(Buffer.from(uid, 'hex'))
    return known !== undefined && (known.epoch > Number(epoch) || (known.epoch === Number(epoch) && known.tokenId !== null))
  }

  async function run(read: readonly ReadRow[], onRow: () => void): Promise<RowResult[]> {
    const plans = await inParallel(read, lanes, (one) => caught(() => planOf(one)))
    await mintMissing(plans)
    return inParallel(plans, lanes, async (plan, index) => {
      const stopped = 'outcome' in plan ? plan : await caught(() => finish(plan))
      onRow()
      return resultOf(read[index] as ReadRow, stopped, 'outcome' in plan ? plan.plan : plan)
    })
  }

  /** What has to be done for a row, or why nothing can be. */
  async function planOf(read: ReadRow): Promise<Plan | Stop> {
    if (!read.ok) return refused(read.reason)
    const { row } = read
    const { uid, uidText, batchId, item } = row
    const batch = batches.get(batchId)
    if (batch === undefined) return refused(`There is no batch named ${batchId}.`)
    if (batch.status === 'revoked') return refused(`Batch ${batchId} is revoked.`)
    const epoch = row.epoch ?? batch.epoch
    if (epoch !== batch.epoch) return refused(`Batch ${batchId} has epoch ${batch.epoch}.`)
    if (seen.has(uidText)) return refused('This tag stands in the file before.')
    seen.add(uidText)
    const known = await tags.tagOfUid(uid)
    if (known !== undefined && known.epoch > epoch) return refused(refusals.newer_epoch)
    if (known?.epoch === epoch && known.batchId !== batchId) return refused(refusals.other_batch)
    const onItem = item === undefined ? undefined : await tags.tagOfItem(item.gtin, item.serial)
    if (onItem !== undefined && !sameUid(onItem.uid, uid)) return refused(refusals.item_taken)
    return planToken({ row, epoch, known, tokenId: row.tokenId ?? known?.tokenId ?? undefined })
  }

  async function planToken(plan: Plan): Promise<Plan | Stop> {
    const { row, known } = plan
    if (known?.tokenId != null && known.tokenId !== plan.tokenId)
      return refused(`This tag is registered with asset ${known.tokenId}.`)
    if (plan.tokenId === undefined) {
      const minted = mints?.tokenOf(nameOf(plan))
      if (minted === 'pending') return { outcome: 'pending', detail: notMined, plan }
      // The chain remembers a binding for ever, also when this store has lost it.
      plan.tokenId = minted ?? (await boundToken(row)) ?? undefined
    }
    if (plan.tokenId === undefined) {
      return wanted.bind && !wanted.mint ? refused('Without a tokenId there is nothing to bind it to; --mint makes one.') : plan
    }
    const other = await tags.tagOfToken(plan.tokenId)
    return other !== undefined && !sameUid(other.uid, row.uid) ? refused(refusals.token_taken) : plan
  }

  async function boundToken({ uid }: ImportRow): Promise<bigint | null> {
    if (chain === null || !(wanted.mint || wanted.bind)) return null
    return (await chain.reader.readByTag(chain.tagHash(uid))).tokenId
  }

  /** Mints for all rows that have no token yet; a row whose minting fails is stopped in place. */
  async function mintMissing(plans: (Plan | Stop)[]): Promise<void> {
    const missing = plans.filter((plan): plan is Plan => !('outcome' in plan) && plan.tokenId === undefined)
    if (!wanted.mint || mints === null || missing.length === 0) return
    const failed = await caught(async () => {
      for (const { row } of missing) if (row.metadata !== undefined) await store.metadata.put(row.metadata)
      const rows = missing.map((plan) => ({ name: nameOf(plan), metadataHash: plan.row.metadata?.hash ?? zeroHash }))
      const reason = await mints.mint(rows, wanted.to)
      return reason === null ? null : refused(reason)
    })
    for (const [index, plan] of plans.entries()) {
      if ('outcome' in plan || plan.tokenId !== undefined) continue
      const minted = mints.tokenOf(nameOf(plan))
      if (typeof minted === 'bigint') plan.tokenId = minted
      else plans[index] = { ...(failed ?? { outcome: 'pending', detail: notMined }), plan }
    }
  }

  async function finish(plan: Plan): Promise<Stop> {
    const done: string[] = []
    if (wanted.dryRun) return { outcome: 'unchanged', detail: `would be ${stepsOf(plan, wanted).join(', ')}`, plan }
    if (plan.tokenId !== undefined && typeof mints?.tokenOf(nameOf(plan)) === 'bigint') done.push('minted')
    for (const kind of ['bind', 'activate'] as const) {
      if (!wanted[kind] || chain === null || plan.tokenId === undefined) continue
      const step = kind === 'bind' ? await bindTag(chain, plan, plan.tokenId) : await activate(chain, plan, plan.tokenId)
      if (typeof step === 'string') {
        if (step !== '') done.push(step)
      } else return { ...step, plan }
    }
    const registered = await register(plan)
    if (registered.outcome === 'refused') return refused(registered.because === 'not_legal' ? 'The row is not legal.' : refusals[registered.because])
    if (registered.changed) done.push('registered')
    await mints?.registered(nameOf(plan))
    return { outcome: done.length > 0 ? 'done' : 'unchanged', detail: done.join(', '), plan }
  }

  async function register(plan: Plan) {
    const { row, known, epoch, tokenId } = plan
    const { uid, batchId, item, counter } = row
    const isSame =
      known?.epoch === epoch &&
      (tokenId === undefined || known.tokenId === tokenId) &&
      (item === undefined || (known.gtin === item.gtin && known.serial === item.serial)) &&
      (counter === undefined || (known.baselineCounter !== null && known.lastCounter >= counter))
    if (isSame) return { outcome: 'registered', changed: false } as const
    const answer = await tags.importTag({
      uid,
      epoch,
      batchId,
      ...item,
      ...(tokenId !== undefined && { tokenId }),
      ...(counter !== undefined && { baselineCounter: counter }),
    })
    return answer.outcome === 'refused' ? answer : ({ outcome: 'registered', changed: true } as const)
  }

  return { run }
}

/** What is said of the step when it changed something, '' when it had been done before; else why the row stops here. */
async function bindTag(chain: Chain, plan: Plan, tokenId: bigint): Promise<string | Stop> {
  const tagHash = chain.tagHash(plan.row.uid)
  const key = `tag-${nameOf(plan)}-bind-${tokenId}`
  const result = await written(chain, { kind: 'bindTag', tokenId, tagHash }, key)
  if (result.ok) return result.status === 'CONFIRMED' ? (result.repeated ? '' : 'bound') : { outcome: 'pending', detail: notMined }
  const isDone = (await chain.reader.readByTag(tagHash)).tokenId === tokenId
  return isDone ? '' : refused(result.message)
}

async function activate(chain: Chain, plan: Plan, tokenId: bigint): Promise<string | Stop> {
  const key = `tag-${nameOf(plan)}-activate-${tokenId}`
  const result = await written(chain, { kind: 'activate', tokenId }, key)
  if (result.ok) return result.status === 'CONFIRMED' ? (result.repeated ? '' : 'activated') : { outcome: 'pending', detail: notMined }
  const { state } = (await chain.reader.read(tokenId)).asset.record
  return state > 2 ? '' : refused(result.message)
}

type Request = Parameters<Parts['writer']['write']>[0]

/** A key under which a transaction reverted or was superseded stays used; the next one tries again. */
async function written({ writer, reader }: Chain, request: Request, key: string) {
  for (let attempt = 1; ; attempt++) {
    const result = await writer.write(request, { idempotencyKey: attempt === 1 ? key : `${key}-${attempt}` })
    if (result.ok && result.status === 'CONFIRMED' && !result.repeated) reader.dropHead(result.blockNumber)
    if (result.ok || attempt === 5 || (result.code !== 'REVERTED' && result.code !== 'SUPERSEDED')) return result
  }
}

async function caught<T>(work: () => Promise<T>): Promise<T | Stop> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof ServiceError) return { outcome: 'failed', detail: error.message }
    throw error
  }
}

function stepsOf(plan: Plan, { mint, bind, activate: active }: Wanted): string[] {
  const steps = [mint && plan.tokenId === undefined && 'minted', bind && 'bound', active && 'activated', 'registered']
  return steps.filter((step) => typeof step === 'string')
}

function resultOf(read: ReadRow, { outcome, detail }: Stop, plan: Plan | undefined): RowResult {
  const { line } = read.ok ? read.row : read
  const uid = read.ok ? read.row.uidText : read.uid
  const batch = read.ok ? read.row.batchId : ''
  return { line, uid, batch, epoch: plan?.epoch ?? '', tokenId: plan?.tokenId ?? '', outcome, detail }
}

function refused(detail: string): Stop {
  return { outcome: 'refused', detail }
}

const notMined = 'The transaction is not mined yet; run the import again.'

const refusals: Readonly<Record<Exclude<Extract<ImportOutcome, { outcome: 'refused' }>['because'], 'not_legal'>, string>> = {
  newer_epoch: 'This chip has a newer life (a higher epoch).',
  other_batch: 'This tag is registered in another batch of the same epoch.',
  token_taken: 'Another tag is registered with this asset.',
  item_taken: 'Another tag is registered with this gtin and serial.',
}

/** One life of a chip. */
function nameOf({ row, epoch }: Plan): string {
  return `${row.uidText}-${epoch}`
}

function sameUid(left: Uint8Array, right: Uint8Array): boolean {
  return Buffer.compare(left, right) === 0
}

/** The parts of the chain that an import needs; null when it needs none. Throws one sentence when something is missing. */
export function chainFor(wanted: Pick<Wanted, 'mint' | 'bind' | 'activate'>, chain: () => NonNullable<Session['chain']>): Chain | null {
  if (!wanted.mint && !wanted.bind && !wanted.activate) return null
  const { reader, writer, tagHash } = chain()
  if (tagHash === undefined) throw new CommandError('TAG_PEPPER is not set, so that no tag can be bound.')
  return { reader, writer, tagHash }
}

export type { Mints }
