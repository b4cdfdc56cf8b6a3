/**
 * Payment channels for tests: the contracts on the local chain, a stock client of scheme `batch-settlement`, and vouchers by hand.
 * TEST_CHANNEL_CONTRACTS names a JSON file with the creation code of the real contracts (`settlement` and `collector`, hex).
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { Hex } from '@touchstone/verdict'
import { BatchSettlementEvmScheme, type BatchSettlementEvmSchemeOptions } from '@x402/evm/batch-settlement/client'
import { decodePaymentResponseHeader, wrapFetchWithPaymentFromConfig } from '@x402/fetch'
import { createPublicClient, encodeFunctionData, http, type PrivateKeyAccount } from 'viem'
import { generatePrivateKey } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import testChannels from '../../../../contracts/artifacts/TestChannels.json' with { type: 'json' }
import testCollector from '../../../../contracts/artifacts/TestCollector.json' with { type: 'json' }
import type { Database } from '../../../src/db/database.ts'
import type { RpcClient } from '../../../src/chain/rpc/client.ts'
import {
  channelAbi,
  channelContract,
  channelDomain,
  channelIdOf,
  depositCollector,
  depositNonce,
  voucherDigest,
  type ChannelConfig,
} from '../../../src/payments/channels/channel.ts'
import type { EthereumKey } from '../../../src/keys/ethereum.ts'
import { transferTypes } from '../../../src/payments/x402/payment.ts'
import { asset, base64, domain, payTo, post, price, type Answered } from './buyer.ts'
import { startGatewayWorld, type GatewayWorld } from './gateway.ts'

export const withdrawDelay = 86_400
/** The deposit of a channel that tests open. */
export const deposit = 100n * price
const voucherTypes = {
  Voucher: [
    { name: 'channelId', type: 'bytes32' },
    { name: 'maxClaimableAmount', type: 'uint128' },
  ],
} as const

/** Places the contracts where stock clients look for them. */
export async function installChannels(rpc: RpcClient): Promise<void> {
  const path = process.env['TEST_CHANNEL_CONTRACTS'] ?? ''
  const real = path === '' ? null : (JSON.parse(readFileSync(path, 'utf8')) as Record<'settlement' | 'collector', Hex>)
  /** The runtime code is what the creation code returns. */
  const runtime = async (creation: Hex) => rpc('eth_call', [{ data: creation }, 'latest'])
  await rpc('anvil_setCode', [channelContract, real ? await runtime(real.settlement) : testChannels.deployedBytecode])
  await rpc('anvil_setCode', [depositCollector, real ? await runtime(real.collector) : testCollector.deployedBytecode])
}

/** A gateway world with these contracts on a database that ends with it. */
export async function startChannelWorld(open: () => Promise<Database>): Promise<GatewayWorld> {
  const database = await open()
  const world = await startGatewayWorld({ database })
  await installChannels(world.rpc)
  const end = async () => {
    await world.end()
    await database.close()
  }
  return { ...world, end }
}

export type Purchase = {
  status: number
  body: Record<string, unknown>
  receipt: { transaction: string; extra: Record<string, unknown> }
}

/** A stock client. `sent` counts its paid requests, and `lose` breaks the connection of the next one after the gateway has answered. */
export function stockBuyer(account: PrivateKeyAccount, rpcUrl: string, options: BatchSettlementEvmSchemeOptions = {}) {
  const chain = createPublicClient({ chain: baseSepolia, transport: http(rpcUrl) })
  const signer = {
    address: account.address,
    signTypedData: account.signTypedData as never,
    readContract: chain.readContract as never,
  }
  let loses = false
  const sent: string[] = []
  const watched: typeof fetch = async (input, init) => {
    const header = (input as Request).headers.get('PAYMENT-SIGNATURE')
    const response = await fetch(input, init)
    if (header === null) return response
    sent.push(header)
    if (!loses) return response
    loses = false
    throw new Error('the connection broke')
  }
  const client = new BatchSettlementEvmScheme(signer, options)
  const pay = wrapFetchWithPaymentFromConfig(watched, {
    schemes: [{ network: 'eip155:84532', client }],
  })
  return {
    account,
    sent,
    lose: () => (loses = true),
    async buy(url: string, tokenId: bigint): Promise<Purchase> {
      const response = await pay(`${url}/verify`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ assetId: String(tokenId), chain: 'base-sepolia' }),
      })
      const receipt = decodePaymentResponseHeader(response.headers.get('PAYMENT-RESPONSE') ?? base64({ extra: {} }))
      return {
        status: response.status,
        body: (await response.json()) as Purchase['body'],
        receipt: receipt as unknown as Purchase['receipt'],
      }
    },
  }
}

