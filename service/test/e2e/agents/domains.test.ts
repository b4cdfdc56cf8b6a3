/** «Endpoint Domain Verification» of the agents' registration files (ERC-8004), against a registry on a local chain. */
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { checksumAddress } from '@touchstone/verdict'
import { dataUri, startAgents } from '../../support/agents/registries.ts'

const world = await startAgents()
after(() => world.end())

describe('the domains of an agent', () => {
  const registryOf = () => `eip155:84532:${checksumAddress(world.identity)}`
  const fileOf = (agentId: bigint, endpoints: readonly string[], registrations?: object[]) => ({
    name: 'remote',
    services: endpoints.map((endpoint) => ({ name: 'web', endpoint })),
    registrations: registrations ?? [{ agentId: Number(agentId), agentRegistry: registryOf() }],
  })
  /** Files by their URL; what was asked for is kept. */
  function remoteOf(files: Readonly<Record<string, object>>) {
    const asked: string[] = []
    const text = async (url: string) => {
      asked.push(url)
      return files[url] === undefined ? null : JSON.stringify(files[url])
    }
    return { asked, text }
  }
  const wellKnown = (host: string) => `https://${host}/.well-known/agent-registration.json`

  it('are not checked unless the operator switches it on', async () => {
    const id = await world.register('https://agent.example/file.json')
    const { body } = await world.get(`/api/agents/${id}`)
    assert.equal(body.domain_verified, null)
    assert.deepEqual(Object.keys(body.untrusted), ['_warning', 'agent_uri'])
  })

  it('are verified when each names the agent, and not when one does not', async () => {
    const id = await world.register('https://agent.example/file.json')
    const endpoints = ['https://agent.example/mcp', 'https://other.example/a2a', 'agent.eth']
    const files = {
      'https://agent.example/file.json': fileOf(id, endpoints),
      [wellKnown('other.example')]: fileOf(id, []),
    }
    const remote = remoteOf(files)
    const { body } = await world.host({ remote })(`/api/agents/${id}`)
    assert.equal(body.domain_verified, true)
    assert.equal(body.untrusted.name, 'remote')
    assert.deepEqual(remote.asked, ['https://agent.example/file.json', wellKnown('other.example')])
    const without = remoteOf({ 'https://agent.example/file.json': fileOf(id, endpoints) })
    assert.equal((await world.host({ remote: without })(`/api/agents/${id}`)).body.domain_verified, false)
  })

  it('are not verified by a file that names another agent, or by a link to the file of another agent', async () => {
    const id = await world.register('https://agent.example/file.json')
    const others = remoteOf({ 'https://agent.example/file.json': fileOf(0n, ['https://agent.example/mcp']) })
    assert.equal((await world.host({ remote: others })(`/api/agents/${id}`)).body.domain_verified, false)
    const elsewhere = fileOf(
      id,
      ['https://agent.example/mcp'],
      [{ agentId: Number(id), agentRegistry: 'eip155:1:0x0' }],
    )
    const remote = remoteOf({ 'https://agent.example/file.json': elsewhere })
    assert.equal((await world.host({ remote })(`/api/agents/${id}`)).body.domain_verified, false)
  })

  it('are not all asked when there are many', async () => {
    const endpoints = Array.from({ length: 20 }, (_, index) => `https://h${index}.example/`)
    const id = await world.register(dataUri(fileOf(0n, endpoints)))
    const remote = remoteOf({})
    assert.equal((await world.host({ remote })(`/api/agents/${id}`)).body.domain_verified, false)
    assert.deepEqual(remote.asked, [])
  })

  it('stay unknown when the file cannot be fetched', async () => {
    const id = await world.register('https://agent.example/gone.json')
    const { status, body } = await world.host({ remote: remoteOf({}) })(`/api/agents/${id}`)
    assert.deepEqual([status, body.domain_verified], [200, null])
  })
})
