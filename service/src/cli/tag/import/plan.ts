/** Plans of the rows of `touchstone tag import`: checks against the tag registry and the chain before anything is done for a row. */
import type { Hex } from '@touchstone/verdict'
import { decodeFunctionResult, encodeFunctionData } from 'viem'
import { assetRegistryAbi as abi } from '../../../domain/registry-abi.ts'
import { nonCanonical } from '../../../chain/rpc/source.ts'
import { chainUnavailable } from '../../../lib/errors.ts'
import type { Components } from '../../../app/components.ts'
import type { ImportOutcome, RegisteredTag } from '../../../tap/tag-registry.ts'
import type { Session } from '../../session/session.ts'
import type { ImportRow, ParsedRow } from './rows.ts'

/** The components of the chain that an import uses. */
export type ImportChain = Pick<Components, 'reader' | 'writer' | 'source' | 'contract'> & {
  readonly tagHash: NonNullable<Components['tagHash']>
}

/** `unchanged` was done before, `ready` is a dry run's; after `pending` and `failed` the import must run again. */
export type RowOutcome = 'done' | 'unchanged' | 'ready' | 'refused' | 'pending' | 'failed'
/** The outcome that ends a row, and its reason. */
export type Stop = { readonly outcome: RowOutcome; readonly detail: string }
/** `name` is UID and epoch of a chip. `tokenId` is undefined while none is known. */
export type Plan = Readonly<{
  row: ImportRow
  epoch: number
  name: string
  known: RegisteredTag | undefined
  tokenId: bigint | undefined
}>

export const isStop = (plan: Plan | Stop): plan is Stop => 'outcome' in plan
export const refused = (detail: string): Stop => ({ outcome: 'refused', detail })
export const notMined: Stop = { outcome: 'pending', detail: 'The transaction is not mined yet; run the import again.' }

type Tags = Pick<Session['store']['tags'], 'batches' | 'tagOfUid' | 'tagOfItem' | 'tagOfToken'>

/** Creates the planner. It plans rows in order and refuses a tag, asset or item that was in the file before. */
export async function createPlanner(tags: Tags) {
  const batches = new Map((await tags.batches()).map((batch) => [batch.id, batch]))
  const seen = new Set<string>()

  function findRepeated({ uidText, tokenId, item }: ImportRow): string | null {
    const names = [
      `This tag ${uidText}`,
      ...(tokenId === undefined ? [] : [`Asset ${tokenId}`]),
      ...(item === undefined ? [] : [`The item ${item.gtin} ${item.serial}`]),
    ]
    const repeated = names.find((name) => seen.has(name)) ?? null
    if (repeated === null) for (const name of names) seen.add(name)
    return repeated
  }

  return async function plan(read: ParsedRow): Promise<Plan | Stop> {
    if (!read.ok) return refused(read.reason)
    const { row } = read
    const { uid, uidText, batchId, item } = row
    const batch = batches.get(batchId)
    if (batch === undefined) return refused(`There is no batch named ${batchId}.`)
    if (batch.status === 'revoked') return refused(`Batch ${batchId} is revoked.`)
    const epoch = row.epoch ?? batch.epoch
    if (epoch !== batch.epoch) return refused(`Batch ${batchId} has epoch ${batch.epoch}.`)
    const repeated = findRepeated(row)
    if (repeated !== null) return refused(`${repeated} is in the file before.`)
    const known = await tags.tagOfUid(uid)
    if (known !== undefined && known.epoch > epoch) return refused(refusals.newer_epoch)
    if (known?.epoch === epoch && known.batchId !== batchId) return refused(refusals.other_batch)
    const onItem = item === undefined ? undefined : await tags.tagOfItem(item.gtin, item.serial)
    if (onItem !== undefined && !sameUid(onItem.uid, uid)) return refused(refusals.item_taken)
    const tokenId = row.tokenId ?? known?.tokenId ?? undefined
    if (known !== undefined && known.tokenId !== null && known.tokenId !== tokenId)
      return refused(`This tag is registered with asset ${known.tokenId}.`)
    const onToken = tokenId === undefined ? undefined : await tags.tagOfToken(tokenId)
    if (onToken !== undefined && !sameUid(onToken.uid, uid)) return refused(refusals.token_taken)
    return { row, epoch, name: `${uidText}-${epoch}`, known, tokenId }
  }
}

/**
 * Reads the tokens that the chain has bound to these tags, by UID. A tag stays bound when the store was lost, and must not get a second
 * token. Throws CHAIN_UNAVAILABLE.
 */
export async function boundTokens(
  { source, contract, tagHash }: ImportChain,
  rows: readonly ImportRow[],
): Promise<ReadonlyMap<string, bigint>> {
  const found = new Map<string, bigint>()
  const head = await source.head()
  for (let at = 0; at < rows.length; at += perRequest) {
    const part = rows.slice(at, at + perRequest)
    const datas = part.map(({ uid }) =>
      encodeFunctionData({ abi, functionName: 'getTokenByTag', args: [tagHash(uid)] }),
    )
    const answers = await source.calls(contract.toLowerCase() as Hex, datas, head)
    if (answers === nonCanonical) throw chainUnavailable('the block is not canonical')
    for (const [index, { uidText }] of part.entries()) {
      const data = answers[index] ?? '0x'
      const tokenId = decodeFunctionResult({ abi, functionName: 'getTokenByTag', data })
      if (tokenId !== 0n) found.set(uidText, tokenId)
    }
  }
  return found
}

/** Calls per request; providers allow at least this many. */
const perRequest = 50

/** The sentences for a row that the tag registry refuses. */
export const refusals: Readonly<Record<Extract<ImportOutcome, { outcome: 'refused' }>['because'], string>> = {
  newer_epoch: 'This chip is registered under a higher epoch.',
  other_batch: 'This tag is registered in another batch of the same epoch.',
  token_taken: 'Another tag is registered with this asset.',
  item_taken: 'Another tag is registered with this gtin and serial.',
  not_legal: 'The row is not legal.',
}

function sameUid(left: Uint8Array, right: Uint8Array): boolean {
  return Buffer.compare(left, right) === 0
}
