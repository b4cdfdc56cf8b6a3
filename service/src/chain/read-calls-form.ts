/**
 * The forms in which assets are read, all pinned to one block and all with the same answer (spec §2.2, §2.5).
 * A form knows what is sent for some tokens and what the answer means; when and how often is not its business.
 */
import type { Hex } from '@touchstone/verdict'
import { ServiceError } from '../errors.ts'
import {
  callWithList,
  callWithWord,
  foundOfGetAsset,
  foundOfGetAssets,
  foundOfGetAssetsWithMetadata,
  foundOfTag,
  selectors,
  wordOf,
} from './read-calls.ts'
import type { Found, FoundList } from './read-calls.ts'
import { aggregateCall, multicallAddress, resultsOfAggregate } from './read-calls-multicall.ts'
import { blockGone } from './source.ts'
import type { Block, BlockGone, ChainSource } from './source.ts'

/** Tokens for which no provider gives an answer that can be right: the others are asked for again without them. */
export type Suspects = Readonly<{ suspects: ReadonlySet<bigint> }>

export type TagFound = Readonly<{ tokenId: bigint; found: Found }> | Readonly<{ tokenId: null }>

/** `deadline` is a moment of `performance.now()`. Both reads throw CHAIN_UNAVAILABLE. */
export type ReadForm = Readonly<{
  name: 'getAssetsWithMetadata' | 'getAssets' | 'aggregate3' | 'getAsset' | 'proof'
  /** Tokens in one call. */
  maxBatch: number
  read: (ids: readonly bigint[], block: Block, deadline: number) => Promise<readonly Found[] | Suspects | BlockGone>
  byTag: (tagHash: Hex, block: Block, deadline: number) => Promise<TagFound | BlockGone>
}>

type CallsOptions = Readonly<{ source: ChainSource; contract: Hex; withMetadata: boolean }>

/** Our own contract: records and metadata hashes of a list in one call, and a tag in one. */
export function registryForm({ source, contract }: CallsOptions): ReadForm {
  const { getAssetsWithMetadata, getAssetByTag } = selectors
  return {
    name: 'getAssetsWithMetadata',
    maxBatch: 1000,
    read: (ids, block, deadline) =>
      attempt(
        ids,
        (data: Hex) => foundOfGetAssetsWithMetadata(data, ids.length),
        (check) => source.call(contract, callWithList(getAssetsWithMetadata, ids), block, { deadline, check }),
      ),
    async byTag(tagHash, block, deadline) {
      const check = (data: Hex) => (foundOfTag(data) === null ? 'impossible answer of getAssetByTag' : null)
      const call = callWithWord(getAssetByTag, BigInt(tagHash))
      const data = await source.call(contract, call, block, { deadline, check })
      return data === blockGone ? data : (foundOfTag(data) ?? refuse('an impossible answer passed its check'))
    },
  }
}

/** A contract with the list of records only: the metadata hashes go beside it, in the same JSON-RPC batch. */
export function listForm(options: CallsOptions): ReadForm {
  const { source, contract, withMetadata } = options
  const form: Pick<ReadForm, 'name' | 'maxBatch' | 'read'> = {
    name: 'getAssets',
    maxBatch: withMetadata ? 100 : 1000,
    read(ids, block, deadline) {
      const datas = [callWithList(selectors.getAssets, ids), ...(withMetadata ? metadataCalls(ids) : [])]
      return attempt(
        ids,
        ([list = '0x', ...metadata]: readonly Hex[]) => joined(foundOfGetAssets(list, ids.length), metadata),
        (check) => source.calls(contract, datas, block, { deadline, check }),
      )
    },
  }
  return { ...form, byTag: tagThenAsset(options, form.read) }
}

/** Any contract, where Multicall3 stands: single reads in one call. */
export function multicallForm(options: CallsOptions): ReadForm {
  const { source, contract, withMetadata } = options
  const form: Pick<ReadForm, 'name' | 'maxBatch' | 'read'> = {
    name: 'aggregate3',
    maxBatch: withMetadata ? 500 : 1000,
    read(ids, block, deadline) {
      const datas = singleCalls(ids, withMetadata)
      return attempt(
        ids,
        (data: Hex) => foundOfSingles(resultsOfAggregate(data, datas.length), withMetadata),
        (check) => source.call(multicallAddress, aggregateCall(contract, datas), block, { deadline, check }),
      )
    },
  }
  return { ...form, byTag: tagThenAsset(options, form.read) }
}

