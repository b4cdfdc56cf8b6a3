/** The handshake of POST {gateway_url}/verify, the other routes and the documents; what a gateway signs, and what it never signs (spec §2.6, §4.7, §4.8, §7). */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import {
  assetFlags,
  checksumAddress,
  readPublishedKeys,
  verifyAttestation,
  type EasAttestation,
  type Hex,
} from '@touchstone/verdict'
import { encodeAbiParameters, keccak256, recoverAddress, recoverTypedDataAddress, serializeSignature } from 'viem'
import { verifyTypedData } from 'viem/utils'
import type { Database } from '../../../src/db/database.ts'
import { openAttestationKeys } from '../../../src/payments/attestation/keys.ts'
import { testFolder } from '../../support/folder.ts'
import { attestationKey, published } from '../../support/payments/components.ts'
import { openSale } from '../../support/payments/gateway.ts'
import { asset, buy, buySettled, codesOf, headerV1, healthOf, payTo, post, sign } from '../../support/payments/buyer.ts'

type Attestation = {
  message: { tokenId: string; state: number; chainId: number; timestamp: number }
  digest: Hex
  signature: Hex
  signer: Hex
  eip712: Parameters<typeof recoverTypedDataAddress>[0] & { signature: Hex }
  v2: Parameters<typeof recoverTypedDataAddress>[0] & { signature: Hex; message: Record<string, unknown> }
}

const { world, token, payer, charged } = await openSale()
const gateway = await world.open()

const decoded = (header: string | null) =>
  JSON.parse(Buffer.from(header ?? '', 'base64').toString()) as Record<string, unknown>

