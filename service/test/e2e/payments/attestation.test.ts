/** What a gateway signs, and what it never signs (spec §4.8). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { verifyAttestation, type Hex } from '@touchstone/verdict'
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
import { openSale } from '../../support/payments/gateway.ts'
import { attestationKey, published } from '../../support/payments/components.ts'
import { buy, price, sign } from '../../support/payments/buyer.ts'

type Attestation = {
  message: { tokenId: string; state: number; chainId: number; timestamp: number }
  digest: Hex
  signature: Hex
  signer: Hex
  eip712: Parameters<typeof recoverTypedDataAddress>[0] & { signature: Hex }
}

const { world, payer, charged } = await openSale()
const gateway = await world.open()

async function bought(tokenId: bigint, url = gateway.url) {
  const { status, body } = await buy(url, tokenId, await sign(payer))
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
    const { status, body } = await buy(gateway.url, tokenId, await sign(payer, { from: wallet }))
    assert.deepEqual([status, body.error], [200, undefined])
    assert.equal(await charged(), price)
    const stranger = await world.payer(0n)
    const forged = await buy(gateway.url, tokenId, await sign(stranger, { from: wallet }))
    assert.deepEqual([forged.status, forged.body.error], [402, 'invalid_signature'])
  })
})
