import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer, request, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { buildSchema, OperationTypeNode, parse } from 'graphql'
import { playgroundExamples } from './examples.ts'
import { playgroundRoutes } from './playground.ts'
import { createPrepareOperation } from '../server/prepare.ts'

type Answer = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: Buffer }

describe('/playground', () => {
  const server = createServer(playgroundRoutes())
  before(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)))
  after(() => server.close().closeAllConnections())

  /** Requests by `node:http`, because fetch decompresses. */
  function ask(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> {
    const { port } = server.address() as AddressInfo
    return new Promise((resolve, reject) => {
      request({ host: '127.0.0.1', port, path, headers, method }, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
        )
      })
        .on('error', reject)
        .end()
    })
  }
  const page = async () => (await ask('/playground')).body.toString()
  const filesOf = (html: string) => [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = '']) => `/${path}`)

  it('loads scripts, styles and pictures from its own folder only, and every one of them is there', async () => {
    const files = filesOf(await page())
    assert.equal(files.length, 8)
    for (const file of files) {
      assert.match(file, /^\/playground\/assets\/[0-9a-f]{16}\/[\w.-]+$/)
      const { status, body } = await ask(file)
      assert.deepEqual([status, body.length > 100], [200, true], file)
    }
    const script = files.find((file) => file.endsWith('/page.js')) ?? ''
    for (const [, specifier = ''] of (await ask(script)).body.toString().matchAll(/^import .* from '\.\/(.+)'$/gm))
      assert.equal((await ask(script.replace('page.js', specifier))).status, 200, specifier)
  })

  it('lets run only what this host serves: no inline script, no eval, no other host, no frame around it', async () => {
    const { headers, body } = await ask('/playground')
    const nonce = /'nonce-([\w+/=]{24})'/.exec(String(headers['content-security-policy']))?.[1] ?? ''
    assert.equal(
      headers['content-security-policy'],
      `default-src 'none'; script-src 'self'; style-src 'self' 'nonce-${nonce}'; img-src 'self' data:; font-src data:; ` +
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    )
    assert.ok(body.includes(` nonce="${nonce}"`) && !(await page()).includes(nonce), 'the nonce is of one page')
    assert.ok(!/<script(?![^>]*(?:src=|type="application\/json"))/.test(body.toString()))
    assert.deepEqual([headers['cache-control'], headers['referrer-policy']], ['no-store', 'no-referrer'])
  })

  it('keeps a file for ever under its hash, and for no other visit under another one', async () => {
    const file = filesOf(await page()).find((path) => path.endsWith('/graphiql.css')) ?? ''
    const { headers } = await ask(file)
    assert.equal(headers['cache-control'], 'public, max-age=31536000, immutable')
    assert.equal((await ask(file, { 'If-None-Match': headers.etag ?? '' })).status, 304)
    const old = await ask(file.replace(/[0-9a-f]{16}/, '0123456789abcdef'))
    assert.deepEqual([old.status, old.headers['cache-control']], [200, 'no-cache'])
  })

  it('sends each encoding under an ETag of its own, and all hold the same bytes', async () => {
    const file = filesOf(await page()).find((path) => path.endsWith('/graphiql.js')) ?? ''
    const [plain, zipped, packed] = await Promise.all(
      ['identity', 'gzip', 'gzip, deflate, br'].map((encoding) => ask(file, { 'Accept-Encoding': encoding })),
    )
    assert.deepEqual(
      [plain, zipped, packed].map((one) => one?.headers['content-encoding']),
      [undefined, 'gzip', 'br'],
    )
    assert.equal(new Set([plain, zipped, packed].map((one) => one?.headers.etag)).size, 3)
    assert.ok(plain && zipped && packed && packed.body.length < plain.body.length / 3)
    assert.ok(gunzipSync(zipped.body).equals(plain.body) && brotliDecompressSync(packed.body).equals(plain.body))
  })

  it('answers HEAD without a body, another method with 405, and what is not there with 404', async () => {
    const head = await ask('/playground', {}, 'HEAD')
    assert.deepEqual([head.status, head.body.length, Number(head.headers['content-length']) > 1_000], [200, 0, true])
    const post = await ask('/playground', {}, 'POST')
    assert.deepEqual([post.status, post.headers.allow], [405, 'GET, HEAD'])
    for (const path of ['/playground/x', '/playground/assets/', '/playground/assets/a/../../playground.ts'])
      assert.equal((await ask(path)).status, 404, path)
    assert.equal((await ask('/playground/')).headers.location, '../playground')
  })
})

describe('the examples of the playground', () => {
  const schema = buildSchema(readFileSync(new URL('../schema.graphql', import.meta.url), 'utf8'))

  const prepare = createPrepareOperation({ schema })

  for (const { query, variables } of playgroundExamples) {
    const [operation] = parse(query).definitions
    assert.ok(operation?.kind === 'OperationDefinition')

    it(`${operation.name?.value} is let through by the host, with its variables and none that it does not have`, () => {
      const given = JSON.parse(variables ?? '{}') as Record<string, unknown>
      const prepared = prepare({ query, variables: given })
      assert.ok(prepared.ok, JSON.stringify(prepared))
      const known = (operation.variableDefinitions ?? []).map(({ variable }) => variable.name.value)
      assert.deepEqual(
        Object.keys(given).filter((name) => !known.includes(name)),
        [],
      )
    })
  }

  it('show a query, a mutation and a subscription', () => {
    const kinds = new Set(
      playgroundExamples
        .flatMap(({ query }) => parse(query).definitions)
        .map((one) => 'operation' in one && one.operation),
    )
    assert.deepEqual([...kinds], Object.values(OperationTypeNode))
  })
})
