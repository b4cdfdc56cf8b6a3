import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { headerHash } from '@touchstone/verdict'
import { assertFresh, createHeadLag } from './head.ts'
import { parseBlock } from './block.ts'
import { RpcError } from './answer.ts'

const word = (byte: string) => `0x${byte.repeat(32)}`

/** The header of a local node, and the hash that belongs to it. */
const fields = {
  parentHash: word('11'),
  sha3Uncles: word('12'),
  miner: `0x${'00'.repeat(20)}`,
  stateRoot: word('13'),
  transactionsRoot: word('14'),
  receiptsRoot: word('15'),
  logsBloom: `0x${'00'.repeat(256)}`,
  difficulty: '0x0',
  number: '0x5',
  gasLimit: '0x1c9c380',
  gasUsed: '0x0',
  timestamp: '0x6b013e93',
  extraData: '0x',
  mixHash: word('16'),
  nonce: '0x0000000000000000',
  baseFeePerGas: '0x22f06c09',
  withdrawalsRoot: word('17'),
  blobGasUsed: '0x0',
  excessBlobGas: '0x0',
  parentBeaconBlockRoot: word('00'),
  requestsHash: word('18'),
}
const sealed = (header: typeof fields) => ({
  ...header,
  hash: headerHash(header),
  transactions: [word('ff')],
  size: '0x267',
})
const never = () => assert.fail('the header can be checked')

describe('a block', () => {
  it('is accepted when its header hashes to its hash', () => {
    const block = parseBlock(sealed(fields), never)
    assert.deepEqual([block.number, block.parentHash, block.timestamp], [5n, word('11'), 0x6b013e93n])
    assert.equal(block.hash, headerHash(fields))
    assert.equal(headerHash(block.header), block.hash)
    assert.equal('transactions' in block.header, false)
  })

  it('is rejected when one field of it is another', () => {
    for (const [name, value] of Object.entries({
      number: '0x6',
      timestamp: '0x6b013e94',
      stateRoot: word('99'),
      gasUsed: '0x1',
    })) {
      assert.throws(() => parseBlock({ ...sealed(fields), [name]: value }, never), RpcError, name)
    }
  })

  it('is rejected without a state', () => {
    assert.throws(() => parseBlock(sealed({ ...fields, stateRoot: word('00') }), never), /zero stateRoot/)
  })

  it('is rejected if it is pending, absent or of another form', () => {
    const block = sealed(fields)
    for (const wrong of [
      null,
      [],
      'x',
      { ...block, hash: null },
      { ...block, number: null },
      { ...block, number: 5 },
      { ...block, timestamp: '0x01' },
    ]) {
      assert.throws(() => parseBlock(wrong, never), RpcError)
    }
  })

  it('is said to be unchecked if it has a field that this code does not know', () => {
    let unchecked = 0
    const block = parseBlock({ ...sealed(fields), hash: word('77'), newForkRoot: word('19') }, () => unchecked++)
    assert.deepEqual([block.hash, unchecked], [word('77'), 1])
  })
})

describe('a head', () => {
  const block = parseBlock(sealed(fields), never)
  const madeAt = Number(block.timestamp) * 1000

  it('may be as old as is allowed', () => {
    assertFresh(block, madeAt + 30_000, 30)
    assert.throws(() => assertFresh(block, madeAt + 31_000, 30), /31 s old/)
  })

  it('may not be of the future either, which would never grow old', () => {
    assertFresh(block, madeAt - 30_000, 30)
    assert.throws(() => assertFresh(block, madeAt - 31_000, 30), RpcError)
  })

  it('may have any age if the limit is 0', () => assertFresh(block, 0, 0))
})

describe('a provider is behind', () => {
  it('from 25 blocks on', () => {
    const lag = createHeadLag(() => 0)
    lag.saw(0, 1000n)
    lag.saw(1, 976n)
    assert.deepEqual([lag.isBehind(0), lag.isBehind(1)], [false, false])
    lag.saw(1, 975n)
    assert.deepEqual([lag.isBehind(0), lag.isBehind(1)], [false, true])
  })

  it('not because it was asked five seconds earlier', () => {
    const clock = { ms: 0 }
    const lag = createHeadLag(() => clock.ms)
    lag.saw(0, 1000n)
    clock.ms = 5000
    lag.saw(1, 1000n + 25n)
    assert.equal(lag.isBehind(0), false)
    lag.saw(1, 1000n + 50n)
    assert.equal(lag.isBehind(0), true)
  })

  it('not because of a head seen long ago', () => {
    const clock = { ms: 0 }
    const lag = createHeadLag(() => clock.ms)
    lag.saw(0, 1000n)
    clock.ms = 15_001
    lag.saw(1, 10n)
    assert.equal(lag.isBehind(1), false)
  })

  it('not if it is the only one, or was never asked', () => {
    const lag = createHeadLag(() => 0)
    lag.saw(0, 1000n)
    lag.saw(0, 3n)
    assert.deepEqual([lag.isBehind(0), lag.isBehind(1)], [false, false])
  })
})
