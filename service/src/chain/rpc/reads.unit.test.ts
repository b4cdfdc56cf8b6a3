import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseLogs } from './reads.ts'
import { RpcError } from './answer.ts'

const contract = '0x00000000000000000000000000000000000000c0'
const hash = `0x${'ab'.repeat(32)}`
const log = {
  address: contract,
  topics: [hash],
  data: '0x',
  removed: false,
  blockNumber: '0x5',
  blockHash: hash,
  logIndex: '0x1',
  transactionHash: hash,
  transactionIndex: '0x0',
}
const rejects = (value: unknown) => assert.throws(() => parseLogs(value, contract), RpcError)

describe('logs of the registry', () => {
  it('are decoded in their order', () => {
    const logs = parseLogs([log, { ...log, logIndex: '0x4', data: '0x00ff' }, { ...log, blockNumber: '0x6' }], contract)
    assert.deepEqual(
      logs.map(({ blockNumber, logIndex, data }) => [blockNumber, logIndex, data]),
      [
        [5n, 1, '0x'],
        [5n, 4, '0x00ff'],
        [6n, 1, '0x'],
      ],
    )
    assert.deepEqual(parseLogs([], contract), [])
  })

  it('may write the address with capitals, and leave `removed` out', () => {
    const { removed: _, ...without } = { ...log, address: contract.toUpperCase().replace('X', 'x') }
    assert.equal(parseLogs([without], contract)[0]?.address, contract)
  })

  const wrong: Record<string, object> = {
    'of another contract': { address: `0x${'00'.repeat(20)}` },
    'that a reorg removed': { removed: true },
    'with a short topic': { topics: ['0x01'] },
    'with five topics': { topics: Array(5).fill(hash) },
    'without data': { data: null },
    'with half a byte of data': { data: '0x0' },
    'of a pending block': { blockNumber: null, blockHash: null },
    'without an index': { logIndex: null },
  }
  for (const [how, part] of Object.entries(wrong)) {
    it(`are rejected with one ${how}`, () => rejects([{ ...log, ...part }]))
  }

  it('are rejected out of order, doubled, or with one block number under two hashes', () => {
    rejects([{ ...log, logIndex: '0x2' }, log])
    rejects([log, log])
    rejects([{ ...log, blockNumber: '0x6' }, log])
    rejects([log, { ...log, logIndex: '0x2', blockHash: `0x${'cd'.repeat(32)}` }])
  })

  it('are rejected if they are no list', () => {
    for (const value of [null, {}, 'logs', [null], [[]]]) rejects(value)
  })
})
