/** The JSON-RPC client and the client of a verification service over real HTTP, against a server with scripted answers. */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { after, describe, it } from 'node:test'
import { createClient, createRpc, untrustedOf, VerdictError, verdictOf } from '../src/index.ts'
import { serve } from './_server.ts'

let paths: string[] = []
let answer: (body: string, response: ServerResponse) => void = () => {}
const server = await serve(async (request, response) => {
  paths.push(request.url ?? '')
  answer(await text(request), response)
})
after(() => server[Symbol.asyncDispose]())

const neverEnds = (_: string, response: ServerResponse) => void response.writeHead(200).write('{"jsonrpc"')
/** Gives up on what never ends. All other tests wait as long as a busy machine needs. */
const hasty = { timeoutMs: 300 }
const patient = { timeoutMs: 60_000 }

describe('createRpc', () => {
  type Request = { jsonrpc: string; id: number; method: string; params: unknown[] }
  const url = `${server.url}/v2/secret-key`
  const rpc = createRpc({ url, ...patient })
  const isUnavailable = (error: unknown) =>
    error instanceof VerdictError &&
    error.code === 'RPC_UNAVAILABLE' &&
    !`${error.message} ${String(error.cause)}`.includes('secret')

  it('sends JSON-RPC 2.0 with a new id each time, and gives back the result', async () => {
    const seen: Request[] = []
    answer = (body, response) => {
      const request = JSON.parse(body) as Request
      seen.push(request)
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id: request.id, result: request.method }))
    }
    for (let n = 0; n < 2; n += 1) assert.equal(await rpc('eth_chainId', []), 'eth_chainId')
    assert.deepEqual(seen[0], { jsonrpc: '2.0', id: seen[0]?.id, method: 'eth_chainId', params: [] })
    assert.notEqual(seen[0]?.id, seen[1]?.id)
  })

  it('gives up on a redirect, which it does not follow, and on a body that never ends', async () => {
    paths = []
    answer = (_, response) => response.writeHead(307, { location: '/elsewhere' }).end()
    await assert.rejects(rpc('eth_chainId', []), isUnavailable)
    assert.deepEqual(paths, ['/v2/secret-key'])
    answer = neverEnds
    await assert.rejects(createRpc({ url, ...hasty })('eth_chainId', []), isUnavailable)
  })
})

describe('createClient', () => {
  const client = createClient({ baseUrl: `${server.url}/`, ...patient })
  const isUnavailable = (error: unknown) => error instanceof VerdictError && error.code === 'SERVICE_UNAVAILABLE'
  const owner = '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266'
  const read = {
    record: { owner, timestamp: 1n, state: 4, flags: 0, reserved: 0 },
    tokenId: 42n,
    block: { number: 5n, hash: `0x${'ab'.repeat(32)}` },
    contract: '0x5fbdb2315678afecb367f032d93f642f64180aa3',
    chainId: 84532,
  } as const

  it('gives the verdict on a token, by number or by decimal text', async () => {
    const verdict = verdictOf(read)
    paths = []
    answer = (_, response) => response.end(JSON.stringify(verdict))
    assert.deepEqual(await client.verdict(42n), verdict)
    assert.deepEqual(await client.verdict('00042'), verdict)
    assert.deepEqual(paths, ['/api/asset/42', '/api/asset/42'])
    const dressed = verdictOf({ ...read, untrusted: untrustedOf({ name: 'Jacket' }) })
    answer = (_, response) => response.end(JSON.stringify(dressed))
    assert.deepEqual(await client.verdict(42n), dressed)
  })

  it('gives up on a service that does not answer with JSON in time', async () => {
    answer = (_, response) => response.end('<html>')
    await assert.rejects(client.verdict(42n), isUnavailable)
    answer = neverEnds
    await assert.rejects(createClient({ baseUrl: server.url, ...hasty }).verdict(42n), isUnavailable)
    await assert.rejects(createClient({ baseUrl: 'http://127.0.0.1:1' }).verdict(42n), isUnavailable)
  })
})
