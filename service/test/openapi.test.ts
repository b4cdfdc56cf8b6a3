/** The OpenAPI description (spec §9): made of the schemas, equal to the code's own lists, clean to the linter, and a strict judge. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { openApiDocument } from '../src/agents/openapi.ts'
import { agentOperations } from '../src/agents/openapi-agents.ts'
import type { Agents } from '../src/agents/agent-registry.ts'
import type { Reputations } from '../src/agents/agent-reputation.ts'
import type { agentSchema, reputationSchema } from '../src/agents/schemas/rest-agents.ts'
import type { z } from 'zod'
import { openApiFile, withUrls } from '../src/agents/openapi-file.ts'
import { gatewayErrorCodes } from '../src/agents/schemas/gateway.ts'
import { graphqlErrorCodes } from '../src/agents/schemas/graphql.ts'
import type { PassportDocument } from '../src/agents/schemas/passport.ts'
import { errors, statusOf, type ErrorCode } from '../src/gateway/answers.ts'
import { errorCodes } from '../src/graphql/error-codes.ts'
import type { Passport } from '../src/passport/credential.ts'
import { readContract, type Operation, type Reply } from './_contract.ts'

const committed = readFileSync(openApiFile, 'utf8')
const contract = readContract(committed)

describe('the OpenAPI description', () => {
  it('is what the schemas make (else: node scripts/openapi.ts)', () => {
    assert.equal(`${JSON.stringify(openApiDocument(), null, 2)}\n`, committed)
  })

  it('has not one problem for the linter', async () => {
    const script = fileURLToPath(new URL('../../scripts/openapi.ts', import.meta.url))
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [script, '--check'], { timeout: 120_000 })
    assert.match(stdout + stderr, /Your API description is valid/)
    assert.doesNotMatch(stdout + stderr, /warning|error/i)
  })

  it('describes what agents use with ids, paths and schemas of their own', () => {
    const { paths } = openApiDocument(agentOperations) as { paths: object }
    const here = new Set(contract.operations.map(({ operationId }) => operationId))
    assert.equal(Object.keys(paths).length, agentOperations.length)
    assert.deepEqual(new Set(agentOperations.map(({ id }) => here.has(id))).size, 1, 'all of them, or none yet')
  })

  it('names exactly the error codes that the code has', () => {
    const codes = Object.keys(errors) as ErrorCode[]
    assert.deepEqual(codes.filter((code) => statusOf(code) !== 402).toSorted(), gatewayErrorCodes.toSorted())
    assert.deepEqual(graphqlErrorCodes, errorCodes)
    const statuses = new Set(
      codes.filter((code) => code !== 'method_not_allowed').map((code) => String(statusOf(code))),
    )
    const documented = Object.keys(operationOf('buyAttestation').responses)
    assert.deepEqual(
      [...statuses].filter((status) => !documented.includes(status)),
      [],
    )
  })

  it('says the same of bodies as the types of the code do', () => {
    const passport = (document: Passport): PassportDocument => document
    type Found<T extends (...of: never[]) => Promise<unknown>> = NonNullable<Awaited<ReturnType<T>>>
    const agent = (found: Found<Agents>): Readonly<z.infer<typeof agentSchema>> => found
    const reputation = ({ by_tag: tags }: Found<Reputations>): Readonly<z.infer<typeof reputationSchema>>['by_tag'] => [
      ...tags,
    ]
    assert.ok([passport, agent, reputation].every((says) => typeof says === 'function'))
  })

  it('puts the URLs of an instance in place of its own, each once', () => {
    const urls = { verification: 'http://127.0.0.1:8082', gateway: 'https://pay.example', graphql: 'https://g.example' }
    const servers = (text: string) => readContract(text).operations.map((operation) => operation.servers.join())
    assert.deepEqual(
      new Set(servers(withUrls(committed, urls))),
      new Set([
        urls.verification,
        urls.gateway,
        urls.graphql,
        `${urls.verification},${urls.gateway}`,
        `${urls.gateway},${urls.verification},${urls.graphql}`,
      ]),
    )
  })
})

describe('the judge of answers', () => {
  const readAsset = operationOf('readAsset')
  const right: Reply = {
    status: 404,
    headers: {
      'content-type': 'application/json',
      'cache-control': 'no-store',
      'access-control-allow-origin': '*',
      'x-content-type-options': 'nosniff',
      'x-request-id': 'a',
      'x-ratelimit-limit': '60',
      'x-ratelimit-remaining': '59',
      'x-ratelimit-reset': '60',
      'ratelimit-policy': '"default";q=60;w=60',
      ratelimit: '"default";r=59;t=60',
    },
    text: '{"version":"1","error":{"code":"ASSET_NOT_FOUND","message":"No asset has this token id."}}',
  }
  const faults = (changed: Partial<Reply>) => contract.faultsOf(readAsset, { ...right, ...changed }).join()

  it('has nothing against a right answer', () => assert.equal(faults({}), ''))

  for (const [what, changed, found] of [
    ['a status that is not documented', { status: 418 }, /status 418/],
    ['a missing header', { headers: { ...right.headers, ratelimit: undefined } }, /RateLimit is missing/],
    ['a header that is no number', { headers: { ...right.headers, 'x-ratelimit-reset': 'soon' } }, /X-RateLimit-Reset/],
    ['another media type', { headers: { ...right.headers, 'content-type': 'text/html' } }, /media type text\/html/],
    ['a code of another route', { text: right.text.replace('ASSET_NOT_FOUND', 'NOT_FOUND') }, /body/],
    ['a member too many', { text: right.text.replace('{"version', '{"more":1,"version') }, /additional/],
    ['a body that is no JSON', { text: '<html>' }, /no JSON/],
    ['a stack trace', { text: `${right.text.slice(0, -3)}\\n    at f (a.ts:1)"}}` }, /leaks/],
    ['a body where none belongs', { status: 304 }, /a body where none is documented/],
  ] as const)
    it(`finds ${what}`, () => assert.match(faults(changed), found))
})

function operationOf(id: string): Operation {
  const found = contract.operations.find(({ operationId }) => operationId === id)
  if (found === undefined) throw new Error(`There is no operation ${id}.`)
  return found
}
