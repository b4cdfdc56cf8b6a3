import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Fetch } from './lib/fetch-json.ts'
import { createRpc, getAssetCall, metadataHashCall } from './rpc.ts'

const url = 'https://rpc.example/v2/secret-key'
type Request = Readonly<{ jsonrpc: string; id: number; method: string; params: unknown[] }>

/** An RPC whose answer is made of the request. */
const scripted = (answer: (request: Request) => unknown, status = 200) =>
  createRpc({
    url,
    fetch: async (_, init) => Response.json(answer(JSON.parse(init?.body as string) as Request), { status }),
  })
const ask = (answer: (request: Request) => unknown, status = 200) => scripted(answer, status)('eth_chainId', [])
const notItsResult = (status = 200) => ({
  name: 'VerdictError',
  code: 'RPC_UNAVAILABLE',
  message: `The RPC answered eth_chainId with something that is not its result (HTTP ${status}).`,
})

describe('the calldata of the registry', () => {
  it('is a selector and the id as one word', () => {
    const word = '0000000000000000000000000000000000000000000000000000000000000107'
    assert.equal(getAssetCall(0x107n), `0xeac8f5b8${word}`)
    assert.equal(metadataHashCall(0x107n), `0x219cc8bc${word}`)
  })
})

describe('createRpc', () => {
  it('posts JSON, follows no redirect, and counts its requests', async () => {
    const seen: [url: unknown, init: RequestInit | undefined][] = []
    const fetch: Fetch = async (target, init) => {
      seen.push([target, init])
      return Response.json({ jsonrpc: '2.0', id: seen.length, result: 'x' })
    }
    const rpc = createRpc({ url, fetch })
    assert.deepEqual([await rpc('eth_call', [1, 'a']), await rpc('eth_chainId', [])], ['x', 'x'])
    const [[target, { signal, ...init } = {}] = [], [, second] = []] = seen
    assert.equal(target, url)
    assert.deepEqual(init, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: '{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[1,"a"]}',
      redirect: 'error',
    })
    assert.ok(signal instanceof AbortSignal)
    assert.equal(second?.body, '{"jsonrpc":"2.0","id":2,"method":"eth_chainId","params":[]}')
  })

  it('returns any result but a missing one', async () => {
    for (const result of [null, false, 0, '', [], {}])
      for (const error of [undefined, null])
        assert.deepEqual(await ask(({ id }) => ({ jsonrpc: '2.0', id, result, error })), result)
  })

  it('does not take an answer for its result where a part is wrong', async () => {
    const wrong: ((request: Request) => unknown)[] = [
      ({ id }) => ({ jsonrpc: '2.0', id }),
      ({ id }) => ({ jsonrpc: '2.0', id, error: null }),
      ({ id }) => ({ jsonrpc: '1.0', id, result: 1 }),
      ({ id }) => ({ jsonrpc: 2, id, result: 1 }),
      ({ id }) => ({ id, result: 1 }),
      () => ({ jsonrpc: '2.0', result: 1 }),
      ({ id }) => ({ jsonrpc: '2.0', id: id + 1, result: 1 }),
      ({ id }) => ({ jsonrpc: '2.0', id: String(id), result: 1 }),
      ({ id }) => ({ jsonrpc: '2.0', id, result: 1, error: {} }),
      ({ id }) => ({ jsonrpc: '2.0', id, result: null, error: { code: 1 } }),
      ({ id }) => ({ jsonrpc: '2.0', id, result: 1, error: 'no' }),
      ({ id }) => ({ jsonrpc: '2.0', id, error: 'no' }),
      ({ id }) => ({ jsonrpc: '2.0', id, error: [] }),
      ({ id }) => ({ jsonrpc: '1.0', id, error: { code: 1 } }),
      ({ id }) => ({ jsonrpc: '2.0', id: id + 1, error: { code: 1 } }),
      ({ id }) => [{ jsonrpc: '2.0', id, result: 1 }],
      () => null,
      () => 'x',
      () => 1,
    ]
    for (const answer of wrong) await assert.rejects(ask(answer), notItsResult())
    for (const status of [201, 400, 500])
      await assert.rejects(
        ask(({ id }) => ({ jsonrpc: '2.0', id, result: 1 }), status),
        notItsResult(status),
      )
  })

  it('throws a refusal with its code and message, whatever the status', async () => {
    for (const status of [200, 400, 500]) {
      const refused = ask(({ id }) => ({ jsonrpc: '2.0', id, error: { code: -32000, message: 'no', data: 1 } }), status)
      await assert.rejects(refused, {
        name: 'VerdictError',
        code: 'RPC_REFUSED',
        message: 'The RPC refused eth_chainId (code -32000).',
        cause: { code: -32000, message: 'no' },
      })
    }
    for (const code of [undefined, '-32000', 1.5, null])
      await assert.rejects(
        ask(({ id }) => ({ jsonrpc: '2.0', id, error: { code, message: 'no' } })),
        { code: 'RPC_REFUSED', message: 'The RPC refused eth_chainId.' },
      )
    for (const message of [undefined, null, 7, ['revert'], { toString: null }])
      await assert.rejects(
        ask(({ id }) => ({ jsonrpc: '2.0', id, error: { code: 3, message } })),
        { code: 'RPC_REFUSED', cause: { code: 3, message: '' } },
      )
  })

  it('says that nothing answered, with the reason as the cause', async () => {
    const fault = new Error('connection refused')
    const rpc = createRpc({ url, fetch: () => Promise.reject(fault) })
    await assert.rejects(rpc('eth_chainId', []), {
      name: 'VerdictError',
      code: 'RPC_UNAVAILABLE',
      message: 'The RPC did not answer eth_chainId.',
      cause: fault,
    })
  })

  it('sends nothing to a URL that is not http(s), or has a user name or a password', async () => {
    const fetch: Fetch = () => assert.fail('a request was sent')
    const wrong = ['', 'rpc', 'rpc.example', 'xhttp://rpc.example', 'ftp://rpc.example', 'httpx://rpc.example']
    const named = ['https://user@rpc.example', 'https://:secret@rpc.example', 'http://user:secret@rpc.example']
    for (const target of [...wrong, ...named])
      await assert.rejects(createRpc({ url: target, fetch })('eth_chainId', []), {
        name: 'VerdictError',
        code: 'RPC_UNAVAILABLE',
        message: 'The RPC URL is not an http(s) URL without user name and password.',
      })
    const plain: Fetch = async () => Response.json({ jsonrpc: '2.0', id: 1, result: 7 })
    assert.equal(await createRpc({ url: 'http://rpc.example', fetch: plain })('eth_chainId', []), 7)
  })
})
