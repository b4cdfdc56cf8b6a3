/** The handshake of POST {gateway_url}/verify, the other routes and the documents; what a gateway signs, and what it never signs (spec §2.6, §4.7, §4.8, §7). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { checksumAddress, readPublishedKeys, verifyAttestation, type Hex } from '@touchstone/verdict'
import {
  encodeAbiParameters,
  encodeDeployData,
  keccak256,
  parseAbi,
  recoverAddress,
  recoverTypedDataAddress,
} from 'viem'
import testWallet from '../../../../contracts/artifacts/TestWallet.json' with { type: 'json' }
import { installTestMoney } from '../../../src/chain/devchain/test-money.ts'
import { createRateLimiter } from '../../../src/http/rate-limit/limiter.ts'
import { attestationKey, published } from '../../support/payments/components.ts'
import { openSale } from '../../support/payments/gateway.ts'
import {
  asset,
  base64,
  buySettled,
  headerV1,
  payloadOf,
  payTo,
  post,
  price,
  sign,
  buy,
} from '../../support/payments/buyer.ts'

type Attestation = {
  message: { tokenId: string; state: number; chainId: number; timestamp: number }
  digest: Hex
  signature: Hex
  signer: Hex
  eip712: Parameters<typeof recoverTypedDataAddress>[0] & { signature: Hex }
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
    const plain = await world.open({ v2Header: false })
    assert.equal((await post(plain.url, {})).headers.get('payment-required'), null)
    await plain.close()
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
      assert.deepEqual([answer.status, answer.body.error], [status, error])
      assert.ok(String(answer.body['message']).length <= 200)
    })
  }

  it('answers 400 for a payment that names no asset, before the payment is looked at', async () => {
    const answer = await post(gateway.url, {}, { 'X-PAYMENT': 'AAAA' })
    assert.deepEqual([answer.status, answer.body.error], [400, 'invalid_asset_id'])
  })

  it('answers 429 above the limit of a client, also where a payment comes along', async () => {
    const limited = await world.open({ limiter: createRateLimiter({ limit: 1 }) })
    await post(limited.url, {})
    const answer = await post(limited.url, { assetId: String(token) }, headerV1(await sign(payer)))
    assert.deepEqual([answer.status, answer.body.error], [429, 'rate_limited'])
    assert.match(answer.headers.get('retry-after') ?? '', /^\d+$/)
    await limited.close()
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
    const answer = await fetch(`${gateway.url}/health`)
    const health = (await answer.json()) as { status: string; runtime: string; checks: Record<string, { ok: boolean }> }
    assert.equal(answer.status, 200)
    assert.equal(health.status, 'ok')
    assert.match(health.runtime, /^node\/\d+\.x$/)
    assert.deepEqual(
      Object.entries(health.checks).map(([name, { ok }]) => [name, ok]),
      ['price', 'chain', 'token', 'contract', 'facilitator', 'gas', 'ledger', 'index', 'signer'].map((name) => [
        name,
        true,
      ]),
    )
    assert.equal(world.payFaults.calls().length, before)
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

  it('sells to a hand-made header without a content type', async () => {
    const payment = await sign(payer)
    const response = await fetch(`${gateway.url}/verify`, {
      method: 'POST',
      headers: {
        'X-PAYMENT': base64({ x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload: payloadOf(payment) }),
      },
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
  it('is signed twice by the published key over what it says, with a low s', async () => {
    const { attestation } = await bought(await world.mint())
    const { tokenId, state, chainId, timestamp } = attestation.message
    const types = ['uint256', 'uint8', 'uint256', 'uint64'].map((type) => ({ type }))
    const digest = keccak256(encodeAbiParameters(types, [BigInt(tokenId), state, BigInt(chainId), BigInt(timestamp)]))
    assert.equal(attestation.digest, digest)
    assert.equal(await recoverAddress({ hash: digest, signature: attestation.signature }), world.signer.address)
    assert.equal(await recoverTypedDataAddress(attestation.eip712), world.signer.address)
    for (const signature of [attestation.signature, attestation.eip712.signature] as string[])
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

  it('has the fields of the body in their order', async () => {
    const { body } = await bought(await world.mint())
    assert.deepEqual(Object.keys(body), [
      'version',
      'assetId',
      'chain',
      'state',
      'state_code',
      'authentic',
      'flagged',
      'chainRef',
      'attestation',
      'payment',
      'network',
      'audit_status',
      'production_ready',
    ])
    assert.equal(body['untrusted'], undefined)
  })

  it('stays valid after the key was rotated', async () => {
    const tokenId = await world.mint()
    const before = await bought(tokenId)
    const next = attestationKey()
    const rotated = await world.open({
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
    await rotated.close()
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

describe('a payer that is a smart wallet', () => {
  it('pays with the signature that its contract takes', async () => {
    const data = encodeDeployData({
      abi: parseAbi(['constructor(address holder)']),
      bytecode: testWallet.bytecode as Hex,
      args: [payer.address],
    })
    const wallet = await world.deploy(data)
    await installTestMoney({ rpcUrl: world.chainUrl, fund: [{ address: wallet, amount: price }] })
    const tokenId = await world.mint()
    const { status, body } = await buySettled(gateway.url, tokenId, await sign(payer, { from: wallet }))
    assert.deepEqual([status, body.error], [200, undefined])
    assert.equal(await charged(), price)
    const stranger = await world.payer(0n)
    const forged = await buy(gateway.url, tokenId, await sign(stranger, { from: wallet }))
    assert.deepEqual([forged.status, forged.body.error], [402, 'invalid_signature'])
  })
})
