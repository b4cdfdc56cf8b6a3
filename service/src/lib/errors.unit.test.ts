import assert from 'node:assert/strict'
import { readdir, stat } from 'node:fs/promises'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { chainUnavailable, ifMissing, reasonOf, ServiceError } from './errors.ts'

const address = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const hash = `0x${'ab'.repeat(32)}`
const signature = `0x${'cd'.repeat(65)}`

describe('the reason in a log line', () => {
  it('names causes, and hashes of blocks and transactions', () => {
    const error = new Error('not sent', { cause: new Error(`transaction ${hash} is unknown`) })
    assert.equal(reasonOf(error), `not sent: transaction ${hash} is unknown`)
  })

  it('names no account and no signature, wherever a provider put it', () => {
    for (const text of [
      address,
      address.toLowerCase(),
      signature,
      `0x${'0'.repeat(24)}${address.slice(2)}${'0'.repeat(80)}`,
    ]) {
      const reason = reasonOf(new Error('refused', { cause: `insufficient funds of ${text}, have 0` }))
      assert.equal(reason, 'refused: insufficient funds of 0x…, have 0')
    }
  })

  it('is one line of visible text, whatever a provider sent', () => {
    const sent = new SyntaxError('Unexpected token "\x1b[2K\r\nEvery field agrees\x1b]0;x\x07\u202e"')
    const reason = reasonOf(new Error('The RPC did not answer.', { cause: sent }))
    assert.equal(
      reason,
      'The RPC did not answer: Unexpected token "\ufffd[2K Every field agrees\ufffd]0;x\ufffd\ufffd"',
    )
  })

  it('leaves out a cause that is neither an error nor a text', () => {
    assert.equal(reasonOf(new Error('Refused.', { cause: { code: -3, message: 'x' } })), 'Refused.')
    assert.equal(reasonOf({}), 'object')
  })

  it('is that of the first of several errors', () => {
    const refused = new Error('connect ECONNREFUSED 127.0.0.1:5432', { cause: new Error('why') })
    const several = new Error('No answer.', { cause: new AggregateError([refused, new Error('second')]) })
    assert.equal(reasonOf(several), 'No answer: connect ECONNREFUSED 127.0.0.1:5432: why')
    assert.equal(reasonOf(new AggregateError([])), 'AggregateError')
  })

  it('is short, and cuts nothing open', () => {
    const reason = reasonOf(new Error(`${'x'.repeat(490)} ${address}`))
    assert.ok(reason.length <= 500 && !reason.includes('70997'))
  })
})

describe('a file that is not there', () => {
  it('is a value, and every other fault of the disk stays a fault', async () => {
    assert.equal(await stat('/nowhere').catch(ifMissing(null)), null)
    await assert.rejects(readdir(fileURLToPath(import.meta.url)).catch(ifMissing([])), { code: 'ENOTDIR' })
  })
})

describe('an unavailable chain', () => {
  it('keeps the reason as the cause, and is made once', () => {
    const error = chainUnavailable('no head')
    assert.deepEqual([error.code, error.status, reasonOf(error.cause)], ['CHAIN_UNAVAILABLE', 502, 'no head'])
    assert.equal(chainUnavailable(error), error)
    const other = new ServiceError('INTERNAL', 'no')
    assert.equal(chainUnavailable(other), other)
  })
})
