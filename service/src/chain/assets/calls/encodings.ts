/**
 * The encodings in which assets are read, and the choice of one (spec §2.2, §2.5). All read at one block and return the same.
 * An encoding defines the calls for some tokens and the meaning of their results.
 */
import type { Hex } from '@touchstone/verdict'
import { multicallAddress } from '../../../domain/chain.ts'
import { singleFlight } from '../../../lib/async/single-flight.ts'
import { chainUnavailable } from '../../../lib/errors.ts'
import type { Block } from '../../rpc/block.ts'
import { hasReverted } from '../../rpc/failover.ts'
import { nonCanonical, type NonCanonical } from '../../rpc/answer.ts'
import { type ChainSource } from '../../rpc/source.ts'
import {
  decodeAggregate,
  decodeGetAsset,
  decodeGetAssetByTag,
  decodeGetAssets,
  decodeGetAssetsWithMetadata,
  type DecodedState,
  type DecodedStates,
  decodeWord,
  encodeAggregate,
  encodeCall,
  encodeListCall,
  encodeSupportsCall,
  selectors,
  type TaggedState,
} from './abi.ts'

/** Tokens or tags for which every provider's result is impossible: the others are asked for again without them. */
export type Suspects<Key> = Readonly<{ suspects: ReadonlySet<Key> }>

/** `deadline` is a moment of `performance.now()`. Both reads throw CHAIN_UNAVAILABLE. */
export type CallEncoding = Readonly<{
  name: 'getAssetsWithMetadata' | 'getAssets' | 'aggregate3' | 'getAsset' | 'proof'
  /** Tokens in one call. */
  maxBatch: number
  read: (
    ids: readonly bigint[],
    block: Block,
    deadline: number,
  ) => Promise<readonly DecodedState[] | Suspects<bigint> | NonCanonical>
  /** Reads the token and the asset of each tag, in the order of `tagHashes`. */
  byTags: (
    tagHashes: readonly Hex[],
    block: Block,
    deadline: number,
  ) => Promise<readonly TaggedState[] | Suspects<Hex> | NonCanonical>
}>

/** Returns whether the contract is a registry of this project, where each change of a record emits an event. */
export function isOfRegistry({ name }: Pick<CallEncoding, 'name'>): boolean {
  return name === 'getAssetsWithMetadata' || name === 'proof'
}

/** `registry`: our own contract, nothing is asked. `foreign`: no list reads. `auto`: by ERC-165. */
export type ReadInterface = 'registry' | 'foreign' | 'auto'

/** Returns the encoding that suits the contract as it is at `block`. Throws CHAIN_UNAVAILABLE. */
export type DetectEncoding = (block: Block, deadline: number) => Promise<CallEncoding | NonCanonical>

type Calls = Pick<ChainSource, 'call' | 'calls'>
type EncodingOptions = Readonly<{
  source: Calls
  contract: Hex
  withMetadata: boolean
  /** Returns whether Multicall3 is known to be deployed. Default: no. */
  hasMulticall?: (block: Block, deadline: number) => boolean
}>

/** Pauses until features that are missing are looked for again: the first one, and one after a look that failed. */
const againMs = 60_000
const soonMs = 1_000

/**
 * Detects the encoding at the first read. Only the chain's own answers decide, a revert or missing code among them. A call
 * that failed decides nothing and fails the read: else a contract with metadata hashes would for a while count as one without.
 * A contract that is not deployed yet, or reverts once, may have more features later, so they are looked for again; none is unlearnt.
 * Nothing is kept before `getAsset` itself has answered.
 */
