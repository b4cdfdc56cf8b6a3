import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Hono } from 'hono'
import { ownAgentAt } from '../../../../test/support/agents/a2a.ts'
import { createLog } from '../../../lib/log.ts'
import type { Signer } from '../../../passport/signing/signer.ts'
import { createRequestHelpers, type Env } from '../request.ts'
import { agentRoutes } from './agents.ts'
import { documents } from './well-known.ts'

const unused = () => assert.fail('not used here')
const seconds = (iso: string) => new Date(iso).toUTCString()

describe('the agent card', () => {
  it('is kept no longer than the keys that prove it, and has the time of its last change', async ({ mock }) => {
    mock.timers.enable({ apis: ['Date'], now: Date.parse('2026-11-27T10:00:00Z') })
    let signer = signerOf('first')
    const app = new Hono<Env>()
    const helpers = createRequestHelpers({ clientKey: unused, log: createLog(() => {}, 'silent') })
    const ownAgent = ownAgentAt('https://verify.example')
    agentRoutes(app, helpers, { ownAgent, agents: unused, reputations: unused, issuer: { signerFor: () => signer } })
    const read = async () => {
      const { headers } = await app.request('/.well-known/agent-card.json')
      assert.equal(headers.get('cache-control'), documents['/.well-known/did.json']?.cache)
      return [headers.get('last-modified'), headers.get('etag')]
    }
    const [changed, etag] = await read()
    assert.equal(changed, seconds('2026-11-27T10:00:00Z'))
    mock.timers.setTime(Date.parse('2026-11-27T11:00:00Z'))
    signer = signerOf('first')
    assert.deepEqual(await read(), [changed, etag])
    signer = signerOf('second')
    const [changedLater, otherEtag] = await read()
    assert.equal(changedLater, seconds('2026-11-27T11:00:00Z'))
    assert.notEqual(otherEtag, etag)
  })

  it('is 304 for a time at or after its last change, unless an ETag is sent too (RFC 9110 §13.1.3)', async ({
    mock,
  }) => {
    mock.timers.enable({ apis: ['Date'], now: Date.parse('2026-11-27T10:00:00.900Z') })
    const app = new Hono<Env>()
    const helpers = createRequestHelpers({ clientKey: unused, log: createLog(() => {}, 'silent') })
    agentRoutes(app, helpers, {
      ownAgent: ownAgentAt('https://verify.example'),
      agents: unused,
      reputations: unused,
    })
    const status = async (headers: Record<string, string>, method = 'GET') =>
      (await app.request('/.well-known/agent-card.json', { method, headers })).status
    const etag = (await app.request('/.well-known/agent-card.json')).headers.get('etag') ?? ''
    const [before, at, later] = ['09:59:59', '10:00:00', '11:00:00'].map((time) => seconds(`2026-11-27T${time}Z`))
    for (const [since, expected] of [
      [before, 200],
      [at, 304],
      [later, 304],
      ['Friday, 27-Nov-26 10:00:00 GMT', 304],
      ['2026-11-27T10:00:00Z', 200],
      ['soon GMT', 200],
    ] as const)
      assert.equal(await status({ 'If-Modified-Since': since ?? '' }), expected, since)
    assert.equal(await status({ 'If-Modified-Since': at ?? '' }, 'HEAD'), 304)
    assert.equal(await status({ 'If-Modified-Since': at ?? '', 'If-None-Match': '"other"' }), 200)
    assert.equal(await status({ 'If-Modified-Since': before ?? '', 'If-None-Match': etag }), 304)
  })
})

function signerOf(signature: string): Signer {
  return { signDocument: () => Promise.resolve({ protected: '', signature }) } as Partial<Signer> as Signer
}
