/** The guards around somebody else's URL. A plain server stands in for the public one: the connector leads every allowed host to it. */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { RequestListener } from 'node:http'
import { connect as connectPlain, type LookupFunction } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { serve, type Served } from '../../../test/support/http.ts'
import { createRemoteFiles, isPublicAddress } from './fetch.ts'

describe('a remote registration file', () => {
  let server: Served
  let requests = 0
  const answers: Record<string, RequestListener> = {
    '/file.json': (_request, response) => response.end('{"name":"agent"}'),
    '/moved': (_request, response) => response.writeHead(302, { location: 'https://agent.example/file.json' }).end(),
    '/missing': (_request, response) => response.writeHead(404).end('{}'),
    '/large': (_request, response) => response.end('x'.repeat(65_537)),
    '/endless': (_request, response) => {
      const writing = setInterval(() => response.write('x'.repeat(10_000)), 1)
      response.on('close', () => clearInterval(writing))
    },
    '/packed': (_request, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('x'),
    '/silent': () => {},
    '/drip': (_request, response) => {
      const writing = setInterval(() => response.write('x'), 20)
      response.on('close', () => clearInterval(writing))
    },
  }
  before(async () => {
    server = await serve((request, response) => {
      requests += 1
      answers[request.url ?? '']?.(request, response)
    })
  })
  after(() => server.close())

  const toServer = (timeoutMs = 60_000) =>
    createRemoteFiles({
      timeoutMs,
      connect: (_options, done) => {
        const socket = connectPlain(server.port, '127.0.0.1', () => done(null, socket))
      },
    })

  it('is its text', async () => {
    const remote = toServer()
    assert.equal(await remote.text('https://agent.example/file.json'), '{"name":"agent"}')
    await remote.close()
  })

  for (const path of ['/moved', '/missing', '/large', '/endless', '/packed'])
    it(`is nothing for ${path}`, async () => {
      const remote = toServer()
      const before = requests
      assert.equal(await remote.text(`https://agent.example${path}`), null)
      assert.equal(requests, before + 1, 'no redirect is followed, nothing is tried again')
      await remote.close()
    })

  for (const path of ['/silent', '/drip'])
    it(`is nothing after its time for ${path}, which does not end by itself`, { timeout: 240_000 }, async () => {
      const remote = toServer(150)
      assert.equal(await remote.text(`https://agent.example${path}`), null)
      await remote.close()
    })

  for (const url of [
    'http://agent.example/file.json',
    'ftp://agent.example/file.json',
    'file:///etc/passwd',
    'https://agent.example:8443/file.json',
    'https://user@agent.example/file.json',
    'https://localhost/file.json',
    'https://api.localhost/file.json',
    'https://127.0.0.1/file.json',
    'https://0x7f.1/file.json',
    'https://2130706433/file.json',
    'https://[::1]/file.json',
    'https://[::ffff:127.0.0.1]/file.json',
    'https://10.0.0.1/file.json',
    'https://169.254.169.254/latest/meta-data/',
    'ipfs://bafy',
    'not a url',
  ])
    it(`is not fetched at ${url}`, async () => {
      const remote = toServer()
      const before = requests
      assert.equal(await remote.text(url), null)
      assert.equal(requests, before)
      await remote.close()
    })

  for (const [what, addresses] of [
    ['a private address', ['127.0.0.1']],
    ['a public and a private one', ['93.184.215.14', '10.0.0.1']],
    ['a private one of IPv6', ['fd00::1']],
  ] as const)
    it(`is not fetched when the name resolves to ${what}, and not waited for`, { timeout: 240_000 }, async (t) => {
      const errors: string[] = []
      const note = (message: unknown) => void errors.push((message as { error: Error }).error.message)
      subscribe('undici:client:connectError', note)
      t.after(() => unsubscribe('undici:client:connectError', note))
      const lookup: LookupFunction = (_host, { all }, done) => {
        const found = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
        if (all === true) done(null, found)
        else done(null, found.at(-1)?.address ?? '', found.at(-1)?.family)
      }
      const remote = createRemoteFiles({ lookup, timeoutMs: 600_000 })
      assert.equal(await remote.text('https://agent.example/file.json'), null)
      assert.deepEqual(errors, ['a private address'], 'no address was tried')
      await remote.close()
    })
})

describe('a public address', () => {
  it('is none of a special network', () => {
    for (const address of ['93.184.215.14', '8.8.8.8', '2606:4700::1111', '2a00:1450::1'])
      assert.ok(isPublicAddress(address), address)
    const special =
      '0.0.0.0 10.1.2.3 100.64.0.1 127.0.0.1 169.254.1.1 172.16.0.1 172.31.255.255 192.0.0.1 192.0.2.1 192.168.1.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 255.255.255.255 :: ::1 ::ffff:8.8.8.8 64:ff9b::1 fc00::1 fe80::1 ff02::1 2001:db8::1 2002:7f00:1::1 2001::1 nonsense'
    for (const address of special.split(' ')) assert.ok(!isPublicAddress(address), address)
  })
})
