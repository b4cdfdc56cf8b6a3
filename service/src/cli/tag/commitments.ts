/** `touchstone tag commitments`: which tags are still bound on chain under TAG_PEPPER_PREVIOUS, so that it stays needed (decisions 4.4). */
import { lifecycleStates, type Hex } from '@touchstone/verdict'
import type { Command } from 'commander'
import { decodeFunctionResult, encodeFunctionData } from 'viem/utils'
import type { Components } from '../../app/components.ts'
import { nonCanonical } from '../../chain/rpc/answer.ts'
import { assetRegistryAbi as abi } from '../../domain/registry-abi.ts'
import { chainUnavailable } from '../../lib/errors.ts'
import { toHex } from '../../tap/bytes.ts'
import { defineCommand, inSession } from '../session/command.ts'
import { formatJson } from '../session/output.ts'
import { chainOf, retryChain, tagHashOf, type RunWork, type Session } from '../session/session.ts'

export function commitmentsCommand(run: RunWork): Command {
  const description =
    'Counts the tags that are bound under TAG_PEPPER and under TAG_PEPPER_PREVIOUS, and lists the latter.'
  return defineCommand('commitments', description, {
    notes: `It reads the binding of every tag of the registry from the chain and changes nothing. The contract binds an item once, so that
no tag can be bound again: TAG_PEPPER_PREVIOUS stays needed until every item of the list is recycled. Tags that were bound
elsewhere and never registered or tapped here are not counted. Exit code 1 when a tag is bound to two assets.`,
    examples: ['touchstone tag commitments', 'touchstone tag commitments --json'],
  })
    .option('--json', 'print a JSON object')
    .action(inSession(run, showCommitments))
}

async function showCommitments(session: Session, { json }: { json?: true }): Promise<number> {
  const { io, store } = session
  const counts = { tags: 0, current: 0, unbound: 0 }
  const former: { uid: string; tokenId: string; state: string }[] = []
  const conflicts: { uid: string; tokenId: string; formerTokenId: string }[] = []
  for (let uids = await store.tags.uidsAfter(null, window); uids.length > 0 && !io.signal.aborted;) {
    const bindings = await retryChain(io, () => readWindow(session, uids))
    counts.tags += uids.length
    for (const [index, binding] of bindings.entries()) {
      const uid = toHex(uids[index] as Uint8Array)
      const { tokenId, formerTokenId, state } = binding
      if (tokenId !== null && formerTokenId !== null && tokenId !== formerTokenId)
        conflicts.push({ uid, tokenId: String(tokenId), formerTokenId: String(formerTokenId) })
      else if (tokenId !== null) counts.current += 1
      else if (formerTokenId !== null) former.push({ uid, tokenId: String(formerTokenId), state })
      else counts.unbound += 1
    }
    uids = await store.tags.uidsAfter(uids.at(-1) ?? null, window)
  }
  const live = former.filter(({ state }) => state !== 'RECYCLED').length
  const hasFormer = chainOf(session).formerTagHash !== undefined
  if (json === true)
    io.out(
      formatJson({
        ...counts,
        former: former.length,
        conflicting: conflicts.length,
        previousPepperNeeded: live + conflicts.length > 0,
        previousPepperSet: hasFormer,
        list: former,
        conflicts,
      }),
    )
  else {
    for (const { uid, tokenId, state } of former)
      io.out(`${uid}  asset ${tokenId}  ${state}  under TAG_PEPPER_PREVIOUS`)
    for (const { uid, tokenId, formerTokenId: other } of conflicts)
      io.out(`${uid}  asset ${tokenId} under TAG_PEPPER, asset ${other} under TAG_PEPPER_PREVIOUS: its taps are 502`)
    io.out(
      `${counts.tags} tags: ${counts.current} bound under TAG_PEPPER, ${former.length} under TAG_PEPPER_PREVIOUS, ${conflicts.length} to two assets, ${counts.unbound} unbound.`,
    )
    io.out(adviceOf({ hasFormer, conflicts: conflicts.length, live }))
  }
  if (io.signal.aborted) io.err('touchstone: it was stopped, so that not all tags were read.')
  return conflicts.length > 0 || io.signal.aborted ? 1 : 0
}

function adviceOf({ hasFormer, conflicts, live }: { hasFormer: boolean; conflicts: number; live: number }): string {
  if (!hasFormer) return 'TAG_PEPPER_PREVIOUS is not set, so that bindings under a former pepper count as unbound.'
  if (conflicts > 0)
    return 'Find out which asset carries each tag that is bound to two, and recycle or flag the other one.'
  if (live === 0) return 'TAG_PEPPER_PREVIOUS can be removed: no item in use needs it.'
  return `Keep TAG_PEPPER_PREVIOUS until ${live} of these items are recycled: the contract binds an item once.`
}

const window = 1_000

/** Reads the bindings of tags at one block. Also reads the state of items that are bound under the former commitment alone. */
async function readWindow(session: Session, uids: readonly Uint8Array[]) {
  const { source, contract, reader, formerTagHash } = chainOf(session)
  const bindings = await readBindings({ source, contract, tagHash: tagHashOf(session), formerTagHash }, uids)
  return Promise.all(
    bindings.map(async (binding) => {
      const { tokenId, formerTokenId } = binding
      const isFormer = tokenId === null && formerTokenId !== null
      const state = isFormer ? (await reader.read(formerTokenId)).asset.record.state : 0
      return { ...binding, state: lifecycleStates[state] ?? 'NONE' }
    }),
  )
}

type BindingSource = Pick<Components, 'source' | 'contract' | 'formerTagHash'> & {
  readonly tagHash: NonNullable<Components['tagHash']>
}
/** The tokens that a tag is bound to under its present and its former commitment; null for none. */
type Binding = Readonly<{ tokenId: bigint | null; formerTokenId: bigint | null }>

/** Reads the bindings of tags at one block, in the order of `uids`; `onRead` counts requests. Throws CHAIN_UNAVAILABLE. */
export async function readBindings(
  { source, contract, tagHash, formerTagHash }: BindingSource,
  uids: readonly Uint8Array[],
  onRead: () => void = () => {},
): Promise<Binding[]> {
  const head = await source.head()
  const tagHashes = uids.flatMap((uid) => [tagHash(uid), ...(formerTagHash === undefined ? [] : [formerTagHash(uid)])])
  const tokens: (bigint | null)[] = []
  for (let at = 0; at < tagHashes.length; at += perRequest) {
    const datas = tagHashes
      .slice(at, at + perRequest)
      .map((hash) => encodeFunctionData({ abi, functionName: 'getTokenByTag', args: [hash] }))
    onRead()
    const answers = await source.calls(contract.toLowerCase() as Hex, datas, head)
    if (answers === nonCanonical) throw chainUnavailable('the block is not canonical')
    for (const data of answers) {
      const tokenId = decodeFunctionResult({ abi, functionName: 'getTokenByTag', data })
      tokens.push(tokenId === 0n ? null : tokenId)
    }
  }
  const perTag = formerTagHash === undefined ? 1 : 2
  return uids.map((_, index) => ({
    tokenId: tokens[index * perTag] ?? null,
    formerTokenId: perTag === 1 ? null : (tokens[index * perTag + 1] ?? null),
  }))
}

/** Calls per request; providers allow at least this many. */
const perRequest = 50