export function createEncodingDetector(
  options: Readonly<{
    source: Calls
    contract: Hex
    interface: ReadInterface
    /** Monotonic milliseconds. */
    now?: () => number
  }>,
): DetectEncoding {
  const { source, contract, now = () => performance.now() } = options
  const base = { source, contract, withMetadata: true, hasMulticall }
  let detected = options.interface === 'registry' ? registryEncoding(base) : undefined
  let isWhole = detected !== undefined
  let againAt = 0
  const known = { lists: false, listsMetadata: false, getter: false, multicall: false }
  const probeOnce = singleFlight(probe)
  const findOnce = singleFlight(findMulticall)
  let findAt = 0
  return async (block, deadline) => {
    if (detected === undefined) return probeOnce(block, deadline)
    if (!isWhole && now() >= againAt) probeOnce(block, deadline).catch(() => (againAt = now() + soonMs))
    return detected
  }

  async function probe(block: Block, deadline: number): Promise<CallEncoding | NonCanonical> {
    const auto = options.interface === 'auto'
    const at = { block, deadline }
    const isOne = (data: Hex) => decodeWord(data) === 1n
    const [answered, lists, listsMetadata, getter, multicall] = await Promise.all([
      test(at, contract, encodeCall(selectors.getAsset, 1n), (data) => decodeGetAsset(data, null) !== null),
      auto ? test(at, contract, encodeSupportsCall(selectors.getAssets), isOne) : false,
      auto ? test(at, contract, encodeSupportsCall(selectors.getAssetsWithMetadata), isOne) : false,
      test(at, contract, encodeCall(selectors.metadataHash, 1n), (data) => decodeWord(data) !== null),
      testMulticall(block, deadline),
    ])
    if ([answered, lists, listsMetadata, getter, multicall].includes(nonCanonical)) return nonCanonical
    for (const [name, found] of Object.entries({ lists, listsMetadata, getter, multicall }))
      if (found === true) known[name as keyof typeof known] = true
    const encoding = encodingOf(known)
    isWhole = known.listsMetadata || (known.getter && known.multicall && !auto)
    againAt = now() + againMs
    if (answered === true) detected = encoding
    return encoding

    function encodingOf(has: typeof known): CallEncoding {
      const found = { ...base, withMetadata: has.getter }
      if (has.listsMetadata) return registryEncoding(found)
      // With metadata hashes, one multicall for all of them beats a batch with a call for each.
      if (has.lists && !(has.getter && has.multicall)) return listEncoding(found)
      return has.multicall ? multicallEncoding(found) : singleEncoding(found)
    }
  }

  /** Looks for Multicall3 in the background until it is found: a contract with lists of tokens is read without it. */
  function hasMulticall(block: Block, deadline: number): boolean {
    if (!known.multicall && now() >= findAt) findOnce(block, deadline).catch(() => (findAt = now() + soonMs))
    return known.multicall
  }

  async function findMulticall(block: Block, deadline: number): Promise<void> {
    if ((await testMulticall(block, deadline)) === true) known.multicall = true
    findAt = now() + againMs
  }

  function testMulticall(block: Block, deadline: number): Promise<boolean | NonCanonical> {
    const isEmptyList = (data: Hex) => decodeAggregate(data, 0) !== null
    return test({ block, deadline }, multicallAddress, encodeAggregate(contract, []), isEmptyList)
  }

  async function test(
    { block, deadline }: Readonly<{ block: Block; deadline: number }>,
    to: Hex,
    data: Hex,
    isYes: (answer: Hex) => boolean,
  ): Promise<boolean | NonCanonical> {
    try {
      const answer = await source.call(to, data, block, { deadline })
      return answer === nonCanonical ? answer : isYes(answer)
    } catch (error) {
      if (hasReverted(error)) return false
      throw error
    }
  }
}

/** For our own contract. A list is one call, and so is a tag; many tags are one call of Multicall3. */
export function registryEncoding({ source, contract, hasMulticall = () => false }: EncodingOptions): CallEncoding {
  const { getAssetsWithMetadata, getAssetByTag } = selectors
  return {
    name: 'getAssetsWithMetadata',
    maxBatch: 1000,
    read: (ids, block, deadline) =>
      readChecked(
        ids,
        (data: Hex) => decodeGetAssetsWithMetadata(data, ids.length),
        (check) => source.call(contract, encodeListCall(getAssetsWithMetadata, ids), block, { deadline, check }),
      ),
    byTags(tagHashes, block, deadline) {
      const datas = tagHashes.map((tagHash) => encodeCall(getAssetByTag, BigInt(tagHash)))
      const decode = (data: Hex | null) => (data === null ? null : decodeGetAssetByTag(data))
      if (datas.length > 1 && hasMulticall(block, deadline))
        return readChecked(
          tagHashes,
          (data: Hex) => decodeAggregate(data, datas.length)?.map(decode) ?? null,
          (check) => source.call(multicallAddress, encodeAggregate(contract, datas), block, { deadline, check }),
        )
      return readChecked(
        tagHashes,
        (answers: readonly Hex[]) => answers.map(decode),
        (check) => source.calls(contract, datas, block, { deadline, check }),
      )
    },
  }
}

/** Applies to a contract with the list of records only. The metadata hashes are read beside it, in the same JSON-RPC batch. */
export function listEncoding(options: EncodingOptions): CallEncoding {
  const { source, contract, withMetadata } = options
  return withTags(options, {
    name: 'getAssets',
    maxBatch: withMetadata ? 100 : 1000,
    read(ids, block, deadline) {
      const datas = [encodeListCall(selectors.getAssets, ids), ...(withMetadata ? metadataCalls(ids) : [])]
      return readChecked(
        ids,
        ([list = '0x', ...metadata]: readonly Hex[]) => decodeGetAssets(list, ids.length, metadata),
        (check) => source.calls(contract, datas, block, { deadline, check }),
      )
    },
  })
}

/** For any contract where Multicall3 is deployed: single reads in one call. */
export function multicallEncoding(options: EncodingOptions): CallEncoding {
  const { source, contract, withMetadata } = options
  return withTags(options, {
    name: 'aggregate3',
    maxBatch: withMetadata ? 500 : 1000,
    read(ids, block, deadline) {
      const datas = singleCalls(ids, withMetadata)
      return readChecked(
        ids,
        (data: Hex) => decodeSingles(decodeAggregate(data, datas.length), withMetadata),
        (check) => source.call(multicallAddress, encodeAggregate(contract, datas), block, { deadline, check }),
      )
    },
  })
}

