/** The client of a verification service, against a service with scripted answers. */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { after, describe, it } from 'node:test'
import { createClient, untrustedOf, VerdictError, verdictOf } from '../src/index.ts'
import { serve } from './_server.ts'

let paths: string[] = []
let answer: (response: ServerResponse) => void = () => {}
const service = await serve((request, response) => {
  paths.push(request.url ?? '')
  answer(response)
})
after(() => service[Symbol.asyncDispose]())
const client = createClient({ baseUrl: `${service.url}/`, timeoutMs: 60_000 })

const record = {
  owner: '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266',
  timestamp: 1n,
  state: 4,
  flags: 0,
  reserved: 0,
} as const
const block = { number: 5n, hash: `0x${'ab'.repeat(32)}` } as const
const read = {
  record,
  tokenId: 42n,
  block,
  contract: '0x5fbdb2315678afecb367f032d93f642f64180aa3',
  chainId: 84532,
} as const
const verdict = verdictOf(read)
assert.ok(verdict)

function answers(status: number, body: unknown, headers: Record<string, string> = {}): void {
  paths = []
  answer = (response) => response.writeHead(status, headers).end(JSON.stringify(body))
}

const failsWith = (code: string) => (error: unknown) => error instanceof VerdictError && error.code === code

describe('createClient', () => {
  it('gives the verdict on a token, by number or by decimal text', async () => {
    answers(200, verdict)
    assert.deepEqual(await client.verdict(42n), verdict)
    assert.deepEqual(await client.verdict('00042'), verdict)
    assert.deepEqual(paths, ['/api/asset/42', '/api/asset/42'])
    const dressed = verdictOf({ ...read, untrusted: untrustedOf({ name: 'Jacket' }) })
    answers(200, dressed)
    assert.deepEqual(await client.verdict(42n), dressed)
  })

  it('gives the error body of the specification', async () => {
    const error = { version: '1', error: { code: 'ASSET_NOT_FOUND', message: 'No such asset.' } }
    answers(404, error)
    assert.deepEqual(await client.verdict(7n), error)
    answers(429, { version: '1', error: { code: 'RATE_LIMITED', message: 'Slow down.' } }, { 'retry-after': '17' })
    assert.deepEqual(await client.verdict(7n), {
      version: '1',
      error: { code: 'RATE_LIMITED', message: 'Slow down.' },
      retryAfter: 17,
    })
  })

  it('does not ask about text that is no token id', async () => {
    answers(200, verdict)
    for (const text of ['', '0x2a', '../admin', '-1', '9'.repeat(79)]) {
      const answered = await client.verdict(text)
      assert.equal('error' in answered && answered.error.code, 'INVALID_TOKEN_ID')
    }
    assert.deepEqual(paths, [])
  })

  const { chainRef } = verdict
  const malformed: [name: string, status: number, body: unknown][] = [
    ['the verdict on another token', 200, { ...verdict, token_id: '43', chainRef: { ...chainRef, token_id: '43' } }],
    ['a verdict with another key', 200, { ...verdict, extra: 1 }],
    ['a verdict without a key', 200, { ...verdict, flagged: undefined }],
    ['another version', 200, { ...verdict, version: '2' }],
    ['a state that is not its code', 200, { ...verdict, state: 'MINTED' }],
    ['a state above 6', 200, { ...verdict, state: 'GONE', state_code: 7 }],
    ['state 0', 200, { ...verdict, state: 'NONE', state_code: 0, authentic: false }],
    ['a flagged state that is not flagged', 200, { ...verdict, state: 'FLAGGED', state_code: 5, authentic: false }],
    ['an authentic flagged one', 200, { ...verdict, flagged: true }],
    ['a commitment in capitals', 200, { ...verdict, owner_commitment: verdict.owner_commitment?.toUpperCase() }],
    ['another chain', 200, { ...verdict, chainRef: { ...chainRef, chain_id: 8453 } }],
    ['a contract without its checksum', 200, { ...verdict, chainRef: { ...chainRef, contract: read.contract } }],
    ['a block number as a text', 200, { ...verdict, chainRef: { ...chainRef, block_number: '5' } }],
    ['a block number below zero', 200, { ...verdict, chainRef: { ...chainRef, block_number: -5 } }],
    ['production readiness', 200, { ...verdict, production_ready: true }],
    ['an audit', 200, { ...verdict, audit_status: 'audited' }],
    ['hidden texts', 200, { ...verdict, untrusted: { _warning: 'x', note: 'y' } }],
    ['null', 200, null],
    ['an unknown error code', 404, { version: '1', error: { code: 'TEAPOT', message: '' } }],
    ['an error that is a text', 404, { error: 'not found' }],
  ]
  for (const [name, status, body] of malformed) {
    it(`does not take ${name} for an answer`, async () => {
      answers(status, body)
      await assert.rejects(client.verdict(42n), failsWith('BAD_ANSWER'))
    })
  }

  it('gives up on a service that does not answer with JSON in time', async () => {
    answer = (response) => response.end('<html>')
    await assert.rejects(client.verdict(42n), failsWith('SERVICE_UNAVAILABLE'))
    answer = (response) => response.write('{')
    const hasty = createClient({ baseUrl: service.url, timeoutMs: 300 })
    await assert.rejects(hasty.verdict(42n), failsWith('SERVICE_UNAVAILABLE'))
    await assert.rejects(createClient({ baseUrl: 'http://127.0.0.1:1' }).verdict(42n), failsWith('SERVICE_UNAVAILABLE'))
  })
})
