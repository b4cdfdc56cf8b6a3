import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isRefusal, unavailable, VerdictError } from './errors.ts'

const refusal = new VerdictError('RPC_REFUSED', 'The RPC refused eth_call.', { cause: { code: 3 } })
const silence = new VerdictError('RPC_UNAVAILABLE', 'The RPC did not answer eth_call.')

describe('unavailable', () => {
  it('turns a refusal into a fault of the endpoint, with the same cause', () => {
    const fault = unavailable(refusal)
    assert.ok(fault instanceof VerdictError)
    assert.deepEqual([fault.name, fault.code, fault.cause], ['VerdictError', 'RPC_UNAVAILABLE', { code: 3 }])
    assert.equal(fault.message, 'The RPC refused eth_call. For old blocks it must keep old state.')
  })

  it('leaves any other fault as it is', () => {
    for (const fault of [silence, new TypeError('x'), 'x', undefined]) assert.equal(unavailable(fault), fault)
  })
})

describe('isRefusal', () => {
  it('holds for a JSON-RPC error only', () => {
    const alike = Object.assign(new Error('x'), { code: 'RPC_REFUSED' })
    assert.deepEqual([refusal, silence, alike, null].map(isRefusal), [true, false, false, false])
  })
})