/** For any contract on any chain: single reads in one JSON-RPC batch. */
export function singleEncoding(options: EncodingOptions): CallEncoding {
  const { source, contract, withMetadata } = options
  return withTags(options, {
    name: 'getAsset',
    maxBatch: withMetadata ? 50 : 100,
    read: (ids, block, deadline) =>
      readChecked(
        ids,
        (results: readonly Hex[]) => decodeSingles(results, withMetadata),
        (check) => source.calls(contract, singleCalls(ids, withMetadata), block, { deadline, check }),
      ),
  })
}

/** Adds the read by tag for a contract without `getAssetByTag`: the token, then its asset, both at the same block. */
function withTags({ source, contract }: EncodingOptions, encoding: Omit<CallEncoding, 'byTags'>): CallEncoding {
  return {
    ...encoding,
    async byTags(tagHashes, block, deadline) {
      const check = (answers: readonly Hex[]) =>
        answers.every((data) => decodeWord(data) !== null) ? null : 'impossible answer of getTokenByTag'
      const datas = tagHashes.map((tagHash) => encodeCall(selectors.getTokenByTag, BigInt(tagHash)))
      const answers = await source.calls(contract, datas, block, { deadline, check })
      if (answers === nonCanonical) return answers
      const tokenIds = answers.map((data) => decodeWord(data) ?? failChecked())
      return readTagged(encoding.read, { tagHashes, tokenIds }, block, deadline)
    },
  }
}

/** Reads the assets of the tokens of tags; token 0 stands for a tag that no token carries. */
export async function readTagged(
  read: CallEncoding['read'],
  { tagHashes, tokenIds }: Readonly<{ tagHashes: readonly Hex[]; tokenIds: readonly bigint[] }>,
  block: Block,
  deadline: number,
): Promise<readonly TaggedState[] | Suspects<Hex> | NonCanonical> {
  const bound = [...new Set(tokenIds.filter((tokenId) => tokenId !== 0n))]
  const answer = bound.length === 0 ? [] : await read(bound, block, deadline)
  if (answer === nonCanonical) return answer
  if ('suspects' in answer)
    return { suspects: new Set(tagHashes.filter((_, index) => answer.suspects.has(tokenIds[index] ?? 0n))) }
  return tokenIds.map((tokenId) => {
    if (tokenId === 0n) return { tokenId: null }
    return { tokenId, decoded: answer[bound.indexOf(tokenId)] ?? failChecked() }
  })
}

function metadataCalls(ids: readonly bigint[]): readonly Hex[] {
  return ids.map((id) => encodeCall(selectors.metadataHash, id))
}

function singleCalls(ids: readonly bigint[], withMetadata: boolean): readonly Hex[] {
  const records = ids.map((id) => encodeCall(selectors.getAsset, id))
  return withMetadata ? [...records, ...metadataCalls(ids)] : records
}

/** Decodes the records, which come first, and as many metadata hashes. */
function decodeSingles(results: readonly (Hex | null)[] | null, withMetadata: boolean): DecodedStates | null {
  if (results === null) return null
  const count = withMetadata ? results.length / 2 : results.length
  return results.slice(0, count).map((data, index) => {
    const metadata = withMetadata ? results[count + index] : null
    return data === null || metadata === undefined || (withMetadata && metadata === null)
      ? null
      : decodeGetAsset(data, metadata)
  })
}

/** Decodes inside the check, so that a second provider is asked where the first one's answer is impossible. */
async function readChecked<Key extends bigint | Hex, State, Answer extends Hex | readonly Hex[]>(
  keys: readonly Key[],
  decode: (answer: Answer) => readonly (State | null)[] | null,
  ask: (check: (answer: Answer) => string | null) => Promise<Answer | NonCanonical>,
): Promise<readonly State[] | Suspects<Key> | NonCanonical> {
  let last: Readonly<{ answer: Answer; list: readonly (State | null)[] | null }> | undefined
  const decodeOnce = (answer: Answer) =>
    (last?.answer === answer ? last : (last = { answer, list: decode(answer) })).list
  try {
    const answer = await ask((seen) => (isComplete(decodeOnce(seen)) ? null : 'impossible answer'))
    if (answer === nonCanonical) return answer
    const list = decodeOnce(answer)
    return isComplete(list) ? list : failChecked()
  } catch (error) {
    const suspects = new Set(keys.filter((_, index) => last?.list?.[index] === null))
    if (suspects.size > 0) return { suspects }
    throw error
  }
}

function isComplete<State>(list: readonly (State | null)[] | null): list is readonly State[] {
  return list !== null && !list.includes(null)
}

function failChecked(): never {
  throw chainUnavailable('an impossible answer passed its check')
}
