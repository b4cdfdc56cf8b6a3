import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { errors, messageOf, retryAfterOf, statusOf, within, GatewayFault, type ErrorCode } from './answers.ts'
import { reasons } from './facilitator.ts'
import { createOffers } from './offer.ts'

const codes = Object.keys(errors) as ErrorCode[]
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
      assert.ok(messageOf(code).length <= 200, code)
      assert.match(messageOf(code), /^[A-Z0-9a-z].*\.$/, code)
    }
  })

  it('tells whoever gets 503 when to come back', () => {
    for (const code of codes) assert.equal(retryAfterOf(code) !== undefined, statusOf(code) === 503, code)
  })

  it('carries the offer with every 402, under its code in body and header', () => {
    const offers = createOffers(terms)
    for (const code of codes) {
      const offer = offers.get(code)
      assert.equal(offer !== undefined, statusOf(code) === 402, code)
      if (offer === undefined) continue
      assert.equal((JSON.parse(offer.body) as { error: string }).error, code)
      assert.equal((JSON.parse(Buffer.from(offer.header, 'base64').toString()) as { error: string }).error, code)
      assert.ok(offer.header.length < 4_096)
    }
  })

  it('blames the buyer only with 402', () => {
    for (const error of Object.values(reasons)) assert.equal(statusOf(error), 402, error)
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
