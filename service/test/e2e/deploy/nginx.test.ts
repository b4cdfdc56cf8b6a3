/**
 * deploy/nginx in a real nginx, in front of two instances of the service. Checks what it caches, what it never caches, and the client's
 * address.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { get as getPlain, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { createClient } from 'graphql-ws'
import { WebSocket } from 'ws'
import { openOwnDatabase, noPostgres } from '../../support/database/databases.ts'
import { testFolder } from '../../support/folder.ts'
import { freePort } from '../../support/free-port.ts'
import { read } from '../../support/processes/deploy.ts'
import { graphqlOf } from '../../support/graphql/client.ts'
import { eventually } from '../../support/wait.ts'
import { lifeOf } from '../../support/graphql/life.ts'
import { demoBatchOf } from '../../support/tap/bound.ts'
import { testTag } from '../../support/tap/tags.ts'
import { patientDeadlines, startWorld, type World } from '../../support/world.ts'
import { readConfig } from '../../../src/app/config/config.ts'
import { createLog } from '../../../src/lib/log.ts'
import { startService, type Service } from '../../../src/app/service.ts'

const hasNginx = spawnSync('nginx', ['-v']).error === undefined
const skip = noPostgres || (!hasNginx && process.env['REQUIRE_SERVICES'] !== '1' && 'no nginx')

type Answer = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly text: string }

describe('nginx in front of two instances', { skip }, () => {
  const opened = new AsyncDisposableStack()
  let world: World
  let second: Service
  const folder = testFolder()
  let port: number
  let plainPort: number
  let graphql: Awaited<ReturnType<typeof graphqlOf>>
  let id: string
  let tap: string
  before(async () => {
    const database = opened.use(await openOwnDatabase('migrated'))
    const limits = { TRUSTED_PROXIES: '127.0.0.1', RATE_LIMIT_TAP: '8', RATE_LIMIT_ASSET: '100000' }
    const starting = startWorld({ env: { DATABASE_URL: database.url, ...limits } })
    world = opened.adopt(await starting, (it) => it.end())
    const silent = createLog(() => {}, 'silent')
    const deadlines = patientDeadlines
    second = opened.adopt(await startService(readConfig(world.settings), silent, { deadlines }), (it) => it.close(200))
    graphql = opened.adopt(await graphqlOf(world), (it) => it.close())
    tap = await boundTap()
    port = await freePort()
    plainPort = await freePort()
    chmodSync(folder, 0o755)
    opened.adopt(startNginx(), (it) => void it.kill('SIGTERM')) // its workers would outlive a SIGKILL
    assert.ok(await eventually(async () => (await get('/health').catch(() => null))?.status === 200))
  })
  after(() => opened.disposeAsync())

  /** A product with a tag of its own; the path of the tag's next tap. */
  async function boundTap(): Promise<string> {
    const batch = await demoBatchOf(world)
    id = await lifeOf(graphql).register('tag-1')
    const tag = await testTag(batch)
    const uid = Buffer.from(tag.uid).toString('hex').toUpperCase()
    const bound = await graphql.ask<{ bindTag: { success: boolean } }>(
      'mutation ($input: BindTagInput!) { bindTag(input: $input) { success } }',
      { input: { productId: id, uid, batchId: batch.id } },
    )
    assert.ok(bound.bindTag.success)
    assert.ok(await eventually(() => second.components.tagKeys.record('test') !== undefined))
    const { picc, cmac } = tag.next()
    return `/api/verify?picc=${picc}&cmac=${cmac}`
  }

  const at = (name: string) => join(folder, name)

  /** Our configuration with other ports, places and instances, and a certificate of its own. */
  function startNginx(): ChildProcess {
    const certificate = ['-keyout', at('key.pem'), '-out', at('cert.pem'), '-subj', '/CN=touchstone.test', '-days', '2']
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
    execFileSync('openssl', ['req', '-x509', ...curve, ...certificate], { stdio: 'ignore' })
    const started = configured(['touchstone.conf', 'touchstone_gateway.conf'])
    const tested = spawnSync('nginx', ['-t', ...started], { encoding: 'utf8' })
    assert.equal(tested.status, 0, tested.stderr)
    return spawn('nginx', started, { stdio: 'ignore' })
  }

  /** Writes the configuration of these files, and returns the arguments of nginx. */
  function configured(files: readonly string[], leftOut: RegExp | string = ''): string[] {
    const site = files
      .map((name) => read(`deploy/nginx/${name}`))
      .join('\n')
      .replaceAll(/^\s*listen \[::\]:.*\n/gm, '')
      .replaceAll('listen 443 ', `listen 127.0.0.1:${port} `)
      .replaceAll('listen 80;', `listen 127.0.0.1:${plainPort};`)
      .replaceAll(/\/etc\/letsencrypt\/live\/[a-z.]+\/fullchain\.pem/g, at('cert.pem'))
      .replaceAll(/\/etc\/letsencrypt\/live\/[a-z.]+\/privkey\.pem/g, at('key.pem'))
      .replaceAll('/var/log/nginx/', `${folder}/`)
      .replaceAll('/var/cache/nginx/', `${folder}/cache-`)
    const instances = (...urls: readonly string[]) => urls.map((url) => `server ${new URL(url).host};`).join(' ')
    const upstreams = read('deploy/nginx/upstreams.conf')
      .replace('server 127.0.0.1:8080;', instances(world.urls.verification, second.urls.verification))
      .replace('server 127.0.0.1:8082;', instances(world.urls.graphql, second.urls.graphql))
      .replace(leftOut, '')
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${at(name)};`,
    )
    const user = process.getuid?.() === 0 ? 'user root;' : ''
    // The main file of a distribution has logs of its own, with whole request lines.
    const usual = `access_log ${at('access.log')}; error_log ${at('error.log')};`
    const file = at(`nginx-${files.length}.conf`)
    writeFileSync(
      file,
      `${user} daemon off; pid ${at('pid')}; events {} http { ${usual} ${temporary.join(' ')}\n${upstreams}\n${site}\n}\n`,
    )
    return ['-e', at('start.log'), '-p', folder, '-c', file]
  }

  it('needs neither name, certificate nor instances of a gateway where nothing is sold', () => {
    const started = configured(['touchstone.conf'], /upstream touchstone_gateway \{[^}]*\}/)
    assert.doesNotMatch(readFileSync(started.at(-1) ?? '', 'utf8'), /pay\.example|_gateway(?!\.conf)/)
    const { status, stderr } = spawnSync('nginx', ['-t', ...started], { encoding: 'utf8' })
    assert.equal(status, 0, stderr)
  })

  function get(path: string, { host = 'verify.example.com', from = '127.0.0.1', headers = {} } = {}): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const options = { port, host: '127.0.0.1', path, localAddress: from, agent: false, rejectUnauthorized: false }
      request({ ...options, headers: { Host: host, ...headers } }, (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (more: string) => (text += more))
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }))
      })
        .on('error', reject)
        .end()
    })
  }

  it('keeps a verdict for as long as it says, and passes 304 on', async () => {
    const first = await get(`/api/asset/${id}`)
    assert.deepEqual([first.status, first.headers['x-cache']], [200, 'MISS'])
    const ownHeaders = [
      'x-ratelimit-limit',
      'x-ratelimit-remaining',
      'x-ratelimit-reset',
      'ratelimit',
      'ratelimit-policy',
      'x-request-id',
    ]
    const ownOf = ({ headers }: Answer) => ownHeaders.filter((name) => headers[name] !== undefined)
    assert.deepEqual(ownOf(first), ownHeaders)
    assert.deepEqual(ownOf(await get('/api/asset/999')), ownHeaders)
    assert.equal(first.headers['cache-control'], 'public, max-age=1, stale-while-revalidate=1')
    // Two in a row within a second, however slow the machine is.
    let hit: Answer | undefined
    const isHit = async () => (hit = await get(`/api/asset/${id}`)).headers['x-cache'] === 'HIT'
    assert.ok(await eventually(isHit))
    assert.equal(hit?.text, first.text)
    assert.deepEqual(hit && ownOf(hit), [])
    const etag = first.headers.etag ?? ''
    const same = await get(`/api/asset/${id}`, { headers: { 'If-None-Match': etag } })
    assert.deepEqual([same.status, same.text, same.headers.etag], [304, '', etag])
  })

  it('keeps nothing else: no tap, no error, no id written in another way', async () => {
    const answers = [
      tap,
      '/api/verify?picc=00&cmac=00',
      '/',
      '/api/asset/999',
      `/api/asset/%3${id}`, // the first digit, percent-encoded
      `/api/asset/${id}?x=1`,
      '/api/asset/x',
    ]
    for (const path of answers) {
      const [one, two] = [await get(path, { from: '127.0.0.9' }), await get(path, { from: '127.0.0.9' })]
      assert.equal(one.status, two.status, path)
      for (const { headers } of [one, two])
        assert.ok(['MISS', 'BYPASS', undefined].includes(headers['x-cache']?.toString()), path)
    }
    const verified = JSON.parse((await get(tap, { from: '127.0.0.9' })).text) as { verified: boolean }
    assert.equal(verified.verified, true)
  })

  it('takes a header as long as a payment may be', async () => {
    assert.equal((await get('/health', { headers: { 'X-Payment': 'A'.repeat(8_192) } })).status, 200)
  })

  it('passes the real client address, whatever the client claims: each has a budget of its own', async () => {
    const invalid = '/api/verify?picc=00&cmac=00'
    const statusOf = async (from: string, claimed: string) =>
      (await get(invalid, { from, headers: { 'X-Forwarded-For': claimed } })).status
    let last = 0
    for (let n = 0; n < 40 && last !== 429; n += 1) last = await statusOf('127.0.0.2', `198.51.100.${n}`)
    assert.equal(last, 429)
    assert.equal(await statusOf('127.0.0.3', '127.0.0.2'), 400)
  })

  it('leads from HTTP to the same address in HTTPS, as it was sent', async () => {
    for (const path of ['/01/09520123456788/21/A%2FB?picc=00', '/%0D%0ASet-Cookie:%20a=b', '//other.example/x']) {
      const headers = { Host: 'verify.example.com' }
      const answer = await new Promise<IncomingMessage>((resolve, reject) =>
        getPlain({ port: plainPort, host: '127.0.0.1', path, headers, agent: false }, resolve).on('error', reject),
      )
      answer.resume()
      assert.equal(answer.statusCode, 308, path)
      assert.equal(answer.headers.location, `https://verify.example.com${path}`)
      assert.equal(answer.headers['set-cookie'], undefined)
    }
  })

  it('passes WebSockets to the GraphQL host', async () => {
    const Socket = class extends WebSocket {
      constructor(url: string | URL, protocols?: string | string[]) {
        super(url, protocols, { headers: { Host: 'graphql.example.com' }, rejectUnauthorized: false })
      }
    }
    const client = createClient({
      url: `wss://127.0.0.1:${port}/graphql`,
      webSocketImpl: Socket,
      connectionParams: { authorization: `Bearer ${graphql.key}` },
    })
    try {
      const heard: unknown[] = []
      client.subscribe(
        { query: '{ products(first: 1) { totalCount } }' },
        { next: ({ data }) => heard.push(data), error: (error) => heard.push(error), complete: () => {} },
      )
      assert.ok(await eventually(() => heard.length > 0))
      assert.deepEqual(heard, [{ products: { totalCount: 1 } }])
    } finally {
      await client.dispose()
    }
  })

  it('shows no verdict any more when no instance answers, and has no tap in its logs', async () => {
    await second.close(200)
    await world.close(200)
    assert.ok(await eventually(async () => (await get(`/api/asset/${id}`)).status === 502))
    assert.equal((await get(tap)).status, 502)
    const read = (name: string) => readFileSync(join(folder, name), 'utf8')
    // nginx logs a request after its last byte.
    assert.ok(await eventually(async () => /"GET \/api\/verify HTTP\/1.1" 502/.test(read('touchstone.log'))))
    for (const name of ['touchstone.log', 'touchstone-error.log', 'start.log', 'access.log', 'error.log'])
      assert.doesNotMatch(read(name), /picc|cmac/, name)
  })
})
