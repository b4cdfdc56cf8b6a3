/**
 * What others say of an agent (ERC-8004, Reputation registry), at one block and for each tag alone: an average over several would mix unlike
 * things. Anybody may give feedback under any number of addresses, so the answer says whose words it counts.
 */
import type { ChainRef, Hex } from '@touchstone/verdict'
import { registryName } from './agent-registration.ts'
import { agentWarning } from './agent-registry.ts'
import { identityAbi, reputationAbi } from './agent-registry-abi.ts'
import { chainRefOf, question, unavailable, type ReadsAtBlock, type RegistryReads } from './agent-registry-reads.ts'
import { decimalText, ercTags, otherTags, type Tags } from './agent-reputation-tags.ts'

type TagSummary = Tags & {
  readonly count: string
  /** The average without its point, cut off by the contract. */
  readonly value: string
  readonly decimals: number
  readonly decimal_value: string
}

type Reputation = {
  readonly version: '1'
  readonly agent_id: string
  readonly agent_registry: string
  readonly reviewers: {
    readonly source: 'query' | 'configured' | 'all'
    readonly count: number
    /** False: the first 200 of more. */
    readonly complete: boolean
    /** Were the reviewers chosen by somebody? Whoever gave feedback may be one person under many addresses. */
    readonly sybil_resistant: boolean
  }
  readonly by_tag: readonly TagSummary[]
  /** All that these reviewers gave, what they revoked included. */
  readonly feedback_total: string
  readonly revoked_total: string
  readonly untrusted?: { readonly _warning: string; readonly tags: readonly Tags[] }
  readonly chainRef: ChainRef
}

/** Empty lists: the ERC's tags, and the configured reviewers or else everybody. At most 50 tags and 200 reviewers. */
export type ReputationQuery = {
  readonly agentId: bigint
  readonly tags: readonly Tags[]
  /** In lower case, each once. */
  readonly reviewers: readonly Hex[]
}

/** Null: no such agent. It throws CHAIN_UNAVAILABLE. */
export type Reputations = (query: ReputationQuery) => Promise<Reputation | null>

export const mostReviewers = 200
export const mostTags = 50
/** Of how much feedback the tags are looked at; a tag may be long. */
const mostRead = 50

/** `reviewers`: those whose word the operator trusts; empty: everybody's counts. */
export function createReputations({
  reads,
  identity,
  reputation,
  reviewers: configured,
}: {
  readonly reads: RegistryReads
  readonly identity: Hex
  readonly reputation: Hex
  readonly reviewers: readonly Hex[]
}): Reputations {
  return (query) =>
    reads(async (at) => {
      const { agentId } = query
      const chosen = query.reviewers.length > 0 ? query.reviewers : configured
      const [owner, clients] = await at.together([
        question(identityAbi, identity, 'ownerOf', [agentId]),
        ...(chosen.length > 0 ? [] : [question(reputationAbi, reputation, 'getClients', [agentId])]),
      ] as const)
      if (owner === null) return null
      if (clients === null) throw unavailable('the registry does not tell the reviewers of an agent')
      const all = clients ?? chosen
      const reviewers = all.slice(0, mostReviewers)
      const [{ byTag, valid }, given] = await Promise.all([
        summaries(at, agentId, reviewers, query.tags),
        indexes(at, agentId, reviewers),
      ])
      const total = given.reduce((sum, { last }) => sum + last, 0n)
      const tags = otherTags(await latestTags(at, agentId, given), mostTags)
      return {
        version: '1',
        agent_id: agentId.toString(),
        agent_registry: registryName(identity),
        reviewers: {
          source: query.reviewers.length > 0 ? 'query' : configured.length > 0 ? 'configured' : 'all',
          count: reviewers.length,
          complete: reviewers.length === all.length,
          sybil_resistant: chosen.length > 0,
        },
        by_tag: byTag,
        feedback_total: total.toString(),
        revoked_total: (total - valid).toString(),
        ...(tags.length > 0 && { untrusted: { _warning: agentWarning, tags } }),
        chainRef: chainRefOf(reputation, agentId, at.block),
      }
    })

  /** Tags of the ERC that nobody used are left out, those of a query are not. `valid`: all feedback that was not revoked. */
  async function summaries(at: ReadsAtBlock, agentId: bigint, reviewers: readonly Hex[], asked: readonly Tags[]) {
    const tags = asked.length > 0 ? asked : ercTags
    const questions = [...tags, { tag1: '', tag2: '' }].map(({ tag1, tag2 }) =>
      question(reputationAbi, reputation, 'getSummary', [agentId, reviewers, tag1, tag2]),
    )
    // The contract refuses an empty list of reviewers.
    const answers = reviewers.length === 0 ? tags.map(() => [0n, 0n, 0] as const) : await at.each(questions)
    const byTag = tags.map(({ tag1, tag2 }, index): TagSummary => {
      const [count, value, decimals] = answers[index] ?? [0n, 0n, 0]
      const decimal_value = decimalText(value, decimals)
      return { tag1, tag2, count: count.toString(), value: value.toString(), decimals, decimal_value }
    })
    const valid = answers[tags.length]?.[0] ?? 0n
    return { byTag: asked.length > 0 ? byTag : byTag.filter(({ count }) => count !== '0'), valid }
  }

  async function indexes(at: ReadsAtBlock, agentId: bigint, reviewers: readonly Hex[]): Promise<Given[]> {
    const lasts = await at.together(
      reviewers.map((reviewer) => question(reputationAbi, reputation, 'getLastIndex', [agentId, reviewer])),
    )
    return reviewers.map((reviewer, index) => {
      const last = lasts[index]
      if (last === null || last === undefined)
        throw unavailable('the registry does not count the feedback of a reviewer')
      return { reviewer, last }
    })
  }

  /** The tags of the newest feedback of each reviewer, then of the one before, and so on. */
  async function latestTags(at: ReadsAtBlock, agentId: bigint, given: readonly Given[]): Promise<Tags[]> {
    const feedback = await at.together(
      newest(given, mostRead).map(({ reviewer, index }) =>
        question(reputationAbi, reputation, 'readFeedback', [agentId, reviewer, index]),
      ),
    )
    return feedback.flatMap((one) => (one === null || one[4] ? [] : { tag1: one[2], tag2: one[3] }))
  }
}

/** `last`: how much feedback a reviewer gave; it is counted from 1. */
type Given = { readonly reviewer: Hex; readonly last: bigint }

function newest(given: readonly Given[], most: number): { reviewer: Hex; index: bigint }[] {
  const found: { reviewer: Hex; index: bigint }[] = []
  for (let back = 0n; found.length < most; back += 1n) {
    const round = given.flatMap(({ reviewer, last }) => (last > back ? { reviewer, index: last - back } : []))
    if (round.length === 0) break
    found.push(...round)
  }
  return found.slice(0, most)
}
