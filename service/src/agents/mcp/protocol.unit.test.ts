import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { Ajv } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { identityAt, mcpDocuments } from './protocol.ts'

const schemaOf = (name: string) =>
  JSON.parse(readFileSync(new URL(`../../../test/data/mcp/${name}`, import.meta.url), 'utf8')) as Record<
    string,
    unknown
  >

const bases = ['https://verify.example.com', 'http://127.0.0.1:8080', 'http://localhost:8080', 'http://[::1]:8080']

function documentAt(baseUrl: string, path: string): Record<string, unknown> {
  const document = mcpDocuments(identityAt(baseUrl, '0.1.0', 'Example')).get(path)
  return JSON.parse(new TextDecoder().decode(document?.bytes)) as Record<string, unknown>
}

describe('/.well-known/mcp.json', () => {
  it("fits the registry's schema, wherever the service is reached", () => {
    const valid = formats.default(new Ajv({ strict: false })).compile(schemaOf('mcp-server.schema.2025-12-11.json'))
    for (const base of bases) {
      const document = documentAt(base, '/.well-known/mcp.json')
      assert.ok(valid(document), JSON.stringify(valid.errors))
      assert.deepEqual(document['remotes'], [{ type: 'streamable-http', url: `${base}/mcp` }])
    }
    assert.equal(
      documentAt('https://verify.example.com', '/.well-known/mcp.json')['name'],
      'com.example.verify/touchstone',
    )
    assert.equal(
      valid({ ...documentAt(bases[0] ?? '', '/.well-known/mcp.json'), version: '^1.0.0', name: 'no-slash' }),
      false,
    )
  })
})

describe('/mcp/server-card', () => {
  it('fits the schema of server cards, and names no tool', () => {
    const ajv = formats.default(new Ajv2020({ strict: false }))
    const valid = ajv
      .addSchema(schemaOf('mcp-server-card.experimental.schema.json'), 'card')
      .compile({ $ref: 'card#/$defs/ServerCard' })
    for (const base of bases) {
      const card = documentAt(base, '/mcp/server-card')
      assert.ok(valid(card), JSON.stringify(valid.errors))
      assert.doesNotMatch(JSON.stringify(card), /verify_asset/)
    }
    assert.equal(valid({ ...documentAt(bases[0] ?? '', '/mcp/server-card'), $schema: 'https://example.com' }), false)
  })
})
