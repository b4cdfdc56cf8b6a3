/**
 * The reputation of an agent (ERC-8004, Reputation registry) at one block. Each tag has its own summary, because an average over several
 * tags mixes different units. One person may use many addresses, so that the answer names the reviewers it counts.
 */
import { cleanText, type Hex } from '@touchstone/verdict'
import { chainRefOf } from '../../domain/chain.ts'
import { chainUnavailable } from '../../lib/errors.ts'
import { registryName } from './registration-file.ts'
import { agentWarning } from './registry.ts'
import { identityAbi, viewCall, type ReadsAtBlock, type RegistryReads, reputationAbi } from './reads.ts'

/** Empty lists mean the tags of the ERC, and the configured reviewers or else all. At most 50 tags and 200 reviewers. */
export type ReputationQuery = {
  readonly agentId: bigint
  readonly tags: readonly Tags[]
  /** In lower case, each once. */
  readonly reviewers: readonly Hex[]
}

export type Reputations = ReturnType<typeof createReputations>

export const maxReviewers = 200
export const maxTags = 50
/** Feedback whose tags are read; a tag may be long. */
const maxFeedback = 50

type ReputationsOptions = {
  readonly reads: RegistryReads
  readonly identity: Hex
  readonly reputation: Hex
  /** Reviewers that the operator trusts; an empty list means all. */
  readonly reviewers: readonly Hex[]
}

export function createReputations({ reads, identity, reputation, reviewers: configured }: ReputationsOptions) {
  /** Returns the reputation of an agent, null for an unknown one. Throws CHAIN_UNAVAILABLE. */
  return (query: ReputationQuery) =>
    reads(async (at) => {
      const { agentId } = query
      const chosen = query.reviewers.length > 0 ? query.reviewers : configured
      const [owner, clients] = await at.together([
        viewCall(identityAbi, identity, 'ownerOf', [agentId]),
        ...(chosen.length > 0 ? [] : [viewCall(reputationAbi, reputation, 'getClients', [agentId])]),
      ] as const)
      if (owner === null) return null
      if (clients === null) throw chainUnavailable('the registry returned no reviewers of an agent')
      const all = clients ?? chosen
      const reviewers = all.slice(0, maxReviewers)
      const [{ byTag, valid }, given] = await Promise.all([
        summaries(at, agentId, reviewers, query.tags),
        indexes(at, agentId, reviewers),
      ])
      const total = given.reduce((sum, { last }) => sum + last, 0n)
      const tags = otherTags(await latestTags(at, agentId, given), maxTags)
      return {
        version: '1' as const,
        agent_id: agentId.toString(),
        agent_registry: registryName(identity),
        reviewers: {
          source: query.reviewers.length > 0 ? 'query' : configured.length > 0 ? 'configured' : 'all',
          count: reviewers.length,
          /** False if there are more than 200 and only the first count. */
          complete: reviewers.length === all.length,
          /** Whether the caller or the operator chose the reviewers. */
          sybil_resistant: chosen.length > 0,
        },
        by_tag: byTag,
        /** All feedback of these reviewers, including revoked feedback. */
        feedback_total: total.toString(),
        revoked_total: (total - valid).toString(),
        ...(tags.length > 0 && { untrusted: { _warning: agentWarning, tags } }),
        chainRef: chainRefOf(reputation, agentId, at.block),
      }
    })

  /** Leaves out unused tags of the ERC, but not those of a query. `valid` counts all feedback that was not revoked. */
  async function summaries(at: ReadsAtBlock, agentId: bigint, reviewers: readonly Hex[], queried: readonly Tags[]) {
    const tags = queried.length > 0 ? queried : ercTags
    const questions = [...tags, { tag1: '', tag2: '' }].map(({ tag1, tag2 }) =>
      viewCall(reputationAbi, reputation, 'getSummary', [agentId, reviewers, tag1, tag2]),
    )
    // The contract reverts for an empty list of reviewers.
    const answers = reviewers.length === 0 ? [] : await at.each(questions)
    // `value` is the average without its decimal point, truncated by the contract.
    const byTag = tags.map(({ tag1, tag2 }, index) => {
      const [count, value, decimals] = answers[index] ?? [0n, 0n, 0]
      const decimal_value = formatDecimal(value, decimals)
      return { tag1, tag2, count: count.toString(), value: value.toString(), decimals, decimal_value }
    })
    const valid = answers[tags.length]?.[0] ?? 0n
    return { byTag: queried.length > 0 ? byTag : byTag.filter(({ count }) => count !== '0'), valid }
  }

  async function indexes(at: ReadsAtBlock, agentId: bigint, reviewers: readonly Hex[]): Promise<Given[]> {
    const lasts = await at.together(
      reviewers.map((reviewer) => viewCall(reputationAbi, reputation, 'getLastIndex', [agentId, reviewer])),
    )
    return reviewers.map((reviewer, index) => {
      const last = lasts[index]
      if (last === null || last === undefined)
        throw chainUnavailable('the registry returned no feedback count of a reviewer')
      return { reviewer, last }
    })
  }

  /** Returns the tags of the newest feedback of each reviewer, then of the second newest, and so on. */
  async function latestTags(at: ReadsAtBlock, agentId: bigint, given: readonly Given[]): Promise<Tags[]> {
    const feedback = await at.together(
      newest(given, maxFeedback).map(({ reviewer, index }) =>
        viewCall(reputationAbi, reputation, 'readFeedback', [agentId, reviewer, index]),
      ),
    )
    return feedback.flatMap((one) => (one === null || one[4] ? [] : { tag1: one[2], tag2: one[3] }))
  }
}

/** `last` is the number of a reviewer's feedback, counted from 1. */
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

export type Tags = { readonly tag1: string; readonly tag2: string }

/** The examples of the ERC («Examples of value / valueDecimals»). Each has one unit, so that an average is meaningful. */
const ercTags: readonly Tags[] = [
  ...'starred reachable ownerVerified uptime successRate responseTime blocktimeFreshness revenues'
    .split(' ')
    .map((tag1) => ({ tag1, tag2: '' })),
  ...['day', 'week', 'month', 'year'].map((tag2) => ({ tag1: 'tradingYield', tag2 })),
]

const maxTagLength = 100

/** Returns whether a query may name a tag: short, and not changed by the sanitiser. */
export function isQueryTag(tag: string): boolean {
  return tag.length <= maxTagLength && cleanText(tag, { max: maxTagLength }) === tag
}

/** Returns the tags that are not of the ERC, cleaned and each once. */
export function otherTags(found: readonly Tags[], max: number): Tags[] {
  const others = new Map<string, Tags>()
  for (const { tag1, tag2 } of found) {
    const one = { tag1: cleanText(tag1, { max: maxTagLength }), tag2: cleanText(tag2, { max: maxTagLength }) }
    if (one.tag1 === '' && one.tag2 === '') continue
    if (ercTags.some((known) => known.tag1 === tag1 && (known.tag2 === '' || known.tag2 === tag2))) continue
    if (others.size < max) others.set(JSON.stringify([one.tag1, one.tag2]), one)
  }
  return [...others.values()]
}

/** Formats a fixed-point number: `9977` with two decimals is `99.77`. */
export function formatDecimal(value: bigint, decimals: number): string {
  const sign = value < 0n ? '-' : ''
  const digits = (value < 0n ? -value : value).toString().padStart(decimals + 1, '0')
  const whole = digits.slice(0, digits.length - decimals)
  return decimals === 0 ? `${sign}${whole}` : `${sign}${whole}.${digits.slice(-decimals)}`
}
