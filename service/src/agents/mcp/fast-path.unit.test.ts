import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { testTools } from '../../../test/support/agents/assets.ts'
import { envelope, modernHeaders } from '../../../test/support/agents/mcp.ts'
import { acceptsBoth, createFastPath, recognise } from './fast-path.ts'
import { identityAt } from './protocol.ts'
import { createSdkFetch } from './server.ts'
import { toolNames, type ToolAnswer } from '../tools/tools.ts'

type Members = Record<string, unknown>
type Asked = { readonly headers: Record<string, string>; readonly body: Members }

const { tools, reads } = testTools()
const sdk = createSdkFetch(tools, identityAt('https://verify.example.com', '0.1.0', 'Example'))
const fast = await createFastPath(tools, sdk)

/** Node's parser lower-cases names; the SDK's leg is given what the listener gives it. */
async function bySdk({ headers, body }: Asked): Promise<{ status: number; json: unknown }> {
  const sent = { 'content-type': 'application/json', ...headers }
  if (acceptsBoth(headers['accept'])) Object.assign(sent, { accept: 'application/json, text/event-stream' })
  const request = new Request('http://localhost/mcp', { method: 'POST', headers: sent, body: JSON.stringify(body) })
  const response = await sdk(request, { parsedBody: body })
  const text = await response.text()
  return { status: response.status, json: text === '' ? undefined : (JSON.parse(text) as unknown) }
}

const lowerCased = (headers: Record<string, string>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

const tokenIds = fc.oneof(
  fc.integer({ min: 0, max: 12 }).map(String),
  fc.constantFrom('00042', '7', '9'.repeat(78), '9'.repeat(79), String(2n ** 256n), '0x1', '', '-1'),
)
const capabilities = fc.constantFrom<unknown>(
  {},
  { elicitation: {} },
  { sampling: { tools: {} }, roots: { listChanged: true } },
  { extensions: { 'io.example/ui': { types: ['a'] } } },
  { sampling: 5 },
  { roots: { listChanged: 'yes' } },
  [],
  null,
)
const metas = fc.record(
  {
    progressToken: fc.constantFrom<unknown>('p', 1, 1.5, null, {}),
    'com.example/trace': fc.jsonValue({ maxDepth: 1 }),
    'io.modelcontextprotocol/related-task': fc.constantFrom<unknown>({ taskId: 't' }, 5),
    'io.modelcontextprotocol/logLevel': fc.constantFrom<unknown>('info', 'loud'),
    traceparent: fc.constantFrom<unknown>('00-1-2-01', 3),
  },
  { requiredKeys: [] },
)
const ids = fc.oneof(fc.integer(), fc.string(), fc.constantFrom<unknown>(null, 1.5, -0, 2 ** 60, true, 'ünï"\u2028'))
const args = fc.oneof(
  { weight: 4, arbitrary: fc.record({ token_id: tokenIds }) },
  {
    weight: 2,
    arbitrary: fc.record({ token_id: tokenIds, include_untrusted: fc.constantFrom<unknown>(true, false, 'x') }),
  },
  fc.constantFrom<unknown>(undefined, null, {}, [], { token_id: 4 }, { tokenId: '4' }, { token_id: '4', more: 1 }),
)
const methods = fc.constantFrom(
  'tools/call',
  'tools/call',
  'tools/call',
  'tools/list',
  'server/discover',
  'ping',
  'prompts/list',
  'x',
)
const names = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom<string>(...toolNames) },
  fc.constantFrom('nope', 'constructor'),
)

/** Null `often` times as often as not. */
const rarely = <T>(arbitrary: fc.Arbitrary<T>, often: number) =>
  fc.oneof({ weight: often, arbitrary: fc.constant(null) }, { weight: 1, arbitrary })

/** Mostly plain requests, with one thing or another about them wrong or rare. */
const requests: fc.Arbitrary<Asked> = fc
  .record({
    modern: fc.boolean(),
    id: fc.oneof({ weight: 4, arbitrary: fc.integer() }, ids),
    method: methods,
    name: names,
    args,
    meta: rarely(metas, 2),
    capabilities: fc.oneof({ weight: 4, arbitrary: fc.constant<unknown>({}) }, capabilities),
    clientInfo: fc.constantFrom<unknown>({ name: 'a', version: '1' }, undefined, undefined, { name: 1 }),
    params: rarely(
      fc.dictionary(
        fc.constantFrom('cursor', 'task', 'requestState', 'inputResponses', 'foo'),
        fc.constantFrom<unknown>('x', {}, 5),
      ),
      8,
    ),
    body: rarely(
      fc.constantFrom<Members>({ jsonrpc: '1.0' }, { extra: 1 }, { params: [] }, { params: null }, { method: 5 }),
      10,
    ),
    headers: rarely(
      fc.dictionary(
        fc.constantFrom('mcp-protocol-version', 'mcp-method', 'mcp-name', 'accept'),
        fc.constantFrom(
          '2026-07-28',
          '2025-11-25',
          '2024-11-05',
          'check_flagged',
          'tools/list',
          'text/event-stream',
          'application/json',
          '=?base64?dmVyaWZ5X2Fzc2V0?=',
        ),
      ),
      6,
    ),
  })
  .map((made): Asked => {
    const call =
      made.method === 'tools/call' ? { name: made.name, ...(made.args !== undefined && { arguments: made.args }) } : {}
    const claim = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': made.capabilities,
      ...(made.clientInfo !== undefined && { 'io.modelcontextprotocol/clientInfo': made.clientInfo }),
    }
    const meta = made.modern ? { _meta: { ...made.meta, ...claim } } : made.meta !== null ? { _meta: made.meta } : {}
    const params = { ...meta, ...call, ...made.params }
    const headers = made.modern ? lowerCased(modernHeaders(made.method, call)) : {}
    return {
      headers: { accept: '*/*', ...headers, ...made.headers },
      body: {
        jsonrpc: '2.0',
        id: made.id,
        method: made.method,
        ...(Object.keys(params).length > 0 && { params }),
        ...made.body,
      },
    }
  })

