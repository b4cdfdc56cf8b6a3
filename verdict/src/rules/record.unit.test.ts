import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { anyRecord } from '../../test/_records.ts'
import { type Hex, word } from '../lib/hex.ts'
import { recordOfGetAsset, recordOfWord, wordOfRecord } from './record.ts'

const owner = 0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266n

/** Returns the data of `getAsset` for five values. */
function returned(...values: bigint[]): Hex {
  return `0x${values.map(word).join('')}`
}

describe('recordOfWord', () => {
  it('finds every member at its bits', () => {
    const stored = owner | (1_700_000_000n << 160n) | (4n << 224n) | (0x20n << 232n) | (0x0103n << 240n)
    assert.deepEqual(recordOfWord(stored), {
      owner: '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266',
      timestamp: 1_700_000_000n,
      state: 4,
      flags: 0x20,
      reserved: 0x0103,
    })
  })

  it('undoes wordOfRecord for every record', () => {
    fc.assert(fc.property(anyRecord, (record) => assert.deepEqual(recordOfWord(wordOfRecord(record)), record)))
  })

  it('reads zero as the record of a token that was never minted', () => {
    assert.equal(recordOfWord(0n)?.state, 0)
  })

  it('refuses unknown states, state 0 in a used word, and more than 256 bits', () => {
    assert.equal(recordOfWord(7n << 224n), null)
    assert.equal(recordOfWord(255n << 224n), null)
    assert.equal(recordOfWord(1n), null)
    assert.equal(recordOfWord(1n << 240n), null)
    assert.equal(recordOfWord((1n << 256n) | (1n << 224n)), null)
  })
})

describe('recordOfGetAsset', () => {
  it('gives the record that the storage word gives', () => {
    fc.assert(
      fc.property(anyRecord, (record) => {
        const { owner: address, timestamp, state, flags, reserved } = record
        const data = returned(BigInt(address), timestamp, BigInt(state), BigInt(flags), BigInt(reserved))
        assert.deepEqual(recordOfGetAsset(data), record)
      }),
    )
  })

  it('reads a zero owner with a state', () => {
    assert.equal(recordOfGetAsset(returned(0n, 1n, 1n, 0n, 0n))?.owner, `0x${'0'.repeat(40)}`)
  })

  const wrong: Record<string, Hex> = {
    'no data': '0x',
    'four words': returned(owner, 1n, 1n, 0n),
    'six words': returned(owner, 1n, 1n, 0n, 0n, 0n),
    'half a word more': `${returned(owner, 1n, 1n, 0n, 0n)}00`,
    'a text before it': `0${returned(owner, 1n, 1n, 0n, 0n)}` as Hex,
    'a line feed after it': `${returned(owner, 1n, 1n, 0n, 0n)}\n`,
    ...Object.fromEntries(
      ['address', 'timestamp', 'state', 'flags', 'reserved'].map((name, index) => {
        const words = [owner, 1n, 1n, 0n, 0n].with(index, ([owner, 1n, 1n, 0n, 0n][index] ?? 0n) | (1n << 255n))
        return [`the highest bit above the ${name}`, returned(...words)]
      }),
    ),
    'upper-case digits': returned(owner, 1n, 1n, 0n, 0n).toUpperCase().replace('0X', '0x') as Hex,
    'dirty address bits': returned(owner | (1n << 160n), 1n, 1n, 0n, 0n),
    'a timestamp over 64 bits': returned(owner, 1n << 64n, 1n, 0n, 0n),
    'state 7': returned(owner, 1n, 7n, 0n, 0n),
    'state 260': returned(owner, 1n, 260n, 0n, 0n),
    'flags over 8 bits': returned(owner, 1n, 1n, 256n, 0n),
    'reserved over 16 bits': returned(owner, 1n, 1n, 0n, 65536n),
    'state 0 with an owner': returned(owner, 0n, 0n, 0n, 0n),
    'state 0 with flags': returned(0n, 0n, 0n, 1n, 0n),
  }
  for (const [name, data] of Object.entries(wrong))
    it(`refuses ${name}`, () => assert.equal(recordOfGetAsset(data), null))
})
