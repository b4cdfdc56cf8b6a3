/**
 * A machine that knows only the host finds catalogs, descriptions, llms.txt; each link resolves and each command works (spec §9).
 * Also the headers and forms that every route shares: the request's id, the budget in both spellings, problem details (spec §4.1, §7, §8).
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { publishedAddresses, publishedKey } from '../../../src/domain/published-accounts.ts'
import { installTestMoney, moneyAccounts } from '../../../src/chain/devchain/test-money.ts'
import { discoveryDocuments } from '../../../src/discovery/documents.ts'
import { graphqlErrorCodes } from '../../../src/graphql/errors.ts'
import { routeNames } from '../../../src/app/route-names.ts'
import { routeOf } from '../../../src/http/metrics.ts'
import { hostOf } from '../../support/pages/host.ts'
import { startWorld } from '../../support/world.ts'

type Linkset = { linkset: ({ anchor: string } & Record<string, { href: string; type?: string }[]>)[] }

const world = await startWorld({
  env: {
    PAYMENT_PAY_TO: publishedAddresses[moneyAccounts.seller] ?? '',
    FACILITATOR_KEY: publishedKey(moneyAccounts.facilitator),
    PUBLIC_RPC_URL: 'http://rpc.invalid',
    RATE_LIMIT_ASSET: '1000',
    RATE_LIMIT_TAP: '100',
  },
  rpcUrl: async (chain) => {
    await installTestMoney({ rpcUrl: chain })
    return chain
  },
})
for (let id = 0; id < 5; id += 1) await world.mint()
await world.components.tagKeys.create({ id: 'test', demo: true })
after(() => world.end())

describe('discovery', () => {
  const json = async <T>(path: string) => (await (await world.get(path)).json()) as T

  async function assertResolves(url: string, statuses: readonly number[] = [200], type?: string): Promise<void> {
    assert.ok(
      Object.values(world.urls).some((host) => url.startsWith(`${host}/`)),
      `${url} is of another instance`,
    )
    const response = await fetch(url)
    await response.body?.cancel()
    assert.ok(statuses.includes(response.status), `${url} answers ${response.status}`)
    if (type !== undefined) assert.equal(response.headers.get('content-type')?.split(';')[0], type, url)
  }

  it('has a name for every route that the verification host serves', () => {
    const { routes } = hostOf(world)
    const paths = new Set(routes.map(({ path }) => path.replace('*', 'x')).filter((path) => path !== '/x'))
    assert.ok(paths.size > 30, `${paths.size} routes`)
    const unnamed = [...paths].filter((path) => routeOf(routeNames.verification, path)[1] === 'other')
    assert.deepEqual(unnamed, [], 'app/route-names.ts and openapi.yaml name every route')
  })

  for (const [path, type] of [
    ['/.well-known/api-catalog', 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'],
    ['/.well-known/ai-catalog.json', 'application/ai-catalog+json'],
    ['/openapi.json', 'application/json'],
    ['/robots.txt', 'text/plain; charset=utf-8'],
    ['/sitemap.xml', 'application/xml'],
    ['/llms.txt', 'text/plain; charset=utf-8'],
    ['/llms-full.txt', 'text/plain; charset=utf-8'],
  ] as const)
    it(`${path} is cached for an hour, and 304 with its ETag`, async () => {
      const headers = { 'Accept-Encoding': 'identity' }
      const [get, head] = await Promise.all([
        world.get(path, { headers }),
        world.get(path, { method: 'HEAD', headers }),
      ])
      for (const { status, headers: given } of [get, head])
        assert.deepEqual(
          [
            status,
            ...['content-type', 'cache-control', 'access-control-allow-origin', 'etag'].map((n) => given.get(n)),
          ],
          [200, type, 'public, max-age=3600', '*', get.headers.get('etag')],
        )
      const text = await get.text()
      assert.equal(get.headers.get('content-length'), String(Buffer.byteLength(text)))
      assert.equal(await head.text(), '')
      const again = await world.get(path, { headers: { 'If-None-Match': get.headers.get('etag') ?? '' } })
      assert.deepEqual([again.status, await again.text()], [304, ''])
      const posted = await world.get(path, { method: 'POST' })
      assert.deepEqual([posted.status, posted.headers.get('allow')], [405, 'GET, HEAD, OPTIONS'])
      assert.ok(!text.includes('evil.example'))
    })

  it('takes its URLs from the configuration, never from Host', async () => {
    const response = await world.get('/llms.txt', {
      headers: { Host: 'evil.example', 'X-Forwarded-Host': 'evil.example' },
    })
    assert.doesNotMatch(await response.text(), /evil\.example/)
  })

  it('the start page leads to the API catalog, the description and the documentation', async () => {
    const link = (await world.get('/')).headers.get('link') ?? ''
    const targets = [...link.matchAll(/<([^>]+)>; rel="([\w-]+)"/g)].map(([, target = '', rel = '']) => ({
      target,
      rel,
    }))
    assert.deepEqual(
      targets.map(({ rel }) => rel),
      ['api-catalog', 'service-desc', 'service-doc', 'describedby'],
    )
    for (const { target } of targets) await assertResolves(world.url + target)
  })

  it('the API catalog describes every interface, and each of its links resolves', async () => {
    const { linkset } = await json<Linkset>('/.well-known/api-catalog')
    const head = await world.get('/.well-known/api-catalog', { method: 'HEAD' })
    assert.equal(head.headers.get('link'), `<${world.url}/.well-known/api-catalog>; rel="api-catalog"`)
    const { verification, gateway, graphql } = world.urls
    assert.deepEqual(
      linkset.map(({ anchor }) => anchor),
      [`${verification}/`, `${gateway}/verify`, `${graphql}/graphql`, `${verification}/mcp`, `${verification}/a2a`],
    )
    for (const { anchor, ...relations } of linkset) {
      await assertResolves(anchor, [200, 401, 405])
      assert.deepEqual(
        ['service-desc', 'service-doc', 'status'].filter((relation) => !(relation in relations)),
        [],
      )
      for (const { href, type } of Object.values(relations).flat()) await assertResolves(href, [200], type)
    }
  })

  it('the AI catalog lists the MCP server and the A2A agent by their cards', async () => {
    type Catalog = { specVersion: string; host: object; entries: { identifier: string; type: string; url: string }[] }
    const { specVersion, entries } = await json<Catalog>('/.well-known/ai-catalog.json')
    assert.equal(specVersion, '1.0')
    assert.deepEqual(
      entries.map(({ type }) => type),
      ['application/mcp-server-card+json', 'application/a2a-agent-card+json'],
    )
    assert.equal(new Set(entries.map(({ identifier }) => identifier)).size, entries.length)
    for (const { url } of entries) await assertResolves(url)
  })

  it('serves the same description on the gateway', async () => {
    const [here, there] = await Promise.all([world.get('/openapi.json'), fetch(`${world.urls.gateway}/openapi.json`)])
    assert.equal(await there.text(), await here.text())
    const etag = there.headers.get('etag') ?? ''
    assert.equal(`W/${etag}`, here.headers.get('etag')) // weak: this one is compressed
    const unchanged = await fetch(`${world.urls.gateway}/openapi.json`, { headers: { 'If-None-Match': etag } })
    assert.deepEqual([unchanged.status, await unchanged.text()], [304, ''])
  })

  for (const path of ['/llms.txt', '/llms-full.txt'])
    it(`${path} is short, and every URL in it is of this instance and resolves`, async () => {
      const text = await (await world.get(path)).text()
      assert.ok(Buffer.byteLength(text) < 50_000)
      assert.match(text, /^# Touchstone/)
      for (const [url] of text.matchAll(/https?:\/\/[\w.:-]+(?:\/[\w./~-]*)?/g))
        if (!url.startsWith('http://rpc.invalid'))
          await assertResolves(
            url.replace(/\.$/, '').replace(/^(http:\/\/[^/]+)$/, '$1/'),
            [200, 302, 400, 401, 404, 405],
          )
      for (const [, url = ''] of text.matchAll(/\]\((\S+?)\)/g)) await assertResolves(url)
    })

  it('every command of llms-full.txt works as it stands', async () => {
    const text = await (await world.get('/llms-full.txt')).text()
    const commands = text.split('\n').filter((line) => line.startsWith('curl ') && !line.includes('…'))
    assert.ok(commands.length >= 14, commands.join('\n'))
    const shows: readonly [RegExp, RegExp][] = [
      [/api\/asset\/\d+$/, /"authentic":true/],
      [/^curl \S+asset\/0x1/, /^\{"version":"1","error":\{"code":"INVALID_TOKEN_ID"/],
      [/problem\+json/, /"title":"Invalid token id"/],
      [/eth_call/, /"result":"0x[0-9a-f]{320}"/],
      [/picc=/, /"verified":false/],
      [/\/mcp /, /"structuredContent"/],
      [/message:send/, /TASK_STATE_COMPLETED/],
      [/\/verify -H/, /"x402Version":1/],
      [/:\d+\/health/, /"status":"ok"/],
    ]
    for (const command of commands) {
      const here = command.replace('http://rpc.invalid', world.chainUrl).replace(/^curl /, 'curl -sS --max-time 20 ')
      const { stdout, stderr } = await promisify(execFile)('/bin/sh', ['-c', here], { timeout: 300_000 })
      assert.equal(stderr, '', command)
      assert.ok(stdout.startsWith('{'), `${command} answers ${stdout.slice(0, 200)}`)
      for (const [which, what] of shows) if (which.test(command)) assert.match(stdout, what, command)
    }
  })

  const textsOf = (gateway: string | null) => {
    const documents = discoveryDocuments({
      urls: { verification: 'https://v.example', gateway, graphql: 'https://g.example' },
      operator: 'Somebody',
      contract: '0x5FbDB2315678afecb367f032d93F642f64180aa3',
      rpcUrl: 'https://sepolia.base.org',
      exampleTokenId: 1n,
      docs: [{ path: '/docs/rest-api', title: 'REST API' }],
      securityContact: 'mailto:security@v.example',
      startedAt: new Date('2026-01-01T00:00:00Z'),
    })
    return (path: string) => new TextDecoder().decode(documents.get(path)?.bytes)
  }

  it('names no gateway where proofs are not sold', () => {
    const textOf = textsOf(null)
    const { linkset } = JSON.parse(textOf('/.well-known/api-catalog')) as Linkset
    assert.deepEqual(
      linkset.map(({ anchor }) => anchor.replace(/^https:\/\//, '')),
      ['v.example/', 'g.example/graphql', 'v.example/mcp', 'v.example/a2a'],
    )
    for (const path of ['/llms.txt', '/llms-full.txt']) {
      assert.match(textOf(path), /GraphQL/)
      assert.doesNotMatch(textOf(path), /null|x402|127\.0\.0\.1/, path)
    }
  })

  it('has a security.txt with the contact that the operator configured', () => {
    const textOf = textsOf('https://p.example')
    assert.equal(
      textOf('/.well-known/security.txt'),
      'Contact: mailto:security@v.example\nExpires: 2026-12-31T00:00:00Z\nPreferred-Languages: en\nCanonical: https://v.example/.well-known/security.txt\n',
    )
    assert.match(textOf('/sitemap.xml'), /<loc>https:\/\/v\.example\/docs\/rest-api<\/loc>/)
    assert.match(textOf('/llms.txt'), /\[REST API\]\(https:\/\/v\.example\/docs\/rest-api\.md\)/)
    for (const code of graphqlErrorCodes) assert.ok(textOf('/llms-full.txt').includes(code), code)
    for (const path of ['/api/verify', '/mcp']) assert.ok(textOf('/robots.txt').includes(`\nDisallow: ${path}\n`), path)
    assert.doesNotMatch(textOf('/openapi.json'), /127\.0\.0\.1/)
  })

  it('there is no security.txt without a contact', async () => {
    assert.equal((await world.get('/.well-known/security.txt')).status, 404)
  })
})

describe('headers of every answer', () => {
  it('X-Request-Id is the client’s own or a new one, on every host and path', async () => {
    const hosts = [world.url, world.urls.graphql]
    for (const path of ['/api/asset/1', '/api/asset/x', '/nothing', '/', '/api/verify', '/health', '/graphql'])
      for (const host of hosts) {
        const given = `test_${path.length}.x-1`
        const named = await fetch(host + path, { headers: { 'X-Request-Id': given }, redirect: 'manual' })
        assert.equal(named.headers.get('x-request-id'), given, host + path)
        const fresh = await fetch(host + path, { headers: { 'X-Request-Id': 'a b' }, redirect: 'manual' })
        assert.match(fresh.headers.get('x-request-id') ?? '', /^[a-z0-9]+-[a-z0-9]+$/)
        await Promise.all([named.body?.cancel(), fresh.body?.cancel()])
      }
  })

  it('Vary is the same for HEAD as for GET, although HEAD compresses nothing', async () => {
    for (const target of ['/llms.txt', '/']) {
      const [got, head] = await Promise.all(['GET', 'HEAD'].map((method) => world.get(target, { method })))
      assert.match(got?.headers.get('vary') ?? '', /Accept-Encoding/)
      assert.equal(head?.headers.get('vary'), got?.headers.get('vary'))
      assert.equal(head?.headers.get('content-encoding'), null)
    }
  })

  it('RateLimit and RateLimit-Policy equal X-RateLimit-*, for each quota under its name', async () => {
    for (const [path, name, limit] of [
      ['/api/asset/1', 'default', 1000],
      ['/api/verify', 'taps', 100],
    ] as const) {
      const { headers } = await world.get(path)
      assert.equal(headers.get('ratelimit-policy'), `"${name}";q=${limit};w=60`)
      const [remaining, reset] = [headers.get('x-ratelimit-remaining'), headers.get('x-ratelimit-reset')]
      assert.equal(headers.get('ratelimit'), `"${name}";r=${remaining};t=${reset}`)
      for (const exposed of ['RateLimit', 'RateLimit-Policy', 'X-Request-Id', 'ETag', 'Retry-After'])
        assert.ok(headers.get('access-control-expose-headers')?.split(', ').includes(exposed), exposed)
    }
  })

  it('problem details are sent only if Accept names them, beside the fixed body', async () => {
    const ask = (accept: string) => world.get('/api/asset/0x1', { headers: { Accept: accept } })
    const [plain, problem] = [await ask('*/*'), await ask('application/problem+json')]
    assert.equal(plain.headers.get('content-type'), 'application/json')
    assert.equal(problem.headers.get('content-type'), 'application/problem+json')
    const body = (await plain.json()) as object
    assert.deepEqual(await problem.json(), {
      type: `${world.url}/docs/error-codes#invalid_token_id`,
      title: 'Invalid token id',
      status: 400,
      detail: 'The token id must be a decimal integer from 0 to 2^256-1, in digits only, such as 42.',
      ...body,
    })
    const missing = { method: 'HEAD', headers: { Accept: 'application/problem+json' } }
    assert.equal((await world.get('/api/asset/999999', missing)).status, 404)
    const right = await world.get('/api/asset/1', { headers: { Accept: 'application/problem+json' } })
    assert.deepEqual([right.status, right.headers.get('content-type')], [200, 'application/json'])
  })
})
