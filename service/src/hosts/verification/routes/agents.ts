/**
 * The agent registries (ERC-8004) on {base_url}. The routes are the service's own registration file, and keyless look-ups of the identity
 * and the reputation of any agent. Errors have the body of the keyless read (spec §2.4).
 */
import { isAddress, type Hex } from '@touchstone/verdict'
import type { Hono } from 'hono'
import { registrationFile, type OwnAgent } from '../../../agents/erc8004/registration-file.ts'
import type { Agents } from '../../../agents/erc8004/registry.ts'
import {
  isQueryTag,
  maxReviewers,
  maxTags,
  type ReputationQuery,
  type Reputations,
} from '../../../agents/erc8004/reputation.ts'
import { agentCard, type CardOwner } from '../../../agents/a2a/card.ts'
import { didOf } from '../../../passport/did-document.ts'
import type { Issuer } from '../../../passport/signing/issuer.ts'
import type { Signer } from '../../../passport/signing/signer.ts'
import { errorResponse, quotaHeaders, uncachedJson } from '../../../http/responses.ts'
import { documentResponse, staticDocument, type StaticDocument } from '../../../http/static-document.ts'
import { ServiceError } from '../../../lib/errors.ts'
import { memoizeLast } from '../../../lib/memoize.ts'
import {
  codedFailure,
  documentRoute,
  freeRoute,
  parseTokenIdSegment,
  rawQuery,
  readRoute,
  tooFewLeftMessage,
  type Env,
  type Headers,
  type RequestHelpers,
  type RouteSite,
} from '../request.ts'
import { nothingHere } from './asset.ts'
import { lifetimeOfKeys } from './well-known.ts'

export type AgentRoutes = RouteSite & {
  readonly ownAgent: OwnAgent & CardOwner
  readonly agents: Agents
  readonly reputations: Reputations
  /** Signs the agent card. Left out: the card is not signed. */
  readonly issuer?: Pick<Issuer, 'signerFor'> | undefined
}

const prefix = '/api/agents/'

export function agentRoutes(
  app: Hono<Env>,
  helpers: RequestHelpers,
  { ownAgent, agents, reputations, issuer, limiter }: AgentRoutes,
): void {
  const registration = staticDocument('application/json', JSON.stringify(registrationFile(ownAgent)))
  documentRoute(app, '/api/agent', registration)
  documentRoute(app, '/.well-known/agent-registration.json', registration)
  const card = cardDocuments(ownAgent, issuer)
  freeRoute(app, cardPath, async (c) => {
    const document = await card((error) => helpers.faultOf(error, c))
    return documentResponse(document, c.req.method, c.req.header('if-none-match'), c.req.header('if-modified-since'))
  })

  readRoute(app, helpers, { prefix, limiter, reject: codedFailure }, async (c, headers, quota) => {
    const [segment = '', ...rest] = c.req.path.slice(prefix.length).split('/', 3)
    const agentId = parseTokenIdSegment(segment)
    if (agentId === null) throw new ServiceError('INVALID_AGENT_ID', invalidAgentId)
    if (rest.length > 1 || (rest.length === 1 && rest[0] !== 'reputation'))
      return errorResponse(404, nothingHere, headers)
    if (rest.length === 0) return respond(await agents(agentId), headers)
    const query = parseQuery(agentId, rawQuery(c))
    if (typeof query === 'string') throw new ServiceError('INVALID_ARGUMENT', query)
    const more = Math.max(0, query.tags.length - 1)
    const after = await helpers.consumeMore(c, limiter, { quota, more })
    const spent = { ...headers, ...quotaHeaders(after) }
    // Each tag is a call of the chain that looks at all reviewers.
    if (after?.allowed === false) {
      const fault = new ServiceError('RATE_LIMITED', tooFewLeftMessage('tag', after))
      return codedFailure(fault, { ...spent, 'Retry-After': String(after.resetSeconds) })
    }
    return respond(await reputations(query), spent)
  })
}

const cardPath = '/.well-known/agent-card.json'

/**
 * Returns a function for the present agent card, signed by the active issuer key (A2A 1.0 §8.4). It is made anew when the keys have changed,
 * and kept no longer than they are. While the key cannot sign, the card comes without a signature.
 */
function cardDocuments(owner: CardOwner, issuer: AgentRoutes['issuer']) {
  const content = agentCard(owner)
  const unsigned = JSON.stringify(content)
  const documentOf = memoizeLast((text: string) =>
    staticDocument('application/json', text, {
      'Cache-Control': lifetimeOfKeys,
      'Last-Modified': new Date().toUTCString(),
    }),
  )
  const did = didOf(owner.baseUrl)
  let made: { readonly signer: Signer; readonly text: Promise<string> } | undefined

  async function sign(signer: Signer): Promise<string> {
    const signature = await signer.signDocument(content)
    return signature === null ? unsigned : JSON.stringify({ ...content, signatures: [signature] })
  }

  async function present(onFault: (error: unknown) => void): Promise<string> {
    if (issuer === undefined) return unsigned
    const signer = issuer.signerFor(did)
    if (made?.signer !== signer) made = { signer, text: sign(signer) }
    return made.text.catch((error: unknown) => {
      onFault(error)
      made = undefined
      return unsigned
    })
  }
  return async (onFault: (error: unknown) => void): Promise<StaticDocument> => documentOf(await present(onFault))
}

const invalidAgentId = 'The agent id must be a decimal integer from 0 to 2^256-1, in digits only, such as 0.'

/** Null means that the registry has no such agent. */
function respond(answer: object | null, headers: Headers): Response {
  if (answer === null) throw new ServiceError('AGENT_NOT_FOUND', 'The registry has no agent with this id.')
  return uncachedJson(200, answer, headers)
}

/** Parses `tag1` (repeatable), `tag2` (for each of them) and `reviewers` (repeatable, or with commas). Returns a sentence if one is wrong. */
function parseQuery(agentId: bigint, raw: string): ReputationQuery | string {
  const query = new URLSearchParams(raw)
  const tag1s = new Set(query.getAll('tag1').filter((tag) => tag !== ''))
  const [tag2 = '', ...moreTags] = query.getAll('tag2')
  if (tag1s.size > maxTags) return `At most ${maxTags} tags can be asked for at once.`
  if (moreTags.length > 0) return 'Send tag2 once: it narrows each tag1.'
  if (tag1s.size === 0 && tag2 !== '') return 'tag2 narrows a tag1: send both.'
  if (![...tag1s, tag2].every(isQueryTag)) return 'A tag has at most 100 characters, all of them visible.'
  const listed = query
    .getAll('reviewers')
    .join()
    .split(',')
    .filter((one) => one !== '')
  if (listed.length > maxReviewers) return `At most ${maxReviewers} reviewers can be asked for at once.`
  // An empty list of trusted reviewers must not count everybody's feedback.
  if (query.has('reviewers') && listed.length === 0)
    return 'reviewers names no address: send one, or leave the parameter out.'
  if (!listed.every(isAddress)) return 'reviewers are addresses (0x and 40 hex digits) with commas between them.'
  const reviewers = [...new Set(listed.map((one) => one.toLowerCase() as Hex))]
  return { agentId, tags: Array.from(tag1s, (tag1) => ({ tag1, tag2 })), reviewers }
}
