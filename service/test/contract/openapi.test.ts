/** The OpenAPI description (spec §9): clean to the linter, equal to the lists of the code, and a strict check of responses. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { findRoute } from '../../src/agents/a2a/bindings.ts'
import { a2aRestPath } from '../../src/agents/a2a/card.ts'
import { toJsonSchema, verdictSchema } from '../../src/agents/tools/schemas.ts'
import { routeNames } from '../../src/app/route-names.ts'
import { readOpenApi, withUrls } from '../../src/discovery/openapi.ts'
import { bodyFailures, keyFailures } from '../../src/hosts/graphql/host.ts'
import { csvOf } from '../../src/hosts/verification/lookup/table.ts'
import { documents } from '../../src/hosts/verification/routes/well-known.ts'
import { errorRows } from '../../src/lib/error-codes.ts'
import { readContract, type Operation } from '../support/contract.ts'
import type { Reply } from '../support/http.ts'

type Json = Readonly<Record<string, any>> // oxlint-disable-line typescript/no-explicit-any

const text = readOpenApi()
const { components } = JSON.parse(text) as { components: { schemas: Json } }
const contract = readContract(text)

describe('the OpenAPI description', () => {
  it('has not one problem for the linter', async () => {
    const script = fileURLToPath(new URL('../../../scripts/openapi.ts', import.meta.url))
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [script], { timeout: 240_000 }).catch(
      (failed: { stdout: string; stderr: string }) => failed,
    )
    const printed = stdout + stderr
    assert.ok(/Your API description is valid/.test(printed) && !/warning|error/i.test(printed), printed)
  })

  it('describes every route of every host, and no other', () => {
    const hosts = { verification: 8080, gateway: 8081, graphql: 8082 }
    for (const [host, port] of Object.entries(hosts)) {
      const paths = contract.operations
        .filter(({ servers }) => servers.includes(`http://127.0.0.1:${port}`))
        .map(({ path }) => path)
      const prefixes = routeNames[host as keyof typeof hosts].map(([prefix]) => prefix)
      const isBelow = (path: string, prefix: string) =>
        prefix !== '/' && prefix.endsWith('/') ? path.startsWith(prefix) : path === prefix
      assert.deepEqual(
        paths.filter((path) => !prefixes.some((prefix) => isBelow(path, prefix))),
        [],
        `routes of ${host} in openapi.yaml that app/route-names.ts lacks`,
      )
      assert.deepEqual(
        prefixes.filter((prefix) => !paths.some((path) => isBelow(path, prefix))),
        undescribed[host as keyof typeof hosts],
        `routes of ${host} in app/route-names.ts that openapi.yaml lacks, but for those of «undescribed» below`,
      )
    }
  })

  it('names exactly the error codes that the code has', () => {
    const gateway = errorRows.flatMap((row) => row.gateway ?? [])
    const graphql = errorRows.flatMap((row) => row.graphql ?? [])
    assert.deepEqual(
      components.schemas['GatewayError'].properties.error.enum.toSorted(),
      gateway.flatMap(({ error, status }) => (status === 402 ? [] : [error])).toSorted(),
      '`enum` of GatewayError in openapi.yaml has the codes of lib/error-codes.ts',
    )
    const { errors } = components.schemas['GraphqlAnswer'].properties
    assert.deepEqual(
      errors.items.properties.extensions.properties.code.enum.toSorted(),
      [...new Set(graphql)].toSorted(),
      '`enum` of GraphqlAnswer in openapi.yaml has the codes of lib/error-codes.ts',
    )
    const codesIn = (schema: Json): readonly string[] => schema['properties']?.error?.properties?.code?.enum ?? []
    const coded = Object.values<Json>(components.schemas).flatMap(codesIn)
    const keyless = errorRows.filter(({ rest }) => rest !== undefined)
    // Only routes with the general error body (spec §7) answer with these, and that body has no code.
    const general = ['BODY_TOO_SLOW', 'DATABASE_UNAVAILABLE', 'HISTORY_UNAVAILABLE', 'KEY_STORE_UNAVAILABLE']
    assert.deepEqual(
      [...new Set([...coded, ...general])].toSorted(),
      keyless.map(({ name }) => name).toSorted(),
      'the codes with `rest` of lib/error-codes.ts are each in a schema of openapi.yaml with `error.code`, or in `general` of this test',
    )
    for (const [id, schema] of [
      ['readAsset', 'KeylessError'],
      ['readAgent', 'AgentError'],
    ] as const) {
      const codes = codesIn(components.schemas[schema])
      assert.equal(new Set(codes).size, codes.length, schema)
      const statuses = Object.keys(operationOf(id).responses)
      const missing = keyless.filter(({ name, rest }) => codes.includes(name) && !statuses.includes(String(rest)))
      assert.deepEqual(
        missing.map(({ name, rest }) => `${rest} ${name}`),
        [],
        `${schema} has these codes, and ${id} no response with their status. A code that another route alone answers has a schema of its own, such as CertificateError`,
      )
    }
    const documented = Object.keys(operationOf('buyAttestation').responses)
    assert.deepEqual(
      gateway.filter(({ error, status }) => error !== 'method_not_allowed' && !documented.includes(String(status))),
      [],
      'buyAttestation of openapi.yaml has the status of each code',
    )
  })

  it('describes every refusal of a key, of a body and of a request of MCP', () => {
    const ofKeys = Object.values(keyFailures).map(({ error: [status] }) => status)
    const ofBodies = Object.values(bodyFailures).map(([status]) => status)
    const ofMcp = errorRows.flatMap(({ mcp }) => (mcp === undefined || mcp[1] === 405 ? [] : [mcp[1]]))
    for (const [id, statuses] of [
      ['runGraphql', [...ofKeys, ...ofBodies]],
      ['queryGraphql', ofKeys],
      ['callMcp', ofMcp],
      ['readPayment', [500]],
    ] as const) {
      const described = Object.keys(operationOf(id).responses)
      const missing = statuses.filter((status) => !described.includes(String(status)))
      assert.deepEqual(missing, [], id)
    }
  })

  it('describes every document that is the same for all items', () => {
    const paths = new Set(contract.operations.map(({ path }) => path))
    assert.deepEqual(
      Object.keys(documents).filter((path) => !paths.has(path)),
      [],
    )
  })

  it('names Retry-After on every 429', () => {
    const without = contract.operations.filter(
      ({ responses }) => responses['429'] !== undefined && responses['429'].headers['Retry-After'] === undefined,
    )
    assert.deepEqual(
      without.map(({ operationId }) => operationId),
      [],
    )
  })

  it('describes a verdict as the tools of MCP do', () => {
    const { $schema: _dialect, ...ofTool } = toJsonSchema(verdictSchema, 'output')
    assert.deepEqual(withoutTexts(inlined(components.schemas['Verdict'])), withoutTexts(ofTool))
  })

  it('gives examples of a verdict that fit it', () => {
    const examples = components.schemas['Verdict'].examples as unknown[]
    assert.deepEqual(examples, toJsonSchema(verdictSchema, 'output')['examples'])
    for (const example of examples) verdictSchema.parse(example)
  })

  it('gives an example of every media type, which fits it', () => {
    assert.deepEqual(
      contract.operations.flatMap((operation) => contract.exampleFaults(operation)),
      [],
    )
  })

  it('shows a list of many with the columns that it has', () => {
    const [example = ''] = JSON.parse(text).paths['/bulk'].post.responses['200'].content['text/csv; charset=utf-8']
      .schema.examples as string[]
    const cellsOf = (line = '') => line.split(',').length
    const [columns = '', row] = example.split('\r\n')
    assert.equal(`${columns}\r\n`, csvOf('', [], { block: null, checkedAt: 0 }))
    assert.equal(cellsOf(row), cellsOf(columns))
  })

  it('describes every route of A2A over HTTP that has a success', () => {
    const described = contract.operations.flatMap(({ method, path }) =>
      path.startsWith(a2aRestPath) ? [`${method} ${path.slice(a2aRestPath.length).replace('{taskId}', 'x')}`] : [],
    )
    const paths = ['/message:send', '/message:stream', '/tasks', '/tasks/x', '/tasks/x:cancel', '/tasks/x:subscribe']
    assert.deepEqual(
      described.toSorted(),
      paths
        .flatMap((path) => Object.keys(findRoute(path)?.operations ?? {}).map((method) => `${method} ${path}`))
        .toSorted(),
    )
  })

  it('describes what a generated client has to send', () => {
    for (const { operationId, path, parameters } of contract.operations) {
      const names = parameters.map(({ name }) => name)
      if (names.includes('picc')) assert.ok(names.includes('b'), `${operationId} has the hint of the batch`)
      const version = parameters.find(({ name }) => name === 'A2A-Version')
      assert.equal(version?.required, path.startsWith('/a2a') ? true : undefined, operationId)
    }
    const queryOf = (id: string) => operationOf(id).parameters.filter((parameter) => parameter.in === 'query')
    const filters = 'contextId includeArtifacts historyLength pageSize pageToken status statusTimestampAfter'
    assert.deepEqual(
      queryOf('listTasks').map(({ name }) => name),
      filters.split(' '),
    )
    assert.deepEqual(
      queryOf('getTask').map(({ name }) => name),
      ['historyLength'],
    )
    assert.deepEqual(
      queryOf('readReputation').map(({ name, schema }) => [name, (schema as { type?: string }).type]),
      [
        ['tag1', 'array'],
        ['tag2', 'string'],
        ['reviewers', 'array'],
      ],
    )
  })

  it('has no route, tag or URL of the gateway where an instance has none', () => {
    const urls = { verification: 'https://v.example', gateway: null, graphql: 'https://g.example' }
    const description = withUrls(text, urls)
    assert.doesNotMatch(description, /127\.0\.0\.1:808/)
    const { operations } = readContract(description)
    const servers = new Set(operations.map((operation) => operation.servers.join()))
    assert.deepEqual(
      servers,
      new Set(['https://v.example', 'https://g.example', 'https://v.example,https://g.example']),
    )
    const left = contract.operations.filter((operation) => operation.servers.join() !== 'http://127.0.0.1:8081')
    assert.deepEqual(
      operations.map(({ method, path }) => `${method} ${path}`),
      left.map(({ method, path }) => `${method} ${path}`),
    )
  })

  it('puts the URLs of an instance in place of its own, each once', () => {
    const urls = { verification: 'http://127.0.0.1:8082', gateway: 'https://pay.example', graphql: 'https://g.example' }
    const servers = readContract(withUrls(text, urls)).operations.map((operation) => operation.servers.join())
    assert.deepEqual(
      new Set(servers),
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

/** Files of pages, the pages of the documentation, and the packages that a service may offer. */
const undescribed = {
  verification: ['/tap/', '/assets/', '/docs', '/docs/', '/packages/'],
  gateway: [],
  graphql: ['/playground/'],
}

/** Replaces references by what they name; members beside a reference overrule it. */
function inlined(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(inlined)
  if (typeof node !== 'object' || node === null) return node
  const { $ref, ...own } = node as Json
  const entries = Object.fromEntries(Object.entries(own).map(([name, value]) => [name, inlined(value)]))
  if (typeof $ref !== 'string') return entries
  return { ...(inlined(components.schemas[$ref.replace('#/components/schemas/', '')]) as Json), ...entries }
}

/** Leaves out what is written for people. */
function withoutTexts(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(withoutTexts)
  if (typeof node !== 'object' || node === null) return node
  const { examples: _examples, description, ...rest } = node as Json
  const isText = typeof description === 'string'
  return Object.fromEntries(
    Object.entries({ ...rest, ...(!isText && description && { description }) }).map(([name, value]) => [
      name,
      withoutTexts(value),
    ]),
  )
}

describe('the check of responses', () => {
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

  it('finds no fault in a right response', () => assert.equal(faults({}), ''))

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
