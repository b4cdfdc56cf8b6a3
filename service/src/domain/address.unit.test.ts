import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseAddress } from './address.ts'

const checksummed = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'

describe('an address', () => {
  it('is returned in lower case', () => {
    for (const text of [checksummed, checksummed.toLowerCase()])
      assert.equal(parseAddress(text), checksummed.toLowerCase())
  })

  it('is null where capitals are not its checksum, or the text is none', () => {
    const wrong = checksummed.replace('C518', 'c518')
    for (const text of ['', '0x12', wrong, checksummed.slice(2), `${checksummed}0`])
      assert.equal(parseAddress(text), null)
  })
})