describe('the fast path of MCP', () => {
  it('answers every plain request exactly as the SDK does', async () => {
    const taken = { modern: 0, legacy: 0 }
    await fc.assert(
      fc.asyncProperty(requests, async (asked) => {
        const plain = recognise(asked.headers, asked.body)
        if (plain === null) return
        taken[plain.era] += 1
        const answer = await bySdk(asked)
        assert.deepEqual({ status: 200, json: JSON.parse(await fast(plain)) as unknown }, answer)
      }),
      { numRuns: 800 },
    )
    assert.ok(taken.modern > 10 && taken.legacy > 10, JSON.stringify(taken))
  })

  it('takes what clients usually send', () => {
    const call = { name: 'verify_asset', arguments: { token_id: '4' } }
    const capabilities = { roots: { listChanged: true }, sampling: {}, elicitation: { form: {} } }
    const meta = { ...envelope, 'io.modelcontextprotocol/clientCapabilities': capabilities, progressToken: 3 }
    const modern = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { ...call, _meta: meta } }
    assert.equal(recognise(lowerCased(modernHeaders('tools/call', call)), modern)?.era, 'modern')
    const legacy = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { ...call, _meta: { progressToken: 3 } } }
    for (const version of ['2025-11-25', '2025-06-18', '2025-03-26'])
      assert.equal(
        recognise({ accept: 'application/json, text/event-stream', 'mcp-protocol-version': version }, legacy)?.era,
        'legacy',
      )
    assert.equal(recognise({}, { jsonrpc: '2.0', id: 'a', method: 'ping' })?.method, 'ping')
  })

  it('leaves all other requests to the SDK', () => {
    const legacy = (body: Members) => recognise({}, { jsonrpc: '2.0', id: 1, ...body })
    const call = { name: 'check_flagged', arguments: { token_id: '4' } }
    assert.ok(legacy({ method: 'tools/call', params: call }))
    for (const body of [
      { method: 'initialize', params: {} },
      { method: 'notifications/initialized', id: undefined },
      { method: 'tools/list', params: { cursor: 'x' } },
      { method: 'tools/call', params: { ...call, task: {} } },
      { method: 'tools/call', params: { ...call, arguments: { tokenId: '4' } } },
      { method: 'tools/call', params: { ...call, name: 'other' } },
      { method: 'ping', params: { _meta: 5 } },
    ])
      assert.equal(legacy(body), null, JSON.stringify(body))
    assert.equal(recognise({}, [{ jsonrpc: '2.0', id: 1, method: 'ping' }]), null)
    const modern = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { ...call, _meta: envelope } }
    const headers = lowerCased(modernHeaders('tools/call', call))
    assert.ok(recognise(headers, modern))
    for (const name of ['mcp-name', 'mcp-method', 'mcp-protocol-version'])
      assert.equal(recognise({ ...headers, [name]: 'verify_asset' }, modern), null, name)
  })

  it('keeps no history, because many long ones would fill the memory', async () => {
    const structured: Members = { event_count: 1 }
    const answer = { ok: true, structured } as unknown as ToolAnswer
    const own = await createFastPath({ ...tools, get_lifecycle_history: async () => answer }, sdk)
    const request = { id: 1, era: 'legacy', method: 'tools/call', tool: 'get_lifecycle_history', args: {} } as const
    assert.match(await own(request), /"structuredContent":\{"event_count":1\}/)
    structured['event_count'] = 2
    assert.match(await own(request), /"structuredContent":\{"event_count":2\}/)
  })

  it('runs the tool once', async () => {
    const before = reads()
    const plain = recognise(
      {},
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'check_flagged', arguments: { token_id: '4' } } },
    )
    assert.ok(plain)
    await fast(plain)
    assert.equal(reads(), before + 1)
  })
})