/** Any contract on any chain: single reads in one JSON-RPC batch. */
export function singleForm(options: CallsOptions): ReadForm {
  const { source, contract, withMetadata } = options
  const form: Pick<ReadForm, 'name' | 'maxBatch' | 'read'> = {
    name: 'getAsset',
    maxBatch: withMetadata ? 50 : 100,
    read: (ids, block, deadline) =>
      attempt(
        ids,
        (results: readonly Hex[]) => foundOfSingles(results, withMetadata),
        (check) => source.calls(contract, singleCalls(ids, withMetadata), block, { deadline, check }),
      ),
  }
  return { ...form, byTag: tagThenAsset(options, form.read) }
}

function metadataCalls(ids: readonly bigint[]): readonly Hex[] {
  return ids.map((id) => callWithWord(selectors.metadataHash, id))
}

function singleCalls(ids: readonly bigint[], withMetadata: boolean): readonly Hex[] {
  const records = ids.map((id) => callWithWord(selectors.getAsset, id))
  return withMetadata ? [...records, ...metadataCalls(ids)] : records
}

/** The records first, then as many metadata hashes. */
function foundOfSingles(results: readonly (Hex | null)[] | null, withMetadata: boolean): FoundList | null {
  if (results === null) return null
  const count = withMetadata ? results.length / 2 : results.length
  return results.slice(0, count).map((data, index) => {
    const metadata = withMetadata ? results[count + index] : null
    return data === null || metadata === undefined || (withMetadata && metadata === null)
      ? null
      : foundOfGetAsset(data, metadata)
  })
}

function joined(list: FoundList | null, metadata: readonly Hex[]): FoundList | null {
  if (list === null || metadata.length === 0) return list
  return list.map((found, index) => {
    const hash = wordOf(metadata[index] ?? '0x')
    if (found === null || hash === null) return null
    return { ...found, metadataHash: hash === 0n ? null : (metadata[index] ?? null) }
  })
}

/** Decodes inside the check, so that a second provider is asked where the first one's answer cannot be right. */
async function attempt<Answer extends Hex | readonly Hex[]>(
  ids: readonly bigint[],
  decode: (answer: Answer) => FoundList | null,
  ask: (check: (answer: Answer) => string | null) => Promise<Answer | BlockGone>,
): Promise<readonly Found[] | Suspects | BlockGone> {
  let last: Readonly<{ answer: Answer; list: FoundList | null }> | undefined
  const decodeOnce = (answer: Answer) =>
    (last?.answer === answer ? last : (last = { answer, list: decode(answer) })).list
  try {
    const answer = await ask((seen) => (isComplete(decodeOnce(seen)) ? null : 'impossible answer'))
    if (answer === blockGone) return answer
    const list = decodeOnce(answer)
    return isComplete(list) ? list : refuse('an impossible answer passed its check')
  } catch (error) {
    const suspects = new Set(ids.filter((_, index) => last?.list?.[index] === null))
    if (suspects.size > 0) return { suspects }
    throw error
  }
}

function isComplete(list: FoundList | null): list is readonly Found[] {
  return list !== null && !list.includes(null)
}

/** A tag on a contract without `getAssetByTag`: the token, then its asset, both at the same block. */
function tagThenAsset({ source, contract }: CallsOptions, read: ReadForm['read']): ReadForm['byTag'] {
  return async (tagHash, block, deadline) => {
    const check = (data: Hex) => (wordOf(data) === null ? 'impossible answer of getTokenByTag' : null)
    const call = callWithWord(selectors.getTokenByTag, BigInt(tagHash))
    const data = await source.call(contract, call, block, { deadline, check })
    if (data === blockGone) return data
    const tokenId = wordOf(data)
    if (tokenId === null) return refuse('an impossible answer passed its check')
    if (tokenId === 0n) return { tokenId: null }
    const answer = await read([tokenId], block, deadline)
    if (answer === blockGone) return answer
    const found = 'suspects' in answer ? undefined : answer[0]
    return found === undefined ? refuse('the asset of a tag cannot be read') : { tokenId, found }
  }
}

function refuse(reason: string): never {
  throw new ServiceError('CHAIN_UNAVAILABLE', 'The chain could not be read.', { cause: new Error(reason) })
}
