import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { type RpcErrorKind, isHexData, parseQuantity, parseResults, RpcError } from './answer.ts'

const answer = (id: unknown, rest: object) => JSON.stringify({ jsonrpc: '2.0', id, ...rest })

function failureOf(read: () => unknown): RpcError {
  try {
    read()
  } catch (error) {
    assert.ok(error instanceof RpcError)
    return error
  }
  throw new assert.AssertionError({ message: 'no failure' })
}

describe('an answer to one call', () => {
  it('gives its result', () => {
    assert.deepEqual(parseResults(answer(7, { result: '0x1' }), [7]), ['0x1'])
    assert.deepEqual(parseResults(answer(7, { result: null }), [7]), [null])
  })

  const wrong: Record<string, string> = {
    'is not JSON': '<html>',
    'is cut': answer(7, { result: '0x1' }).slice(0, -3),
    'is empty': '',
    'is null': 'null',
    'is a text': '"0x1"',
    'is a list': `[${answer(7, { result: '0x1' })}]`,
    'has another id': answer(8, { result: '0x1' }),
    'has the id as a text': answer('7', { result: '0x1' }),
    'has no id': '{"jsonrpc":"2.0","result":"0x1"}',
    'is of JSON-RPC 1': '{"id":7,"result":"0x1","error":null}',
    'names no version': '{"id":7,"result":"0x1"}',
    'has neither result nor error': answer(7, {}),
    'has an error beside the result': answer(7, { result: '0x1', error: { code: -32000, message: 'x' } }),
    'has an error of another form': answer(7, { error: 'no' }),
  }
  for (const [how, text] of Object.entries(wrong)) {
    it(`is a fault if it ${how}`, () => assert.equal(failureOf(() => parseResults(text, [7])).kind, 'fault'))
  }
})

describe('an answer to a batch', () => {
  const ids = fc.uniqueArray(fc.nat(), { minLength: 2, maxLength: 12 })
  const member = (id: number) => ({ jsonrpc: '2.0', id, result: id * 2 })

  it('gives each call its own result, in whatever order they come', () => {
    const shuffled = ids.chain((list) =>
      fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length })),
    )
    fc.assert(
      fc.property(shuffled, ([asked, answered]) => {
        assert.deepEqual(
          parseResults(JSON.stringify(answered.map(member)), asked),
          asked.map((id) => id * 2),
        )
      }),
    )
  })

  it('is a fault if a member is missing, doubled, foreign or extra', () => {
    fc.assert(
      fc.property(ids, fc.nat(), (asked, seed) => {
        const at = seed % asked.length
        const members = asked.map(member)
        const doubled = members.with(at, members[(at + 1) % members.length] ?? member(0))
        const foreign = members.with(at, member(Math.max(...asked) + 1))
        for (const wrong of [members.toSpliced(at, 1), doubled, foreign, [...members, members[at]]]) {
          assert.equal(failureOf(() => parseResults(JSON.stringify(wrong), asked)).kind, 'fault')
        }
      }),
    )
  })

  it('fails as a whole if one member does', () => {
    const text = JSON.stringify([
      member(1),
      { jsonrpc: '2.0', id: 2, error: { code: 3, message: 'execution reverted' } },
    ])
    assert.equal(failureOf(() => parseResults(text, [1, 2])).kind, 'reverted')
  })

  it('is no answer if the provider does not do batches', () => {
    const text = answer(null, { error: { code: -32600, message: 'batch requests are not supported' } })
    assert.equal(failureOf(() => parseResults(text, [1, 2])).kind, 'rejected')
    assert.equal(failureOf(() => parseResults(answer(1, { result: '0x1' }), [1, 2])).kind, 'fault')
  })
})

