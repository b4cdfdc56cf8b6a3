import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { testTools } from '../../../test/support/agents/assets.ts'
import { serve } from '../../../test/support/http.ts'
import { identityAt } from './protocol.ts'
import { createSdkFetch, createSdkHandler } from './server.ts'

describe('MCP by the SDK', () => {
  it('answers 504 to a call that its own batch cancels, which the SDK never answers', async () => {
    const { tools, log, lines } = testTools()
    const handler = createSdkHandler(createSdkFetch(tools, identityAt('http://127.0.0.1', '0.1.0', 'Example')), log, 50)
    const call = { name: 'check_flagged', arguments: { token_id: '4' } }
    const batch = [
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: call },
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } },
    ]
    const { url, close } = await serve((request, response) => void handler(request, response, batch))
    const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }
    const response = await fetch(url, { method: 'POST', headers })
    assert.deepEqual(
      [response.status, ((await response.json()) as { error: { code: number } }).error.code],
      [504, -32603],
    )
    assert.ok(lines.some((line) => line.includes('"status":504')))
    await close()
  })
})
