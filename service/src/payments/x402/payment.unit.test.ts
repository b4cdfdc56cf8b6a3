import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import fc from 'fast-check'
import { checkTerms, checkTimes, decodePayment, type Payment } from './payment.ts'
import { channelTerms, type PaymentTerms } from './terms.ts'

const address = `0x${'Ab'.repeat(20)}` as const
const authorization = {
  from: address,
  to: address,
  value: '10000',
  validAfter: '0',
  validBefore: '1900000000',
  nonce: `0x${'Cd'.repeat(32)}`,
}
const first = { x402Version: 1, scheme: 'exact', network: 'base-sepolia' }
const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64')
const headerOf = (changed: object, signature = `0x${'11'.repeat(64)}1b`) =>
  base64({ ...first, payload: { signature, authorization: { ...authorization, ...changed } } })

const terms: PaymentTerms = {
  price: 10_000n,
  asset: address,
  payTo: address,
  resource: 'https://example.com/verify',
  tokenName: 'USDC',
  tokenVersion: '2',
}
const lower = address.toLowerCase() as Hex
const paid: Payment = {
  from: lower,
  to: lower,
  value: 10_000n,
  validAfter: 0n,
  validBefore: 1_900_000_000n,
  nonce: `0x${'cd'.repeat(32)}`,
  signature: `0x${'11'.repeat(64)}1b`,
}

describe('a payment header', () => {
  it('is read with addresses, nonce and signature in lower case', () => {
    const decoded = decodePayment(headerOf({}), undefined)
    assert.ok(decoded.kind === 'payment')
    assert.equal(decoded.payment.from, address.toLowerCase())
    assert.equal(decoded.payment.value, 10_000n)
    assert.equal(decoded.accepted, undefined)
  })

  it('gets the parity that the token takes', () => {
    for (const [written, read] of [
      ['00', '1b'],
      ['01', '1c'],
      ['1c', '1c'],
    ] as const) {
      const decoded = decodePayment(headerOf({}, `0x${'11'.repeat(64)}${written}`), undefined)
      assert.ok(decoded.kind === 'payment')
      assert.equal(decoded.payment.signature.slice(130), read)
    }
  })

  it('has at most 8,192 characters', () => {
    const kindOf = (bytes: number) => {
      const envelope = { ...first, payload: { signature: paid.signature, authorization }, more: '' }
      const more = 'x'.repeat(bytes - JSON.stringify(envelope).length)
      const header = base64({ ...envelope, more })
      return [header.length, decodePayment(header, undefined).kind]
    }
    assert.deepEqual(kindOf(6_144), [8_192, 'payment'])
    assert.deepEqual(kindOf(6_145), [8_196, 'error'])
  })

  it('of version 2 wins over one of version 1', () => {
    const decoded = decodePayment(headerOf({}), base64({ x402Version: 2 }))
    assert.deepEqual(decoded, { kind: 'error', error: 'invalid_payment_requirements' })
  })

  it('that is missing is no payment', () => {
    assert.deepEqual(decodePayment(undefined, undefined), { kind: 'none' })
  })

  it('with a leading zero in a number is refused', () => {
    for (const field of ['value', 'validAfter', 'validBefore'])
      for (const value of ['010000', '00'])
        assert.deepEqual(decodePayment(headerOf({ [field]: value }), undefined), {
          kind: 'error',
          error: 'invalid_payload',
        })
  })

  it('is valid for at most an hour longer than the terms ask for', () => {
    const now = 1_900_000_000n
    const check = (validBefore: bigint) => {
      const decoded = decodePayment(headerOf({ validBefore: String(validBefore) }), undefined)
      return decoded.kind === 'payment' ? checkTimes(decoded.payment, now) : decoded
    }
    assert.deepEqual([now + 3_630n, now + 3_631n, 2n ** 256n - 1n].map(check), [
      undefined,
      'authorization_valid_too_long',
      'authorization_valid_too_long',
    ])
  })

  it('has begun before this second, and has six seconds left in which it is mined', () => {
    const now = 1_900_000_000n
    const check = (validAfter: bigint, validBefore: bigint) => checkTimes({ ...paid, validAfter, validBefore }, now)
    assert.equal(check(now - 1n, now + 6n), undefined)
    assert.equal(check(now, now + 6n), 'authorization_not_yet_valid')
    assert.equal(check(now - 1n, now + 5n), 'authorization_expired')
  })

  it('may pay a deposit from the smallest one on, and none where no channel is offered', () => {
    const config = {
      payer: paid.from,
      payerAuthorizer: paid.from,
      receiver: paid.to,
      receiverAuthorizer: paid.to,
      token: terms.asset,
      withdrawDelay: 86_400,
      salt: paid.nonce,
    }
    const channels = channelTerms([{ address }], terms.price)
    const check = (value: bigint, offered: object) =>
      checkTerms({ payment: { ...paid, value, deposit: { config, salt: paid.nonce } } }, { ...terms, ...offered })
    assert.equal(check(channels.minDeposit, { channels }), undefined)
    assert.equal(check(channels.minDeposit - 1n, { channels }), 'deposit_too_small')
    assert.equal(check(channels.minDeposit, {}), 'deposit_too_small')
  })

  it('of any text at all is an answer, never an exception', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json().map(base64JsonText)), (text) => {
        for (const decoded of [decodePayment(text, undefined), decodePayment(undefined, text)])
          assert.notEqual(decoded.kind, 'payment')
      }),
    )
  })

  it('with any value in place of a field is refused or read exactly', () => {
    const fields = fc.constantFrom(...(Object.keys(authorization) as (keyof typeof authorization)[]))
    const hex = (bytes: number) =>
      fc
        .uint8Array({ minLength: bytes, maxLength: bytes })
        .map((each) => `0x${Buffer.from(each).toString('hex').toUpperCase()}`)
    const values = fc.oneof(fc.anything(), fc.bigInt(0n, 2n ** 256n).map(String), hex(20), hex(32))
    let read = 0
    fc.assert(
      fc.property(fields, values, (field, value) => {
        const decoded = decodePayment(headerOf({ [field]: value }), undefined)
        if (decoded.kind !== 'payment') return
        read += 1
        assert.equal(
          String(decoded.payment[field]),
          String(typeof value === 'string' && value.startsWith('0x') ? value.toLowerCase() : BigInt(value as string)),
        )
      }),
      { numRuns: 500 },
    )
    assert.ok(read > 20, `${read} payments were read`)
  })
})

function base64JsonText(text: string): string {
  return Buffer.from(text).toString('base64')
}

describe('a payment channel', () => {
  it('is opened with a hundred prices, 5 USDC at most, and one price at least', () => {
    const deposits = [10_000n, 50_001n, 5_000_000n, 7_000_000n].map(
      (price) => channelTerms([{ address }], price).minDeposit,
    )
    assert.deepEqual(deposits, [1_000_000n, 5_000_000n, 5_000_000n, 7_000_000n])
  })

  it('takes the first account for new ones, and those of accounts before it', () => {
    const before = `0x${'Ef'.repeat(20)}` as const
    const { receiverAuthorizers } = channelTerms([{ address }, { address: before }], 1n)
    assert.deepEqual(receiverAuthorizers, [address, before])
  })
})
