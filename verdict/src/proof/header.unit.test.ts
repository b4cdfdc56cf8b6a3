import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { headerHash, unknownHeaderMembers } from './header.ts'

/** A block of anvil 1.7.1, whole. */
const header = {
  hash: '0xe86b5f971d9f5a3a617df6ae325c08c04f29389d64eb81f35722bb5241156e46',
  parentHash: '0x610dd490a9241bd85d44d5af5f8a8c6b21c98efbeb2420e446a7ea98424bf1ee',
  sha3Uncles: '0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347',
  miner: '0x0000000000000000000000000000000000000000',
  stateRoot: '0xb0399ef32827d604e696d607e470122d9e2d7c79f0f19d80e9d748e8b8eeadad',
  transactionsRoot: '0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421',
  receiptsRoot: '0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421',
  logsBloom: `0x${'00'.repeat(256)}`,
  difficulty: '0x0',
  number: '0x3',
  gasLimit: '0x1c9c380',
  gasUsed: '0x0',
  timestamp: '0x6b01447e',
  extraData: '0x',
  mixHash: '0xeac4618abd5413c9c42fa2b52250fa48e253ba23c936157060ff3689ac4c4df0',
  nonce: '0x0000000000000000',
  baseFeePerGas: '0x2da282a8',
  withdrawalsRoot: '0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421',
  blobGasUsed: '0x0',
  excessBlobGas: '0x0',
  parentBeaconBlockRoot: `0x${'00'.repeat(32)}`,
  requestsHash: '0xe3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  totalDifficulty: '0x0',
  size: '0x267',
  uncles: [],
  transactions: [],
  withdrawals: [],
}

const besideHeader = ['hash', 'totalDifficulty', 'size', 'uncles', 'transactions', 'withdrawals']
const members = Object.keys(header).filter((name) => !besideHeader.includes(name)) as (keyof typeof header)[]

describe('headerHash', () => {
  it('is the hash of a whole block', () => assert.equal(headerHash(header), header.hash))

  it('needs the header members only', () => {
    assert.equal(headerHash(Object.fromEntries(members.map((name) => [name, header[name]]))), header.hash)
  })

  it('reads hex of either case and padded quantities', () => {
    const shouted = Object.fromEntries(
      members.map((name) => [name, `0x${String(header[name]).slice(2).toUpperCase()}`]),
    )
    assert.equal(headerHash({ ...shouted, gasUsed: '0x00', number: '0x0003' }), header.hash)
  })

  for (const name of members) {
    it(`covers ${name}`, () => {
      const changed = `${String(header[name]).slice(0, -2)}1f`.replace(/^0?x?1f$/, '0x1f')
      assert.notEqual(headerHash({ ...header, [name]: changed }), header.hash)
    })

    it(`cannot be computed without ${name}, or when it is malformed`, () => {
      const { [name]: _, ...rest } = header
      assert.equal(headerHash(rest), null)
      for (const value of [null, undefined, 7, '', 'x', '0xzz', `0x${'1'.repeat(601)}`, {}]) {
        assert.equal(headerHash({ ...header, [name]: value }), null, JSON.stringify(value))
      }
    })
  }

  const sizes = { logsBloom: 256, miner: 20, nonce: 8, mixHash: 32, parentHash: 32, requestsHash: 32 } as const
  for (const [name, size] of Object.entries(sizes))
    it(`needs exactly ${size} bytes of ${name}`, () => {
      for (const count of [0, size - 1, size + 1])
        assert.equal(headerHash({ ...header, [name]: `0x${'11'.repeat(count)}` }), null)
    })

  const quantities = [
    'difficulty',
    'number',
    'gasLimit',
    'gasUsed',
    'timestamp',
    'baseFeePerGas',
    'blobGasUsed',
  ] as const
  for (const name of [...quantities, 'excessBlobGas'] as const)
    it(`reads ${name} as a number of up to 64 digits`, () => {
      const hashes = ['0x1', '0x01', `0x${'1'.padStart(64, '0')}`].map((value) =>
        headerHash({ ...header, [name]: value }),
      )
      assert.match(hashes[0] ?? '', /^0x[0-9a-f]{64}$/)
      assert.equal(new Set(hashes).size, 1)
      for (const value of [`0x${'1'.padStart(65, '0')}`, 'a0x1', ' 0x1', '0x1 ', '0x', '1', 1, 1n])
        assert.equal(headerHash({ ...header, [name]: value }), null, String(value))
    })

  it('takes any bytes for extraData, an odd digit not', () => {
    const hashes = ['0x', '0x00', '0x0000', `0x${'11'.repeat(100)}`].map((extraData) =>
      headerHash({ ...header, extraData }),
    )
    assert.equal(new Set(hashes).size, 4)
    assert.ok(!hashes.includes(null))
    assert.equal(headerHash({ ...header, extraData: '0x1' }), null)
  })

  it('cannot be computed after a later fork, whose header has one more member that is hashed', () => {
    const forked = { ...header, blockAccessListHash: header.hash, hash: header.parentHash }
    assert.equal(headerHash(forked), null)
    assert.deepEqual(unknownHeaderMembers(forked), ['blockAccessListHash'])
    assert.equal(headerHash({ ...header, blockAccessListHash: null }), header.hash)
  })

  it('is computed beside a member of the provider’s own, as long as the others have the hash of the block', () => {
    assert.equal(headerHash({ ...header, l1BlockNumber: '0x1' }), header.hash)
    assert.equal(headerHash({ ...header, l1BlockNumber: '0x1', gasUsed: '0x1' }), null)
  })
})
