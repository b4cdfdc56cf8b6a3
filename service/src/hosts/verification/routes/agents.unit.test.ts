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
})

function signerOf(signature: string): Signer {
  return { signDocument: () => Promise.resolve({ protected: '', signature }) } as Partial<Signer> as Signer
}