describe('POST /verify without a payment', () => {
  it('answers 402 with the body of version 1, field by field', async () => {
    const { status, body, headers } = await post(gateway.url, { assetId: '1', chain: 'base-sepolia' })
    assert.equal(status, 402)
    assert.equal(body['x402Version'], 1)
    assert.equal(body.error, 'payment_required')
    const [offer, ...others] = body['accepts'] as Record<string, unknown>[]
    assert.deepEqual(others, [])
    const { outputSchema, description, ...rest } = offer ?? {}
    assert.deepEqual(rest, {
      scheme: 'exact',
      network: 'base-sepolia',
      maxAmountRequired: '10000',
      resource: `${gateway.url}/verify`,
      mimeType: 'application/json',
      payTo: checksumAddress(payTo),
      maxTimeoutSeconds: 30,
      asset: checksumAddress(asset),
      extra: { name: 'USDC', version: '2' },
    })
    assert.match(String(description), /bound-state proof.*ECDSA signature/i)
    assert.equal((outputSchema as { input: { method: string } }).input.method, 'POST')
    assert.equal(headers.get('cache-control'), 'no-store')
    assert.equal(headers.get('access-control-allow-origin'), '*')
    assert.match(
      headers.get('access-control-expose-headers') ?? '',
      /PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE/,
    )
    assert.equal(headers.get('vary'), 'X-PAYMENT, PAYMENT-SIGNATURE')
  })

  it('carries the same terms for version 2 in a header below 4 kB', async () => {
    const { headers } = await post(gateway.url, {})
    const text = headers.get('payment-required') ?? ''
    assert.ok(text.length < 4_096, `${text.length}`)
    const offer = decoded(text)
    assert.equal(offer['x402Version'], 2)
    assert.equal(offer['error'], 'payment_required')
    assert.equal((offer['resource'] as { url: string }).url, `${gateway.url}/verify`)
    assert.deepEqual(offer['accepts'], [
      {
        scheme: 'exact',
        network: 'eip155:84532',
        amount: '10000',
        asset: checksumAddress(asset),
        payTo: checksumAddress(payTo),
        maxTimeoutSeconds: 30,
        extra: { name: 'USDC', version: '2' },
      },
    ])
  })

  it('leaves the header out where the setting says so', async () => {
    await using plain = await world.open({ v2Header: false })
    assert.equal((await post(plain.url, {})).headers.get('payment-required'), null)
  })

  it('is not moved by Host and X-Forwarded-Host', async () => {
    const { body } = await post(gateway.url, {}, { 'x-forwarded-host': 'evil.example' })
    assert.ok(!JSON.stringify(body).includes('evil.example'))
  })

  for (const [what, sent, status, error] of [
    ['an empty body', '', 402, 'payment_required'],
    ['{}', '{}', 402, 'payment_required'],
    ['a body without assetId', '{"chain":"base-sepolia"}', 402, 'payment_required'],
    ['an id with leading zeros', '{"assetId":"0007"}', 402, 'payment_required'],
    ['other keys', '{"assetId":"7","x":[1]}', 402, 'payment_required'],
    ['eas as a text', '{"assetId":"7","eas":"true"}', 400, 'invalid_body'],
    ['broken JSON', '{"assetId":', 400, 'invalid_body'],
    ['a list', '[]', 400, 'invalid_body'],
    ['null', 'null', 400, 'invalid_body'],
    ['a text', '"1"', 400, 'invalid_body'],
    ['another chain', '{"assetId":"1","chain":"base"}', 400, 'unsupported_chain'],
    ['a chain that is no text', '{"assetId":"1","chain":84532}', 400, 'unsupported_chain'],
    ['a number for an id', '{"assetId":1}', 400, 'invalid_asset_id'],
    ['a hex id', '{"assetId":"0x1"}', 400, 'invalid_asset_id'],
    ['a negative id', '{"assetId":"-1"}', 400, 'invalid_asset_id'],
    ['an id of 79 digits', `{"assetId":"${'0'.repeat(78)}1"}`, 400, 'invalid_asset_id'],
    ['2^256', `{"assetId":"${2n ** 256n}"}`, 400, 'invalid_asset_id'],
    ['a guarded id', `{"assetId":"${0xf87en << 240n}"}`, 400, 'asset_id_not_attestable'],
    ['17 kB', `{"assetId":"1","x":"${'x'.repeat(17_000)}"}`, 413, 'body_too_large'],
    ['1 MB', `{"assetId":"1","x":"${'x'.repeat(1_000_000)}"}`, 413, 'body_too_large'],
  ] as const) {
    it(`answers ${status} ${error} for ${what}`, async () => {
      const answer = await post(gateway.url, sent)
      assert.deepEqual(codesOf(answer), [status, error])
      assert.ok(String(answer.body['message']).length <= 200)
    })
  }

  it('answers 408 body_too_slow for a body that does not end, and closes the connection', async (t) => {
    const hasty = await world.open({ bodyTimeoutMs: 50 })
    const socket = connect(hasty.port, '127.0.0.1')
    t.after(() => socket.destroy())
    socket.write('POST /verify HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{')
    const answer = await text(socket)
    assert.match(answer, /^HTTP\/1\.1 408 [^]*Connection: close[^]*"error":"body_too_slow","message":"The body /)
  })

  it('answers 400 for a payment that names no asset, before the payment is looked at', async () => {
    assert.deepEqual(codesOf(await post(gateway.url, {}, { 'X-PAYMENT': 'AAAA' })), [400, 'invalid_asset_id'])
  })
})

describe('the other routes', () => {
  it('answers 405 with Allow, and 404 for what is not there', async () => {
    const got = await fetch(`${gateway.url}/verify`)
    assert.deepEqual([got.status, got.headers.get('allow')], [405, 'POST, OPTIONS'])
    const posted = await fetch(`${gateway.url}/health`, { method: 'POST' })
    assert.deepEqual([posted.status, posted.headers.get('allow')], [405, 'GET, HEAD, OPTIONS'])
    const nothing = await fetch(`${gateway.url}/nothing`)
    assert.deepEqual([nothing.status, ((await nothing.json()) as { error: string }).error], [404, 'not_found'])
    assert.equal((await fetch(`${gateway.url}/__proto__`)).status, 404)
  })

  it('lets pages of other origins send and read the payment headers', async () => {
    const answer = await fetch(`${gateway.url}/verify`, { method: 'OPTIONS' })
    assert.equal(answer.status, 204)
    assert.equal(answer.headers.get('access-control-allow-methods'), 'POST, OPTIONS')
    assert.equal(
      answer.headers.get('access-control-allow-headers'),
      'Content-Type, X-PAYMENT, PAYMENT-SIGNATURE, Access-Control-Expose-Headers',
    )
  })

  it('reports its health from the last check, without asking the chain', async () => {
    const before = world.payFaults.calls().length
    const health = await healthOf(gateway.url)
    assert.equal(health.status, 'ok')
    assert.match(health.runtime, /^node\/\d+\.x$/)
    assert.deepEqual(
      Object.entries(health.checks).map(([name, { ok }]) => [name, ok]),
      ['price', 'chain', 'clock', 'token', 'contract', 'facilitator', 'gas', 'ledger', 'index', 'signer'].map(
        (name) => [name, true],
      ),
    )
    assert.equal(world.payFaults.calls().length, before)
  })

  it('reports a fault of the index, which stops no sale', async () => {
    await using own = await world.open({ isIndexFaulty: async () => true })
    const { status, checks } = await healthOf(own.url)
    assert.deepEqual([status, checks['index']?.ok], ['degraded', false])
    assert.equal((await buy(own.url, token, await sign(payer))).status, 200)
  })

  it('reports a ledger that takes no writes, and offers nothing meanwhile', async () => {
    await using own = await world.open({ takesWrites: async () => false })
    const { status, checks } = await healthOf(own.url)
    assert.deepEqual([status, checks['ledger']?.message], ['degraded', 'The ledger takes no writes.'])
    assert.equal((await post(own.url, {})).status, 503)
  })

  it('publishes one document of its terms, equal to the 402', async () => {
    const texts = await Promise.all(
      ['x402', 'x402.json'].map(async (name) => (await fetch(`${gateway.url}/.well-known/${name}`)).text()),
    )
    assert.equal(texts[0], texts[1])
    const document = JSON.parse(texts[0] ?? '') as {
      x402Version: number
      x402Versions: number[]
      resources: string[]
      items: { x402Version: number; accepts: unknown }[]
    }
    const offer = await post(gateway.url, {})
    assert.equal(document.x402Version, 2)
    assert.deepEqual(document.x402Versions, [1, 2])
    assert.deepEqual(document.resources, [`${gateway.url}/verify`])
    assert.deepEqual(document.items[0]?.accepts, offer.body['accepts'])
    assert.deepEqual(document.items[1]?.accepts, decoded(offer.headers.get('payment-required'))['accepts'])
  })

  it('publishes the attestation keys as the client library reads them', async () => {
    const document: unknown = await (await fetch(`${gateway.url}/.well-known/attestation.json`)).json()
    const keys = readPublishedKeys(document)
    assert.deepEqual(
      keys?.map(({ address }) => address),
      [world.signer.address],
    )
  })

  it('publishes no list of keys that may be old: 503 keys_unavailable, in no cache, until the database answers', async () => {
    let [passed, isAway] = [0, false]
    const query: Database['query'] = (...given) =>
      isAway ? Promise.reject(new Error('connection terminated')) : world.database.query(...given)
    const keys = await openAttestationKeys({
      folder: join(testFolder(), 'keys'),
      database: { query },
      isPublicKnowledge: () => false,
      ticks: () => passed,
    })
    await using elsewhere = await world.open({ keys })
    const list = async () => {
      const { status, headers } = await fetch(`${elsewhere.url}/.well-known/attestation.json`)
      return [status, headers.get('cache-control'), headers.get('retry-after')]
    }
    isAway = true
    passed += 29_999
    assert.deepEqual(await list(), [200, 'public, max-age=30', null])
    passed += 1
    assert.deepEqual(await list(), [503, 'no-store', '5'])
    isAway = false
    assert.deepEqual(await list(), [200, 'public, max-age=30', null])
  })

  it('sells to a hand-made header without a content type', async () => {
    const response = await fetch(`${gateway.url}/verify`, {
      method: 'POST',
      headers: headerV1(await sign(payer)),
      body: new TextEncoder().encode(JSON.stringify({ assetId: String(token) })),
    })
    assert.equal(response.status, 200)
    const receipt = decoded(response.headers.get('x-payment-response'))
    assert.equal(receipt['network'], 'base-sepolia')
    assert.equal(decoded(response.headers.get('payment-response'))['network'], 'eip155:84532')
    assert.equal(receipt['payer'], payer.address)
  })
})

async function bought(tokenId: bigint, url = gateway.url) {
  const { status, body } = await buySettled(url, tokenId, await sign(payer))
  assert.equal(status, 200)
  return { body, attestation: body['attestation'] as Attestation }
}

describe('a proof', () => {
  it('is signed in each form by the published key over what it says, with a low s', async () => {
    const { attestation } = await bought(await world.mint())
    const { tokenId, state, chainId, timestamp } = attestation.message
    const types = ['uint256', 'uint8', 'uint256', 'uint64'].map((type) => ({ type }))
    const digest = keccak256(encodeAbiParameters(types, [BigInt(tokenId), state, BigInt(chainId), BigInt(timestamp)]))
    assert.equal(attestation.digest, digest)
    assert.equal(await recoverAddress({ hash: digest, signature: attestation.signature }), world.signer.address)
    assert.equal(await recoverTypedDataAddress(attestation.eip712), world.signer.address)
    assert.equal(await recoverTypedDataAddress(attestation.v2), world.signer.address)
    for (const signature of [attestation.signature, attestation.eip712.signature, attestation.v2.signature] as string[])
      assert.ok(
        BigInt(`0x${signature.slice(66, 130)}`) <= 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n,
      )
    assert.ok(Math.abs(timestamp - Date.now() / 1000) < 30)
  })

  it('names its own asset and block, and passes the client library’s check against the published keys', async () => {
    const document: unknown = await (await fetch(`${gateway.url}/.well-known/attestation.json`)).json()
    for (const tokenId of [await world.mint(), await world.mint()]) {
      const { body } = await bought(tokenId)
      const report = verifyAttestation(body, { keys: document, tokenId, contract: world.contract })
      assert.ok(report.ok, JSON.stringify(report.checks.filter(({ ok }) => !ok)))
      const other = verifyAttestation(body, { keys: document, tokenId: tokenId + 1n, contract: world.contract })
      assert.equal(other.ok, false)
    }
  })

  it('signs what it shows: authentic, flagged, the block, and with them the flag bits and the owner', async () => {
    const tokenId = await world.mint()
    const shownAndSigned = async () => {
      const { body, attestation } = await bought(tokenId)
      const { state_code: state, authentic, flagged } = body
      const chainRef = body['chainRef'] as { block_number: number; block_hash: Hex }
      const { flags, ...message } = attestation.v2.message
      const held = await world.verdicts.answer(tokenId)
      assert.deepEqual(message, {
        tokenId: String(tokenId),
        state,
        authentic,
        flagged,
        blockNumber: chainRef.block_number,
        blockHash: chainRef.block_hash,
        ownerCommitment: held?.verdict.owner_commitment,
        issuedAt: attestation.message.timestamp,
      })
      return { state, authentic, flagged, flags }
    }
    assert.deepEqual(await shownAndSigned(), { state: 1, authentic: true, flagged: false, flags: 0 })
    await world.flag(tokenId, assetFlags.RECALL)
    assert.deepEqual(await shownAndSigned(), { state: 5, authentic: false, flagged: true, flags: 4 })
  })

  it('differs for a buyer who is shown another flagged or authentic', async () => {
    const tokenId = await world.mint()
    const { body } = await bought(tokenId)
    const check = (shown: object) => verifyAttestation({ ...body, ...shown }, { signer: world.signer.address, tokenId })
    assert.equal(check({}).ok, true)
    for (const shown of [{ flagged: true }, { authentic: false }, { flagged: true, authentic: false }]) {
      const { outcome, checks } = check(shown)
      const failed = checks.filter(({ ok }) => !ok).map(({ field }) => field)
      assert.deepEqual([outcome, failed.toSorted()], ['differs', Object.keys(shown).toSorted()])
    }
  })

  it('comes as an EAS off-chain attestation on request, under the published schema', async () => {
    const tokenId = await world.mint()
    const payment = headerV1(await sign(payer))
    const { status, body } = await post(gateway.url, { assetId: String(tokenId), eas: true }, payment)
    assert.equal(status, 200)
    const { v2, eas } = body['attestation'] as Attestation & { eas: EasAttestation }
    const { sig, signer } = eas
    assert.equal(signer, world.signer.address)
    const { r, s, v } = sig.signature
    const signature = serializeSignature({ r, s, v: BigInt(v) })
    assert.ok(await verifyTypedData({ ...sig, address: signer, signature } as never))

    const url = `${gateway.url}/.well-known/attestation.json`
    const document = (await (await fetch(url)).json()) as { eas: { schema: string; schemaUid: Hex; domain: unknown } }
    assert.equal(sig.message.schema, document.eas.schemaUid)
    assert.deepEqual(sig.domain, document.eas.domain)
    const signed = { ...v2.message, chainId: 84532n, registry: checksumAddress(world.contract) }
    const fields = document.eas.schema
      .split(',')
      .map((field) => field.split(' ') as [type: string, name: keyof typeof signed])
    const values = fields.map(([type, name]) =>
      type === 'uint256' || type === 'uint64' ? BigInt(signed[name] as string) : signed[name],
    )
    const types = fields.map(([type, name]) => ({ type, name }))
    assert.equal(sig.message.data, encodeAbiParameters(types, values))
    assert.equal(sig.message.time, v2.message['issuedAt'])

    const trust = { signer: world.signer.address, tokenId }
    assert.ok(verifyAttestation(body, trust).ok)
    const forged = structuredClone(body) as { attestation: { eas: { sig: { message: { time: number } } } } }
    forged.attestation.eas.sig.message.time += 1
    assert.equal(verifyAttestation(forged, trust).outcome, 'differs')
    const again = await post(gateway.url, { assetId: String(tokenId) }, payment)
    assert.deepEqual(codesOf(again), [402, 'payment_already_used'])
  })

  it('has the fields of the body in their order', async () => {
    const { body } = await bought(await world.mint())
    const keys = 'version assetId chain state state_code authentic flagged chainRef attestation payment network'
    assert.equal(Object.keys(body).join(' '), `${keys} audit_status production_ready`)
    assert.equal(body['untrusted'], undefined)
  })

  it('stays valid after the key was rotated', async () => {
    const tokenId = await world.mint()
    const before = await bought(tokenId)
    const next = attestationKey()
    await using rotated = await world.open({
      keys: {
        active: () => next,
        published: () => [{ ...published(world.signer), status: 'retired' }, published(next)],
      },
    })
    const after = await bought(tokenId, rotated.url)
    const document: unknown = await (await fetch(`${rotated.url}/.well-known/attestation.json`)).json()
    for (const { body } of [before, after])
      assert.ok(verifyAttestation(body, { keys: document, tokenId, contract: world.contract }).ok)
    assert.equal(after.attestation.signer, next.address)
  })
})

describe('the ids that could be read as a transaction', () => {
  it('are refused before payment; their neighbours are sold', async () => {
    const guarded = [0xf87en << 240n, (0x02f87dn << 232n) + 5n, 0x7ff87dn << 232n]
    const neighbours = [0xf87dn << 240n, 0x80f87dn << 232n, 0x02f87cn << 232n]
    for (const tokenId of guarded) {
      const { status, body } = await buy(gateway.url, tokenId, await sign(payer))
      assert.deepEqual([status, body.error], [400, 'asset_id_not_attestable'])
    }
    assert.equal(await charged(), 0n)
    for (const tokenId of neighbours) await bought(await world.mint(tokenId))
  })
})
