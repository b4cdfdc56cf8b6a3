/** Steps of ownership over one asset in memory. Its writer keeps what it sends, and mines it at once. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Hex, lifecycleStates, type LifecycleState, type StateCode } from '@touchstone/verdict'
import { serializeTransaction } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { writeCallOf } from '../chain/transactions/calls.ts'
import { writeFailure } from '../chain/transactions/failures.ts'
import type { Operation } from '../chain/transactions/operations.ts'
import type { TransferPosition } from '../chain/transactions/transfer-reads.ts'
import { registryDigest, type Signable } from '../chain/transactions/typed-data.ts'
import { chainId, zeroHash } from '../domain/chain.ts'
import { recoverSigner } from '../lib/secp256k1.ts'
import { createItemClaims } from './claims.ts'
import { answers, consentOf, invalidationOf, offerOf } from './consents.ts'
import { createPageTransfers } from './page-transfers.ts'
import type { SignedWriteDeps } from './signed-writes.ts'
import { parseTransferId } from './transfer-id.ts'

const contract: Hex = `0x${'12'.repeat(20)}`
const domain = { contract, chainId }
const time = 1_800_000_000n
const tap = { tokenId: 7n, tagHash: zeroHash, epoch: 0, tapCounter: 1 }

function newAccount() {
  const { address, sign } = privateKeyToAccount(generatePrivateKey())
  return {
    account: address.toLowerCase() as Hex,
    sign: (signable: Signable) => sign({ hash: registryDigest(domain, signable) }),
  }
}
const [owner, buyer, stranger] = [newAccount(), newAccount(), newAccount()]

function assetIn(state: LifecycleState, offer: Partial<TransferPosition['offer']> = {}) {
  const sent = new Map<string, Hex>()
  const block = { number: 5n, hash: zeroHash, timestamp: time }
  const record = { owner: owner.account, timestamp: time, flags: 0, reserved: 0 }
  const asset = {
    at: {
      tokenId: tap.tokenId,
      block,
      time,
      record: { ...record, state: lifecycleStates.indexOf(state) as StateCode },
      offer: { to: null, expiry: 0n, nonce: 3, ...offer },
    } as TransferPosition,
    /** Run before and after the position is read, once. */
    beforeRead: async (): Promise<unknown> => undefined,
    afterRead: async (): Promise<unknown> => undefined,
    reached: [] as bigint[],
  }
  const once = (name: 'beforeRead' | 'afterRead') => {
    const run = asset[name]
    asset[name] = async () => undefined
    return run()
  }
  let attested = 0
  const deps: SignedWriteDeps = {
    operations: {
      async find(key) {
        const data = sent.get(key)
        return data && ({ raw: serializeTransaction({ type: 'eip1559', chainId, data }) } as Operation)
      },
    },
    writer: {
      async attestClaim() {
        attested += 1 // a key in a token makes another signature each time
        return { ok: true, attester: contract, attesterSignature: `0x0${attested}`, nonce: asset.at.offer.nonce }
      },
      async write(request, { idempotencyKey }) {
        const { data } = writeCallOf(request) ?? assert.fail()
        const repeated = sent.has(idempotencyKey)
        if (repeated && sent.get(idempotencyKey) !== data) return writeFailure('IDEMPOTENCY_CONFLICT')
        sent.set(idempotencyKey, data)
        const changed = request.kind === 'claim' ? { owner: request.claimant, state: 4 as const } : {}
        const { at } = asset
        const nonce = at.offer.nonce + (repeated ? 0 : 1)
        asset.at = { ...at, record: { ...at.record, ...changed }, offer: { ...at.offer, nonce } }
        const mined = { txHash: zeroHash, blockNumber: 9n, blockHash: zeroHash, tokenIds: [] }
        return { ok: true, status: 'CONFIRMED', repeated, ...mined }
      },
    },
    transfers: {
      domain,
      async position() {
        await once('beforeRead')
        const { at } = asset
        await once('afterRead')
        return at
      },
      isSignedBy: async ({ signer, signable, signature }) =>
        recoverSigner(registryDigest(domain, signable), signature) === signer,
      version: async () => 2,
      reached: (reached) => void asset.reached.push(reached),
    },
  }
  return Object.assign(asset, { sent, claims: createItemClaims(deps), transfers: createPageTransfers(deps) })
}