describe('an error of a provider', () => {
  const meanings: [RpcErrorKind, number, string][] = [
    ['non-canonical', -32001, 'Resource not found'],
    ['non-canonical', -32000, 'header not found'],
    ['non-canonical', -32000, 'header for hash not found'],
    [
      'non-canonical',
      -32603,
      'hash 0d30235c89b4c59bffbf3d8997921d6b666835f4e7ea8eb262dcd140a000f20e is not currently canonical',
    ],
    ['non-canonical', -32000, 'block 230d842afd1faceaa3c5c0dacd24228747565c441ed5e1e3a9306c2c6b55d619 not found'],
    ['non-canonical', -32000, 'unknown block'],
    ['non-canonical', -32001, 'unknown block number'],
    ['non-canonical', -32019, 'block is out of range'],
    ['non-canonical', -32000, '0xabc could not be found: block is not canonical'],
    ['reverted', 3, 'execution reverted: no'],
    ['reverted', -32000, 'execution reverted'],
    ['reverted', -32603, 'EVM error InvalidFEOpcode'],
    ['reverted', -32000, 'out of gas'],
    ['reverted', 3, 'execution reverted: rate limit exceeded'],
    ['busy', -32005, 'daily request count exceeded, request rate limited'],
    ['busy', -32005, 'limit exceeded'],
    ['busy', -32005, 'limit exceeded, request reverted'],
    ['busy', -32029, 'the limit reverts in a second'],
    ['busy', 429, 'out of gas for today'],
    ['too-wide', -32005, 'query returned more than 10000 results'],
    ['busy', 429, 'Your app has exceeded its compute units per second capacity'],
    ['too-wide', -32602, 'Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range'],
    ['too-wide', -32005, 'query returned more than 10000 results'],
    ['too-wide', 35, 'ranges over 10 blocks are not supported on freetier'],
    ['rejected', -32601, 'the method eth_getProof does not exist/is not available'],
    ['rejected', -32601, 'Method eth_getBlockByHash not found'],
    ['rejected', -32602, 'invalid argument 1: hex string without 0x prefix'],
    ['fault', -32000, 'missing trie node 1f2e (path ) state 0x00 is not available'],
    ['fault', -32603, 'Internal error'],
  ]
  for (const [kind, code, message] of meanings) {
    it(`means ${kind} for ${code} ${message.slice(0, 40)}`, () => {
      const failure = failureOf(() => parseResults(answer(1, { error: { code, message } }), [1]))
      assert.deepEqual([failure.kind, failure.answered], [kind, true])
    })
  }

  it('has the data of a revert, also where a client wraps it or puts a word in front', () => {
    for (const data of ['0x08c379a0', { data: '0x08c379a0' }, 'Reverted 0x08c379a0']) {
      const error = { code: 3, message: 'execution reverted', data }
      assert.equal(failureOf(() => parseResults(answer(1, { error }), [1])).data, '0x08c379a0')
    }
  })

  it('counts against the provider only if the provider is to blame', () => {
    const blames = (kind: RpcErrorKind) => new RpcError(kind, '').isFault
    assert.ok((['fault', 'reset', 'busy', 'too-large'] as const).every(blames))
    assert.ok(!(['non-canonical', 'reverted', 'too-wide', 'rejected', 'behind'] as const).some(blames))
  })

  it('keeps keys, addresses and URLs of its text to itself', () => {
    const message =
      'key 0123456789abcdef0123 at https://user:pass@host/secret for 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266\u0007'
    const failure = failureOf(() => parseResults(answer(1, { error: { code: -32000, message } }), [1]))
    assert.equal(failure.message, 'error -32000: key … at … for … ')
  })
})

describe('hex', () => {
  it('is lower case and whole bytes for data', () => {
    assert.ok(['0x', '0x00', '0xabcdef'].every(isHexData))
    assert.ok(!['', '0', '0x0', '0xAB', '0xg0', 'ab', '0x00\n', '0x00 ', null, 1, '0x0x'].some(isHexData))
    assert.ok(isHexData(`0x${'ab'.repeat(4_000_000)}`))
  })

  it('has no leading zeros and 64 bits at most for a quantity', () => {
    assert.deepEqual(['0x0', '0x10', '0xffffffffffffffff'].map(parseQuantity), [0n, 16n, 2n ** 64n - 1n])
    assert.deepEqual(
      ['0x', '0x01', '0x1_', '1', 1, '0x10000000000000000', '0xA', null].map(parseQuantity),
      Array(8).fill(null),
    )
  })
})
