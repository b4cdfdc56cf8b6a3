/**
 * The agents' registries (ERC-8004) on {base_url}: the service's own registration file, and keyless lookups of any agent and of what others
 * say of it. Errors have the form of the keyless read (spec §2.4).
 */
import { isAddress, parseTokenId, type Hex } from '@touchstone/verdict'
import type { Hono } from 'hono'
import { registrationFile, type OwnAgent } from '../agents/agent-registration.ts'
import type { Agents } from '../agents/agent-registry.ts'
import { mostReviewers, mostTags, type ReputationQuery, type Reputations } from '../agents/agent-reputation.ts'
import { isAskable } from '../agents/agent-reputation-tags.ts'
import { agentCard, type CardOwner } from '../agents/agent-card.ts'
import type { Budget, RateLimiter } from '../http/rate-limit.ts'
import { budgetHeaders, failure, methodRefused, openToAll, preflight } from '../http/respond.ts'
import { documentResponse, staticDocument, staticMethods } from '../http/static-document.ts'
import { decodeOnce } from './asset.ts'
import { rawQuery, tooMany, type Edge, type Env } from './edge.ts'

export type AgentRoutes = {
  readonly ownAgent: OwnAgent & CardOwner
  readonly agents: Agents
  readonly reputations: Reputations
  readonly limiter?: RateLimiter | undefined
}

const prefix = '/api/agents/'

export function agentRoutes(app: Hono<Env>, edge: Edge, { ownAgent, agents, reputations, limiter }: AgentRoutes): void {
  const registration = registrationFile(ownAgent)
  documentRoute(app, '/api/agent', registration)
  documentRoute(app, '/.well-known/agent-registration.json', registration)
  documentRoute(app, '/.well-known/agent-card.json', agentCard(ownAgent), {
    'Last-Modified': new Date().toUTCString(),
  })

  app.options(`${prefix}*`, () => preflight(staticMethods))
  app.all(`${prefix}*`, async (c) => {
    if (!c.req.path.startsWith(prefix)) return c.notFound() // the pattern also matches without the slash
    const budget = await edge.take(c, limiter)
    const headers = budgetHeaders(budget)
    if (!['GET', 'HEAD'].includes(c.req.method)) return methodRefused(staticMethods, headers)
    if (budget?.allowed === false) return refused('RATE_LIMITED', tooMany(budget), budget)
    const [segment = '', ...rest] = c.req.path.slice(prefix.length).split('/', 3)
    const agentId = parseTokenId(decodeOnce(segment))
    if (agentId === null) return refused('INVALID_AGENT_ID', invalidAgentId, budget)
    try {
      if (rest.length === 0) return found(await agents(agentId), budget)
      if (rest.length > 1 || rest[0] !== 'reputation') return c.notFound()
      const query = readQuery(agentId, rawQuery(c))
      return typeof query === 'string'
        ? refused('INVALID_ARGUMENT', query, budget)
        : found(await reputations(query), budget)
    } catch (error) {
      const { code, message } = edge.faultOf(error, c)
      return refused(code === 'CHAIN_UNAVAILABLE' ? code : 'INTERNAL', message, budget)
    }
  })
}

function documentRoute(app: Hono<Env>, path: string, document: object, headers: Record<string, string> = {}): void {
  const made = staticDocument('application/json', JSON.stringify(document), headers)
  app.options(path, () => preflight(staticMethods))
  app.all(path, (c) => documentResponse(made, c.req.method, c.req.header('if-none-match')))
}

const statuses = {
  INVALID_AGENT_ID: 400,
  INVALID_ARGUMENT: 400,
  AGENT_NOT_FOUND: 404,
  RATE_LIMITED: 429,
  INTERNAL: 500,
  CHAIN_UNAVAILABLE: 502,
} as const
const invalidAgentId = 'The agent id must be a decimal integer from 0 to 2^256-1, in digits only, such as 0.'

function refused(code: keyof typeof statuses, message: string, budget: Budget | undefined): Response {
  const wait: Record<string, string> =
    code === 'RATE_LIMITED' && budget !== undefined ? { 'Retry-After': String(budget.resetSeconds) } : {}
  return failure(statuses[code], { version: '1', error: { code, message } }, { ...budgetHeaders(budget), ...wait })
}

/** Null is an agent that the registry does not know. */
function found(answer: object | null, budget: Budget | undefined): Response {
  if (answer === null) return refused('AGENT_NOT_FOUND', 'The registry has no agent with this id.', budget)
  return new Response(JSON.stringify(answer), {
    headers: {
      'Content-Type': 'application/json',
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      ...openToAll,
      ...budgetHeaders(budget),
    },
  })
}

/** `tag1` may be repeated; `tag2` goes with each of them; `reviewers` are addresses with commas between them. A sentence: what is wrong. */
function readQuery(agentId: bigint, raw: string): ReputationQuery | string {
  const query = new URLSearchParams(raw)
  const tag1s = new Set(query.getAll('tag1').filter((tag) => tag !== ''))
  const tag2 = query.get('tag2') ?? ''
  if (tag1s.size > mostTags) return `At most ${mostTags} tags can be asked for at once.`
  if (tag1s.size === 0 && tag2 !== '') return 'tag2 narrows a tag1: send both.'
  if (![...tag1s, tag2].every(isAskable)) return 'A tag has at most 100 characters, all of them visible.'
  const listed = (query.get('reviewers') ?? '').split(',').filter((one) => one !== '')
  if (listed.length > mostReviewers) return `At most ${mostReviewers} reviewers can be asked for at once.`
  if (!listed.every(isAddress)) return 'reviewers are addresses (0x and 40 hex digits) with commas between them.'
  const reviewers = [...new Set(listed.map((one) => one.toLowerCase() as Hex))]
  return { agentId, tags: Array.from(tag1s, (tag1) => ({ tag1, tag2 })), reviewers }
}
