/** MCP at the started service's own address (spec §4.2, §4.3): the endpoint, its documents, its budget, its page origins. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { toolNames } from '../../../src/agents/tools/tools.ts'
import { mcpClients } from '../../support/agents/mcp-clients.ts'
import { startWorld, type World } from '../../support/world.ts'

const list = { method: 'POST', body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }) }
const json = { 'Content-Type': 'application/json' }

describe('MCP at {base_url}', () => {
  let world: World
  let id: string
  before(async () => {
    world = await startWorld({ env: { RATE_LIMIT_MCP: '0' } })
    id = String(await world.mint({ name: 'A shoe' }))
  })
  after(() => world.end())

  for (const { client, connect } of mcpClients)
    it(`answers the official client (${client})`, async () => {
      await using session = await connect(`${world.url}/mcp`)
      assert.deepEqual(
        (await session.tools()).map(({ name }) => name),
        toolNames,
      )
      const { structuredContent } = await session.call('verify_asset', { token_id: id })
      assert.deepEqual(structuredContent, await (await world.get(`/api/asset/${id}`)).json())
    })

  it('rejects a page of another site', async () => {
    const ask = (headers: Record<string, string>) => world.get('/mcp', { ...list, headers: { ...json, ...headers } })
    assert.equal((await ask({})).status, 200)
    assert.equal((await ask({ Origin: world.url })).status, 200)
    assert.equal((await ask({ Origin: 'https://evil.example' })).status, 403)
  })

  it('publishes its address in the descriptor and the server card', async () => {
    for (const [path, type] of [
      ['/.well-known/mcp.json', 'application/json'],
      ['/mcp/server-card', 'application/mcp-server-card+json'],
    ] as const) {
      const response = await world.get(path)
      assert.deepEqual(
        [response.status, response.headers.get('content-type'), response.headers.get('access-control-allow-origin')],
        [200, type, '*'],
      )
      const { remotes, version } = (await response.json()) as { remotes: { url: string }[]; version: string }
      const manifest = new URL('../../../package.json', import.meta.url)
      assert.equal(version, (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version)
      assert.equal(remotes[0]?.url, `${world.url}/mcp`)
      const answer = await fetch(remotes[0].url, { ...list, headers: json })
      assert.equal(answer.status, 200)
    }
  })
})
