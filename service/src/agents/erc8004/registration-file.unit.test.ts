import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { hostOf, maxRegistrationBytes, parseAgentFile, decodeDataUri } from './registration-file.ts'

const registry = 'eip155:84532:0x5FbDB2315678afecb367f032d93F642f64180aa3'

describe('a data: URI', () => {
  it('holds its text in base64 or percent encoding', () => {
    assert.equal(decodeDataUri(`data:application/json;base64,${Buffer.from('{"é":1}').toString('base64')}`), '{"é":1}')
    assert.equal(decodeDataUri('data:application/json;charset=utf-8,%7B%22a%22:1%7D'), '{"a":1}')
    assert.equal(decodeDataUri('data:,{}'), '{}')
  })

  for (const uri of [
    'https://agent.example/file.json',
    'ipfs://x',
    'data:text/html,<p>',
    'data:image/png;base64,AAAA',
    'data:application/json,%zz',
    `data:${';'.repeat(300)},{}`,
    `data:,${'x'.repeat(maxRegistrationBytes + 1)}`,
    '',
  ])
    it(`is not ${JSON.stringify(uri.slice(0, 40))}`, () => assert.equal(decodeDataUri(uri), null))
})

describe('a registration file', () => {
  it('has its fields cleaned, and no others', () => {
    const file = parseAgentFile(
      JSON.stringify({
        type: 'x',
        name: 'Agent\u202e\u001b[31m',
        description: 'one\ntwo',
        image: 'javascript:alert(1)',
        services: [
          { name: 'A2A', endpoint: 'https://agent.example/card.json', version: '1.0', skills: ['x'] },
          { name: '', endpoint: 'https://agent.example' },
          'no service',
        ],
        x402Support: true,
        active: 'yes',
        supportedTrust: ['reputation', 7, '\u200b'],
        surprise: 'x',
      }),
    )
    assert.deepEqual(file?.text, {
      name: 'Agent',
      description: 'one\ntwo',
      services: [{ name: 'A2A', endpoint: 'https://agent.example/card.json', version: '1.0' }],
      x402_support: true,
      supported_trust: ['reputation'],
    })
  })

  it('is null for text that is not an object', () => {
    for (const text of ['', '{', '[]', 'null', '"x"', '7']) assert.equal(parseAgentFile(text), null)
  })

  it('is bounded in its lists', () => {
    const many = Array.from({ length: 500 }, (_, index) => ({ name: 'web', endpoint: `https://h${index}.example/` }))
    const file = parseAgentFile(
      JSON.stringify({ services: many, supportedTrust: many.map(({ endpoint }) => endpoint) }),
    )
    assert.equal(file?.text.services?.length, 20)
    assert.equal(file?.hosts.length, 20)
    assert.equal(file?.text.supported_trust?.length, 10)
  })

  it('names an agent by its number and its registry, both', () => {
    const registrations = [
      { agentId: 7, agentRegistry: registry.toLowerCase() },
      { agentId: '8', agentRegistry: registry },
    ]
    const file = parseAgentFile(JSON.stringify({ registrations }))
    assert.equal(file?.names(7n, registry), true)
    assert.equal(file?.names(8n, registry), true)
    assert.equal(file?.names(9n, registry), false)
    assert.equal(file?.names(7n, registry.replace('84532', '1')), false)
    assert.equal(parseAgentFile('{"registrations":{}}')?.names(7n, registry), false)
    // JSON.parse makes 2^53 of this number.
    const rounded = `{"registrations":[{"agentId":9007199254740993,"agentRegistry":"${registry}"}]}`
    assert.equal(parseAgentFile(rounded)?.names(2n ** 53n, registry), false)
  })

  it('lists the hosts of https endpoints only', () => {
    assert.equal(hostOf('https://agent.example:8443/x'), 'agent.example:8443')
    for (const url of ['http://agent.example', 'agent.eth', 'mail@agent.example', 'did:web:x', ''])
      assert.equal(hostOf(url), null)
  })
})
