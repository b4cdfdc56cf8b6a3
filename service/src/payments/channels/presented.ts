/**
 * A payment through a channel on the wire. It has the payload of x402 version 2 with scheme `batch-settlement`, and the checks that need no
 * RPC.
 */
import { zeroAddress, type Hex } from '@touchstone/verdict'
import { z } from 'zod'
import type { JsonObject } from '../../lib/json.ts'
import { recoverSigner } from '../../lib/secp256k1.ts'
import type { PaymentErrorCode } from '../errors.ts'
import type { PaymentKey } from '../key.ts'
import { account, amountOf, hexOfLength } from '../x402/fields.ts'
import type { Payment } from '../x402/payment.ts'
import type { ChannelTerms, PaymentTerms } from '../x402/terms.ts'
import { channelIdOf, depositCollector, depositNonce, voucherDigest, type Voucher } from './channel.ts'

/**
 * A voucher that a buyer sends. `key`: the account that signed it and what it signed. `accepted` are the terms that the buyer sends back,
 * `deposit` the payment into the channel that comes with it, `identifier` the buyer's name for this purchase.
 */
export type PresentedVoucher = Voucher & {
  readonly channelId: Hex
  readonly key: PaymentKey
  readonly accepted: JsonObject
  readonly deposit?: Payment | undefined
  readonly identifier?: string | undefined
}

const units = amountOf(128)
const time = amountOf(256)

const schema = z.object({
  type: z.enum(['voucher', 'deposit']),
  channelConfig: z.object({
    payer: account,
    payerAuthorizer: account,
    receiver: account,
    receiverAuthorizer: account,
    token: account,
    withdrawDelay: z
      .int()
      .min(0)
      .max(2 ** 40 - 1),
    salt: hexOfLength(32),
  }),
  voucher: z.object({ channelId: hexOfLength(32), maxClaimableAmount: units, signature: hexOfLength(65) }),
  deposit: z
    .object({
      amount: units,
      authorization: z.object({
        erc3009Authorization: z.object({
          validAfter: time,
          validBefore: time,
          salt: hexOfLength(32),
          signature: hexOfLength(65),
        }),
      }),
    })
    .optional(),
})

/** Parses the payload, or returns null. A refund is none: it buys nothing. */
export function parseVoucher(payload: unknown, accepted: JsonObject, identifier?: string): PresentedVoucher | null {
  const { data } = schema.safeParse(payload)
  if (data === undefined || (data.type === 'deposit') !== (data.deposit !== undefined)) return null
  const { channelConfig: config, voucher, deposit } = data
  const channelId = channelIdOf(config)
  if (voucher.channelId !== channelId || config.payerAuthorizer === zeroAddress) return null
  const { maxClaimableAmount: cumulative, signature } = voucher
  const key = { payer: config.payerAuthorizer, nonce: voucherDigest(channelId, cumulative) }
  const own = { config, cumulative, signature, channelId, key, accepted, identifier }
  if (deposit === undefined) return own
  const { salt, ...authorization } = deposit.authorization.erc3009Authorization
  const nonce = depositNonce(channelId, salt)
  const moved = { from: config.payer, to: depositCollector, value: deposit.amount, nonce }
  return { ...own, deposit: { ...moved, ...authorization, deposit: { config, salt } } }
}

/** Returns an error when the voucher is not signed by the account that the channel names. The contract checks the same when it is claimed. */
export function checkVoucher({ key, signature }: PresentedVoucher): PaymentErrorCode | undefined {
  return recoverSigner(key.nonce, signature) === key.payer ? undefined : 'invalid_signature'
}

/** Returns an error when channel or price are not those of today's terms. */
export function checkChannelTerms(
  { config, accepted }: PresentedVoucher,
  terms: PaymentTerms,
  channels: ChannelTerms,
): PaymentErrorCode | undefined {
  const { receiver, receiverAuthorizer, token, withdrawDelay } = config
  if (receiver !== terms.payTo.toLowerCase()) return 'recipient_mismatch'
  const isOurs =
    token === terms.asset.toLowerCase() &&
    withdrawDelay === channels.withdrawDelay &&
    channels.receiverAuthorizers.some((address) => address.toLowerCase() === receiverAuthorizer) &&
    accepted['amount'] === terms.price.toString()
  return isOurs ? undefined : 'invalid_payment_requirements'
}