/** A channel of this buyer with the gateway whose claims `receiverAuthorizer` signs. */
export function channelOf(
  payer: Hex,
  receiverAuthorizer: Hex,
  changed: Partial<ChannelConfig> = {},
): ChannelConfig & { readonly id: Hex } {
  const lower = payer.toLowerCase() as Hex
  const config = {
    payer: lower,
    payerAuthorizer: lower,
    receiver: payTo,
    receiverAuthorizer: receiverAuthorizer.toLowerCase() as Hex,
    token: asset,
    withdrawDelay,
    salt: `0x${'0'.repeat(64)}` as Hex,
    ...changed,
  }
  return { ...config, id: channelIdOf(config) }
}

type Channel = ReturnType<typeof channelOf>

/** Signs a voucher by hand; `forged` is applied to the payload after it. */
export async function voucherPayload(signer: PrivateKeyAccount, channel: Channel, sum: bigint, forged: object = {}) {
  const { id, ...channelConfig } = channel
  const signature = await signer.signTypedData({
    domain: channelDomain,
    types: voucherTypes,
    primaryType: 'Voucher',
    message: { channelId: id, maxClaimableAmount: sum },
  })
  const voucher = { channelId: id, maxClaimableAmount: sum.toString(), signature, ...forged }
  return { type: 'voucher', channelConfig, voucher }
}

/** Signs a deposit and the first voucher by hand. */
export async function depositPayload(
  signer: PrivateKeyAccount,
  channel: Channel,
  { amount = deposit, sum = price, salt = generatePrivateKey() }: { amount?: bigint; sum?: bigint; salt?: Hex } = {},
) {
  const validBefore = BigInt(Math.floor(Date.now() / 1000)) + 900n
  const signature = await signer.signTypedData({
    domain,
    types: { ReceiveWithAuthorization: transferTypes.TransferWithAuthorization },
    primaryType: 'ReceiveWithAuthorization',
    message: {
      from: channel.payer,
      to: depositCollector,
      value: amount,
      validAfter: 0n,
      validBefore,
      nonce: depositNonce(channel.id, salt),
    },
  })
  const erc3009Authorization = { validAfter: '0', validBefore: validBefore.toString(), salt, signature }
  return {
    ...(await voucherPayload(signer, channel, sum)),
    type: 'deposit',
    deposit: { amount: amount.toString(), authorization: { erc3009Authorization } },
  }
}

/** Opens a channel by hand, with a deposit over a hundred prices and one purchase. The payer has as much money, unless `money` says more. */
export async function openChannel(
  world: GatewayWorld,
  {
    url,
    token,
    authorizer,
    money = deposit,
  }: { url: string; token: bigint; authorizer: Pick<EthereumKey, 'address'>; money?: bigint },
) {
  const payer = await world.payer(money)
  const own = channelOf(payer.address, authorizer.address)
  const first = await depositPayload(payer, own)
  const bought = await buyThrough(url, token, first)
  assert.equal(bought.status, 200, bought.text)
  return {
    payer,
    own,
    first,
    bought,
    voucher: (sum: bigint, forged: object = {}) => voucherPayload(payer, own, sum, forged),
    charged: async () => (await world.channels.find(own.id))?.charged,
    /** Names the purchase by the voucher of a sum as the ledger does. */
    keyAt: (sum: bigint) => ({ payer: own.payer, nonce: voucherDigest(own.id, sum) }),
  }
}

/** Makes the payment header of a payload by hand. */
export function channelHeader(payload: object, more: object = {}): Record<string, string> {
  const accepted = { scheme: 'batch-settlement', network: 'eip155:84532', amount: price.toString() }
  return { 'PAYMENT-SIGNATURE': base64({ x402Version: 2, accepted, payload, ...more }) }
}

/** Buys with a payload by hand. */
export function buyThrough(url: string, tokenId: bigint, payload: object, more: object = {}): Promise<Answered> {
  return post(url, { assetId: tokenId.toString(), chain: 'base-sepolia' }, channelHeader(payload, more))
}

/** Encodes calls that the payer makes. */
export const withdrawals = {
  initiate: (config: Channel, amount: bigint) =>
    encodeFunctionData({ abi: channelAbi, functionName: 'initiateWithdraw', args: [config, amount] }),
  finalize: (config: Channel) =>
    encodeFunctionData({ abi: channelAbi, functionName: 'finalizeWithdraw', args: [config] }),
}
