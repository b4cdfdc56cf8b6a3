/** The GraphQL host: keys, quotas, bodies and errors (spec §5, §7, §8). */
import { openEmptyPglite } from '../../support/database/pglite.ts'
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { describe, it } from 'node:test'
import { textAsDescribed } from '../../support/contract.ts'
import { postGraphql } from '../../support/graphql/client.ts'
import { startGraphql } from '../../support/graphql/host.ts'
import { ServiceError } from '../../../src/lib/errors.ts'
import { clientAddresses } from '../../../src/http/client-ip.ts'
import { createRateLimiter } from '../../../src/http/rate-limit/limiter.ts'
import { newApiKey } from '../../../src/access/api-keys.ts'
import { keepSecret } from '../../support/evidence.ts'
import { useOpened } from '../../support/opened.ts'
import { graphqlError } from '../../../src/graphql/errors.ts'

describe('the GraphQL host', () => {
  let refuseWith: () => never = () => assert.fail()
  const database = useOpened(openEmptyPglite)
  const resolvers = [
    {
      Query: {
        transferTypedData: () => refuseWith(),
      },
      Mutation: {
        activateProduct: () => assert.fail(),
      },
    },
  ]
  const graphql = useOpened(() => startGraphql(database, { resolvers, host: { bodyTimeoutMs: 300 } }))

  const post = (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
    fetch(`${graphql.url}/graphql`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${graphql.key}`, ...headers },
      body,
    })
  const typename = JSON.stringify({ query: '{ __typename }' })
  async function codeOf(response: Response): Promise<unknown> {
    const { errors } = (await response.json()) as { errors: { message: string; extensions: { code: string } }[] }
    assert.ok((errors[0]?.message ?? '').length > 10)
    return errors[0]?.extensions.code
  }

  it('asks every request for a key and explains how to send it', async () => {
    const without = await fetch(`${graphql.url}/graphql`, { method: 'POST', body: typename })
    assert.equal(without.status, 401)
    assert.equal(without.headers.get('www-authenticate'), 'Bearer')
    assert.equal(await codeOf(without), 'UNAUTHENTICATED')
    const wrong = [`Bearer ts_live_${'a'.repeat(43)}`, 'Bearer x', 'Basic abc', graphql.key, `Bearer ${graphql.key}x`]
    for (const authorization of wrong) {
      const response = await post(typename, { Authorization: authorization })
      assert.equal(response.status, 401, authorization.slice(0, 10))
      assert.match(response.headers.get('www-authenticate') ?? '', /^Bearer error="invalid_token"/)
      assert.equal(await codeOf(response), 'UNAUTHENTICATED')
    }
    assert.equal((await fetch(`${graphql.url}/graphql?query={__typename}`)).status, 401)
  })

  it('answers queries by POST and GET, mutations by POST only', async () => {
    const answer = { data: { __typename: 'Query' }, extensions: { cost: 0, maxCost: 1000 } }
    assert.deepEqual(await (await post(typename)).json(), answer)
    const headers = { Authorization: `Bearer ${graphql.key}` }
    const get = (query: string) => fetch(`${graphql.url}/graphql?query=${encodeURIComponent(query)}`, { headers })
    const response = await get('{ __typename }')
    assert.deepEqual(await response.json(), answer)
    assert.equal(response.headers.get('cache-control'), 'no-store')
    const mutation = await get('mutation { activateProduct(input: {productId: 1}) { success } }')
    assert.deepEqual([mutation.status, mutation.headers.get('allow')], [405, 'POST'])
    await textAsDescribed('queryGraphql', mutation.clone())
    assert.equal(mutation.headers.get('content-type'), 'application/json; charset=utf-8')
    assert.equal(await codeOf(mutation), 'BAD_USER_INPUT')
    const put = await fetch(`${graphql.url}/graphql`, { method: 'PUT', headers })
    assert.deepEqual([put.status, put.headers.get('allow'), await codeOf(put)], [405, 'GET, POST', 'BAD_USER_INPUT'])
    assert.equal((await fetch(`${graphql.url}/graphql`, { method: 'HEAD', headers })).status, 405)
    const subscribed = await post(JSON.stringify({ query: 'subscription { productVerified { verifiedAt } }' }))
    assert.equal(await codeOf(subscribed), 'BAD_USER_INPUT')
  })

  it('answers in no media type that the request refuses by a weight of 0', async () => {
    const [json, own] = ['application/json', 'application/graphql-response+json']
    for (const [accept, type] of [
      [`${own};q=0, ${json}`, json],
      [`${own}; Q=0.00, */*`, json],
      [`${json};q=0, */*`, own],
      [`application/*, ${json};q=0.0`, own],
      [`${own};q=0.001, ${json};q=0`, own],
      [`${json};q=0, ${own};q=0`, null],
      [`${json};q=0, ${own};q=0, */*`, null],
      ['*/*;q=0', null],
    ] as const) {
      const answer = await post(typename, { Accept: accept })
      const found = answer.headers.get('content-type')?.split(';')[0]
      assert.deepEqual([answer.status, found], type === null ? [406, json] : [200, type], accept)
    }
    const refused = await post(typename, { Accept: `${own};q=0`, Authorization: 'Bearer x' })
    assert.deepEqual([refused.status, refused.headers.get('content-type')], [401, `${json}; charset=utf-8`])
  })

  it('opens itself to no other origin: keys do not belong in browsers', async () => {
    const preflight = await fetch(`${graphql.url}/graphql`, {
      method: 'OPTIONS',
      headers: { Origin: 'https://x.example' },
    })
    assert.deepEqual([preflight.status, preflight.headers.get('allow')], [204, 'GET, POST, OPTIONS'])
    for (const { headers } of [preflight, await post(typename, { Origin: 'https://x.example' })])
      assert.equal(headers.get('access-control-allow-origin'), null)
  })

  it('redirects to the playground, and answers 404 elsewhere', async () => {
    const root = await fetch(`${graphql.url}/`, { redirect: 'manual' })
    assert.deepEqual([root.status, root.headers.get('location')], [302, '/playground'])
    for (const path of ['/playground', '/playground/app.js'])
      assert.equal(await (await fetch(graphql.url + path)).text(), 'the playground')
    for (const path of ['/graphql/', '/playgrounds', '/api/asset/1', '//graphql']) {
      const response = await fetch(graphql.url + path)
      assert.equal(response.status, 404, path)
      assert.match(((await response.json()) as { error: string }).error, /nothing/)
    }
  })

  it('answers /health and / by GET and HEAD only', async () => {
    for (const path of ['/health', '/']) {
      const ask = (method: string) => fetch(graphql.url + path, { method, redirect: 'manual' })
      for (const method of ['POST', 'PUT', 'DELETE']) {
        const refused = await ask(method)
        assert.deepEqual([refused.status, refused.headers.get('allow')], [405, 'GET, HEAD, OPTIONS'], method + path)
        assert.match(((await refused.json()) as { error: string }).error, /GET/)
      }
      assert.equal((await ask('HEAD')).status, path === '/' ? 302 : 200)
      assert.equal((await ask('OPTIONS')).status, 204)
    }
  })

  it('refuses a body of more than 64 kB, announced or not', async () => {
    const large = JSON.stringify({ query: `{ __typename } #${'x'.repeat(66_000)}` })
    const announced = await post(large)
    assert.deepEqual([announced.status, await codeOf(announced)], [413, 'TOO_COMPLEX'])
    const chunks = new ReadableStream({
      start(controller) {
        for (let n = 0; n < 9; n += 1) controller.enqueue(new TextEncoder().encode('x'.repeat(8_000)))
        controller.close()
      },
    })
    const streamed = await fetch(`${graphql.url}/graphql`, {
      method: 'POST',
      body: chunks,
      duplex: 'half',
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${graphql.key}` },
    })
    assert.equal(streamed.status, 413)
    const exact = JSON.stringify({ query: `{ __typename } #${'x'.repeat(65_536 - 30)}` })
    assert.equal((await post(exact)).status, exact.length <= 65_536 ? 200 : 413)
  })

  it('waits for a body only so long, and lets a client go', async () => {
    const head = (length: number) =>
      `POST /graphql HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${graphql.key}\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n{`
    const { port } = new URL(graphql.url)
    const said = await new Promise<string>((resolve) => {
      let text = ''
      const socket = connect(Number(port), '127.0.0.1', () => socket.write(head(100)))
      socket.on('data', (chunk) => (text += chunk.toString())).on('close', () => resolve(text))
    })
    assert.match(said, /^HTTP\/1\.1 408 [^]*Connection: close[^]*BAD_USER_INPUT/)
    await new Promise<void>((resolve) => {
      const socket = connect(Number(port), '127.0.0.1', () => socket.write(head(50), () => void socket.destroy()))
      socket.on('close', () => resolve())
    })
    assert.equal((await post(typename)).status, 200)
  })

  it('refuses bodies that are packed, not UTF-8, or no GraphQL request', async () => {
    assert.equal((await post(typename, { 'Content-Encoding': 'gzip' })).status, 415)
    assert.equal((await post(new Uint8Array([0x7b, 0xff, 0x7d]))).status, 400)
    assert.equal((await post(typename, { 'Content-Type': 'text/plain' })).status, 415)
    assert.equal((await post(typename, { 'Content-Type': 'application/json; charset="utf-8"' })).status, 200)
    for (const body of ['', '[]', '{}', '{"query": 7}', 'null', `[${typename}]`]) {
      const response = await post(body)
      assert.deepEqual([response.status, await codeOf(response)], [400, 'BAD_USER_INPUT'], body)
    }
  })

  it('masks unexpected faults, under an id that the log has', async () => {
    refuseWith = () => {
      throw new Error('connection to 10.0.0.7 as admin:hunter2 failed')
    }
    const query = '{ transferTypedData(input: {}) { success } }'
    const { errors, headers } = await graphql.ask(query)
    const requestId = String(errors[0]?.extensions['requestId'])
    assert.equal(headers.get('x-request-id'), requestId)
    assert.equal(errors[0]?.extensions['code'], 'INTERNAL')
    assert.deepEqual(errors[0].path, ['transferTypedData'])
    assert.ok(!JSON.stringify(errors).includes('hunter2'))
    assert.ok(graphql.lines.some((line) => line.includes(requestId) && line.includes('10.0.0.7')))
    refuseWith = () => {
      throw new ServiceError('CHAIN_UNAVAILABLE', 'The chain could not be read.')
    }
    assert.deepEqual((await graphql.ask(query)).errors[0]?.extensions, { code: 'CHAIN_UNAVAILABLE' })
    refuseWith = () => {
      throw graphqlError('NOT_FOUND', 'There is no such thing.')
    }
    assert.deepEqual((await graphql.ask(query)).errors[0]?.extensions, { code: 'NOT_FOUND' })
  })

  it('lets a key without scope read see nothing', async () => {
    const { text } = await graphql.newKey(['write'])
    const lists = [
      'product(id: 1) { id }',
      'products { totalCount }',
      'transfers { totalCount }',
      'transfer(id: "1-1") { id }',
    ]
    for (const list of lists) {
      const { errors } = await graphql.ask(`{ ${list} }`, {}, text)
      assert.deepEqual(
        errors.map(({ extensions }) => extensions['code']),
        ['FORBIDDEN'],
        list,
      )
    }
  })

  it('lets a key without scope write read only', async () => {
    const { text } = await graphql.newKey(['read'])
    const { errors } = await graphql.ask('mutation { activateProduct(input: {productId: 1}) { success } }', {}, text)
    assert.equal(errors[0]?.extensions['code'], 'FORBIDDEN')
    assert.deepEqual((await graphql.ask('{ product(id: 1) { id } }', {}, text)).data, { product: null })
  })

  it('refuses a key outside its networks, and a forwarded address counts from a proxy only', async () => {
    const { text, hash } = newApiKey()
    keepSecret(text)
    await graphql.keys.create({ hash, name: 'office', scopes: ['read'], networks: ['192.0.2.0/24'] })
    await using proxied = await startGraphql(database, { host: { clientAddress: clientAddresses(['127.0.0.1']) } })
    const statuses = []
    for (const { url } of [graphql, proxied])
      for (const from of ['192.0.2.9', '192.0.3.9']) {
        const answer = await postGraphql(url, text, { query: '{ __typename }' }, { 'X-Forwarded-For': from })
        const { errors } = (await answer.json()) as { errors?: { extensions: { code: string } }[] }
        statuses.push([answer.status, errors?.[0]?.extensions.code])
      }
    const refused = [403, 'FORBIDDEN']
    assert.deepEqual(statuses, [refused, refused, [200, undefined], refused])
  })

  it('counts requests by key and returns the window', async () => {
    await using limited = await startGraphql(database, { host: { limiter: createRateLimiter({ limit: 2 }) } })
    const { text: other } = await limited.newKey()
    const statuses = []
    for (let n = 0; n < 3; n += 1) statuses.push(await limited.ask('{ __typename }'))
    assert.deepEqual(
      statuses.map(({ status }) => status),
      [200, 200, 429],
    )
    assert.deepEqual(
      statuses.map(({ headers }) => headers.get('x-ratelimit-remaining')),
      ['1', '0', '0'],
    )
    const last = statuses[2]
    assert.equal(last?.errors[0]?.extensions['code'], 'RATE_LIMITED')
    assert.match(last.headers.get('retry-after') ?? '', /^\d+$/)
    assert.equal((await limited.ask('{ __typename }', {}, other)).status, 200)
  })

  it('writes no key to its log', () => {
    assert.ok(graphql.lines.length > 0)
    assert.ok(graphql.lines.every((line) => !line.includes('ts_live_')))
  })
})