const mined = { status: 'mined', txHash: zeroHash }

describe('a step that comes twice at one time', () => {
  it('is one claim, also where the attester makes another signature, and none for another wallet', async () => {
    for (const when of ['beforeRead', 'afterRead'] as const) {
      const asset = assetIn('ACTIVATED')
      const claimOf = async ({ account: claimant, sign }: typeof buyer) => {
        const deadline = time + 600n
        return {
          ...tap,
          claimant,
          deadline,
          signature: await sign(consentOf(asset.at, { claimant, deadline }).signable),
        }
      }
      const [claim, another] = [await claimOf(buyer), await claimOf(stranger)]
      asset[when] = async () => assert.deepEqual(await asset.claims.claim(claim), mined)
      assert.deepEqual(await asset.claims.claim(claim), mined, when)
      assert.equal(await asset.claims.claim(another), 'taken')
      assert.ok(asset.reached.includes(9n), 'a lower block is not read any more')
    }
  })

  it('voids once', async () => {
    const asset = assetIn('CLAIMED')
    const { account } = owner
    const step = { ...tap, account, signature: await owner.sign(invalidationOf(asset.at)) }
    asset.beforeRead = async () => assert.deepEqual(await asset.transfers.withdraw(step), mined)
    assert.deepEqual(await asset.transfers.withdraw(step), mined)
  })
})

describe('an offer', () => {
  const terms = {
    tokenId: tap.tokenId,
    from: owner.account,
    to: buyer.account,
    expiry: time + 60n,
    messageHash: zeroHash,
  }
  const { to, expiry } = terms
  const offerAs = async ({ transfers }: ReturnType<typeof assetIn>, changed: object) => {
    const offered = { ...terms, ...changed }
    const signature = await owner.sign(offerOf(offered, 2))
    return transfers.offer({ ...tap, account: owner.account, to: offered.to, deadline: offered.expiry, signature })
  }

  it('that stands was made by the signature over its own account and end, not by others over the same nonce', async () => {
    const asset = assetIn('CLAIMED', { to, expiry })
    assert.deepEqual(await offerAs(asset, {}), { status: 'mined', transferId: '7-3' })
    for (const changed of [{ to: stranger.account }, { expiry: expiry - 1n }])
      assert.deepEqual(await offerAs(asset, changed), { standing: '7-3' })
  })

  it('may follow one whose end has passed', async () => {
    const input = { ...tap, account: owner.account, to }
    const termsAfter = (end: bigint) => assetIn('CLAIMED', { to, expiry: end }).transfers.offerTerms(input)
    assert.deepEqual(await termsAfter(time), { standing: '7-3' })
    assert.ok('typedData' in Object(await termsAfter(time - 1n)))
  })

  it('of a reported item is ended by either side, and not accepted', async () => {
    const asset = assetIn('FLAGGED', { to, expiry })
    const transferId = parseTransferId('7-3') ?? assert.fail()
    assert.equal(await asset.transfers.acceptTerms({ transferId, account: to }), 'held')
    const signature = await buyer.sign(answers.CANCEL(asset.at, 3).signable)
    assert.deepEqual(await asset.transfers.cancel({ transferId, account: to, signature }), mined)
    assert.match([...asset.sent.keys()].join(), /^page-cancel:[0-9a-f]{64}$/, 'a key that shows no account')
  })
})

describe('the id of a transfer', () => {
  it('has no zeros in front, and the range of a token and a nonce', () => {
    assert.deepEqual(parseTransferId('007-01'), { id: '7-1', tokenId: 7n, nonce: 1 })
    assert.equal(parseTransferId(`${2n ** 256n - 1n}-4294967295`)?.nonce, 0xffffffff)
    for (const text of [`${2n ** 256n}-1`, '7-4294967296', '7-', '-1', '7', '7-1x', ' 7-1', '7-1\n', '0x7-1'])
      assert.equal(parseTransferId(text), null, text)
  })
})
