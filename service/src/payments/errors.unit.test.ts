import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { errors, uncharged, within, GatewayFault, type PaymentErrorCode } from './errors.ts'
import { reasons } from './facilitator/remote.ts'
import { createPaymentRequired } from './x402/terms.ts'

const codes = Object.keys(errors) as PaymentErrorCode[]
const terms = {
  price: 10_000n,
  asset: `0x${'11'.repeat(20)}`,
  payTo: `0x${'22'.repeat(20)}`,
  resource: 'https://gateway.example/verify',
  tokenName: 'USDC',
  tokenVersion: '2',
} as const

describe('the closed list of errors', () => {
  it('says each in one plain sentence or two, at most 200 characters', () => {
    for (const code of codes) {
      assert.match(code, /^[a-z0-9_]+$/)
      assert.ok(errors[code].message.length <= 200, code)
      assert.match(errors[code].message, /^[A-Z0-9a-z].*\.$/, code)
    }
  })

  it('says that nothing was charged of exactly those that count as uncharged', () => {
    for (const code of codes)
      assert.equal(uncharged.has(code), errors[code].message.includes('Nothing was charged.'), code)
  })

  it('sends Retry-After with every 503', () => {
    for (const code of codes) assert.equal(errors[code].retryAfter !== undefined, errors[code].status === 503, code)
  })

  it('carries the payment requirements with every 402, under its code in body and header', () => {
    const required = createPaymentRequired(terms)
    for (const code of codes) {
      const requirements = required.get(code)
      assert.equal(requirements !== undefined, errors[code].status === 402, code)
      if (requirements === undefined) continue
      assert.equal((JSON.parse(requirements.body) as { error: string }).error, code)
      assert.equal((JSON.parse(Buffer.from(requirements.header, 'base64').toString()) as { error: string }).error, code)
      assert.ok(requirements.header.length < 4_096)
    }
  })

  it('blames the buyer only with 402', () => {
    for (const error of Object.values(reasons)) assert.equal(errors[error].status, 402, error)
  })
})

describe('a deadline', () => {
  it('makes a late answer and a failure the fault of its code', async () => {
    const late = within(5, 'signer_unavailable', new Promise<never>(() => {}))
    await assert.rejects(late, (error) => error instanceof GatewayFault && error.error === 'signer_unavailable')
    const failed = within(1_000, 'chain_unavailable', Promise.reject(new Error('no')))
    await assert.rejects(failed, (error) => error instanceof GatewayFault && error.error === 'chain_unavailable')
    assert.equal(await within(1_000, 'internal_error', Promise.resolve(1)), 1)
  })
})
