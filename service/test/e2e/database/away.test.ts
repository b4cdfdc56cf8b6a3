/** The database is away while the hosts serve: whoever needs it gets 503 with Retry-After, and is served again when it is back. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { generatePrivateKey } from 'viem/accounts'
import { newApiKey } from '../../../src/graphql/api-keys.ts'
import { openOwnDatabase, testDatabases } from '../../support/database/databases.ts'
import { answerAs, atPort } from '../../support/database/proxy.ts'
import { freePort } from '../../support/free-port.ts'
import { graphqlOf } from '../../support/graphql/client.ts'
import { payTo } from '../../support/payments/buyer.ts'
import { newUid, testTag } from '../../support/tap/tags.ts'
import { startWorld, type World } from '../../support/world.ts'
import { eventually } from '../../support/wait.ts'

const skip = testDatabases()[1]?.skip ?? false
const gtin = '09520001000010'

describe('while the database is away', { skip }, () => {
  let database: Awaited<ReturnType<typeof openOwnDatabase>>
  let postgres: AsyncDisposable
  let port: number
  let world: World
  let graphql: Awaited<ReturnType<typeof graphqlOf>>
  let tap: () => string
  before(async () => {
    database = await openOwnDatabase('migrated')
    port = await freePort()
    postgres = await answerAs(database.url, port)
    world = await startWorld({
      env: {
        DATABASE_URL: atPort(database.url, port),
        PAYMENT_PAY_TO: payTo,
        FACILITATOR_KEY: generatePrivateKey(),
        ATTESTATION_KEY: generatePrivateKey(),
      },
    })
    const made = await world.components.tagKeys.create({ id: 'away', demo: true })
    assert.ok(made.ok)
    const batch = world.components.tagKeys.record('away')
    assert.ok(batch)
    const uid = newUid()
    const tokenId = await world.mint()
    const tagHash = world.components.tagHash?.(uid)
    assert.ok(tagHash)
    await world.write({ kind: 'bindTag', tokenId, tagHash })
    await world.components.tags.importTag({ uid, epoch: 0, batchId: 'away', tokenId, gtin, serial: 'A-1' })
    const tag = await testTag(batch, { uid })
    tap = () => {
      const { picc, cmac } = tag.next()
      return `picc=${picc}&cmac=${cmac}`
    }
    graphql = await graphqlOf(world)
    await graphql.ask('{ __typename }')
    await postgres[Symbol.asyncDispose]()
  })
  after(async () => {
    await graphql?.close()
    await world?.end()
    await postgres?.[Symbol.asyncDispose]()
    await database?.close()
  })

  const ask = { method: 'POST', headers: { 'Content-Type': 'application/json' } }
  const rpc = (method: string, params: object) => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })

  it('every route of every host that needs it answers 503 with Retry-After, and never that something was unexpected', async () => {
    const { verification, graphql: graphs, gateway } = world.urls
    const operation = JSON.stringify({ query: '{ products(first: 1) { totalCount } }' })
    const needs: readonly [url: string, init?: RequestInit][] = [
      [`${verification}/api/verify?${tap()}`],
      [`${verification}/api/dpp/token/1?${tap()}`],
      [`${verification}/api/dpp/01/${gtin}/21/A-1?${tap()}`],
      [`${verification}/01/${gtin}/21/A-1`],
      [`${verification}/01/${gtin}/21/A-1?${tap()}`],
      [
        `${graphs}/graphql`,
        { ...ask, headers: { ...ask.headers, Authorization: `Bearer ${graphql.key}` }, body: operation },
      ],
      [
        `${graphs}/graphql`,
        { ...ask, headers: { ...ask.headers, Authorization: `Bearer ${newApiKey().text}` }, body: operation },
      ],
    ]
    const others: readonly [url: string, init?: RequestInit][] = [
      [`${verification}/api/asset/1`],
      [`${verification}/token/1`],
      [`${verification}/`],
      [`${verification}/api/metadata/0x${'ab'.repeat(32)}`],
      [`${verification}/api/status/revocation/1`],
      [`${verification}/a2a`, { ...ask, body: rpc('GetTask', { id: 'x' }) }],
      [`${gateway}/verify`, { ...ask, body: '{"assetId":"1"}' }],
      [`${gateway}/health`],
    ]
    for (const [url, init] of [...needs, ...others]) {
      const response = await fetch(url, init)
      const text = await response.text()
      const what = `${url.replace(/picc=.*/, '…')} ${response.status} ${text.slice(0, 300)}`
      assert.doesNotMatch(text, /unexpected/, what)
      assert.notEqual(response.status, 500, what)
      if (needs.some(([needed]) => needed === url)) assert.equal(response.status, 503, what)
      if (response.status === 503) assert.match(response.headers.get('retry-after') ?? '', /^\d+$/, what)
    }
    assert.ok(!world.lines.some((line) => line.includes('"code":"INTERNAL"')), world.lines.slice(-20).join('\n'))
  })

  it('and everything is answered again when it is back', async () => {
    postgres = await answerAs(database.url, port)
    const url = `${world.url}/api/verify?${tap()}`
    assert.ok(await eventually(async () => (await fetch(url)).status === 200))
  })
})
