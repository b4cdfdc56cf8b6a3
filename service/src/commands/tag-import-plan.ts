/** What a row of `touchstone tag import` needs: checked against the registry of tags and the chain before anything is done for it. */
import type { Hex } from '@touchstone/verdict'
import { decodeFunctionResult, encodeFunctionData } from 'viem'
import { assetRegistryAbi as abi } from '../chain/abi.ts'
import { blockGone } from '../chain/source.ts'
import { ServiceError } from '../errors.ts'
import type { Parts } from '../parts.ts'
import type { ImportOutcome, RegisteredTag } from '../store/tags.ts'
import type { Session } from './store-command.ts'
import type { ImportRow, ReadRow } from './tag-import-rows.ts'

/** What the chain is asked for. */
export type ImportChain = Pick<Parts, 'reader' | 'writer' | 'source' | 'contract'> & {
  readonly tagHash: NonNullable<Parts['tagHash']>
}

/** `done` changed something, `unchanged` had been done before, `ready` is a dry run's; `pending` and `failed` want the import run again. */
export type RowOutcome = 'done' | 'unchanged' | 'ready' | 'refused' | 'pending' | 'failed'
/** Where the way of a row ends, and why. */
export type Stop = { readonly outcome: RowOutcome; readonly detail: string }
/** `name` is one life of a chip: UID and epoch. `tokenId` is undefined while none is known. */
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

/** Plans rows one after another; a tag that comes twice is refused the second time. */
export async function createPlanner(tags: Tags) {
  const batches = new Map((await tags.batches()).map((batch) => [batch.id, batch]))
  const seen = new Set<string>()

  function twinOf({ uidText, tokenId, item }: ImportRow): string | null {
    const names = [
      `This tag ${uidText}`,
      ...(tokenId === undefined ? [] : [`Asset ${tokenId}`]),
      ...(item === undefined ? [] : [`The item ${item.gtin} ${item.serial}`]),
    ]
    const twin = names.find((name) => seen.has(name)) ?? null
    if (twin === null) for (const name of names) seen.add(name)
    return twin
  }

  return async function plan(read: ReadRow): Promise<Plan | Stop> {
    if (!read.ok) return refused(read.reason)
    const { row } = read
    const { uid, uidText, batchId, item } = row
    const batch = batches.get(batchId)
    if (batch === undefined) return refused(`There is no batch named ${batchId}.`)
    if (batch.status === 'revoked') return refused(`Batch ${batchId} is revoked.`)
    const epoch = row.epoch ?? batch.epoch
    if (epoch !== batch.epoch) return refused(`Batch ${batchId} has epoch ${batch.epoch}.`)
    const twin = twinOf(row)
    if (twin !== null) return refused(`${twin} stands in the file before.`)
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
 * The tokens that the chain knows for these tags, by UID. It remembers a binding for ever, also when the store was lost: such a
 * tag must not get a second token. Throws CHAIN_UNAVAILABLE.
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
    if (answers === blockGone) throw new ServiceError('CHAIN_UNAVAILABLE', 'The chain could not be read.')
    for (const [index, { uidText }] of part.entries()) {
      const data = answers[index] ?? '0x'
      const tokenId = decodeFunctionResult({ abi, functionName: 'getTokenByTag', data })
      if (tokenId !== 0n) found.set(uidText, tokenId)
    }
  }
  return found
}

/** Calls in one request; providers allow at least so many. */
const perRequest = 50

/** Why the registry of tags refuses a row, for whoever wrote the file. */
export const refusals: Readonly<Record<Extract<ImportOutcome, { outcome: 'refused' }>['because'], string>> = {
  newer_epoch: 'This chip has a newer life (a higher epoch).',
  other_batch: 'This tag is registered in another batch of the same epoch.',
  token_taken: 'Another tag is registered with this asset.',
  item_taken: 'Another tag is registered with this gtin and serial.',
  not_legal: 'The row is not legal.',
}

function sameUid(left: Uint8Array, right: Uint8Array): boolean {
  return Buffer.compare(left, right) === 0
}
