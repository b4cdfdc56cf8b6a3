/** Finds settings that are given, and that another one leaves without effect. What they were meant for does not happen. */
import type { Config } from '../../app/config/config.ts'
import { type CheckFinding, warning } from './finding.ts'

/** `CHAIN_QUORUM` has a default, so that only its variable shows whether it was given. */
export function idleSettings(
  { chain, gateway, limits, tap }: Config,
  { CHAIN_QUORUM = '' }: Readonly<Record<string, string | undefined>>,
): readonly CheckFinding[] {
  const { payTo, facilitatorKey, facilitatorKeys, facilitatorUrl, channels, channelKeys } = gateway
  const hasKey = facilitatorKey !== null || facilitatorKeys.length > 0
  const rows: readonly (readonly [isIdle: boolean, what: string, remedy: string])[] = [
    [
      CHAIN_QUORUM !== '' && chain.trust === 'rpc',
      'CHAIN_QUORUM has no effect with CHAIN_TRUST=rpc.',
      'Set CHAIN_TRUST to quorum or proof, or remove CHAIN_QUORUM.',
    ],
    [
      payTo === null && (hasKey || facilitatorUrl !== null || channels),
      'The settings of the facilitator and of payment channels have no effect without PAYMENT_PAY_TO: there is no gateway.',
      'Set PAYMENT_PAY_TO to the address that buyers pay, or remove them.',
    ],
    [
      hasKey && facilitatorUrl !== null,
      'FACILITATOR_KEY and FACILITATOR_KEYS have no effect with FACILITATOR_URL, which settles all payments.',
      'Remove the keys once none of their transactions is pending, or remove FACILITATOR_URL.',
    ],
    [
      channelKeys.length > 0 && !channels,
      'PAYMENT_CHANNEL_KEYS has no effect with PAYMENT_CHANNELS=off: vouchers that were sold are not claimed.',
      'Set PAYMENT_CHANNELS=on until touchstone payments channels shows that nothing is unclaimed.',
    ],
    [
      gateway.keystorePasswordFile !== null && gateway.keystore === null,
      'ATTESTATION_KEYSTORE_PASSWORD_FILE has no effect without ATTESTATION_KEYSTORE.',
      'Set ATTESTATION_KEYSTORE to the file of the key, or remove the setting.',
    ],
    [
      tap.previousPepper !== null && tap.commitment !== 'hmac',
      `TAG_PEPPER_PREVIOUS has no effect with TAG_COMMITMENT=${tap.commitment}.`,
      'Set TAG_COMMITMENT=hmac, or remove TAG_PEPPER_PREVIOUS.',
    ],
    [
      limits.redisUrl !== null && limits.store !== 'redis',
      `REDIS_URL has no effect with RATE_LIMIT_STORE=${limits.store}.`,
      'Set RATE_LIMIT_STORE=redis, or remove REDIS_URL.',
    ],
  ]
  return rows.flatMap(([isIdle, what, remedy]) => (isIdle ? [warning(what, remedy)] : []))
}
