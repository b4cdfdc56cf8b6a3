import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { readConfig } from '../../app/config/config.ts'
import { idleSettings } from './idle.ts'

const [key, payTo] = ['34'.repeat(32), { PAYMENT_PAY_TO: `0x${'12'.repeat(20)}` }]
const remote = { ...payTo, FACILITATOR_URL: 'https://x402.example.com' }

/** Returns the settings that the warnings begin with. */
const idle = (env: Readonly<Record<string, string>>) =>
  idleSettings(readConfig(env), env).map(({ what }) => /^(?:The )?(\w+)/.exec(what)?.[1])

describe('settings without effect', () => {
  for (const [given, name, used] of [
    [{ CHAIN_QUORUM: '2' }, 'CHAIN_QUORUM', { CHAIN_QUORUM: '2', CHAIN_TRUST: 'quorum' }],
    [{ FACILITATOR_KEY: key }, 'settings', { ...payTo, FACILITATOR_KEY: key }],
    [{ FACILITATOR_URL: remote.FACILITATOR_URL }, 'settings', remote],
    [{ PAYMENT_CHANNELS: 'on' }, 'settings', { ...payTo, PAYMENT_CHANNELS: 'on' }],
    [{ ...remote, FACILITATOR_KEY: key }, 'FACILITATOR_KEY', remote],
    [{ ...remote, FACILITATOR_KEYS: key }, 'FACILITATOR_KEY', { ...payTo, FACILITATOR_KEYS: key }],
    [
      { ...payTo, PAYMENT_CHANNEL_KEYS: key },
      'PAYMENT_CHANNEL_KEYS',
      { ...payTo, PAYMENT_CHANNEL_KEYS: key, PAYMENT_CHANNELS: 'on' },
    ],
    [
      { ATTESTATION_KEYSTORE_PASSWORD_FILE: '/run/password' },
      'ATTESTATION_KEYSTORE_PASSWORD_FILE',
      { ATTESTATION_KEYSTORE_PASSWORD_FILE: '/run/password', ATTESTATION_KEYSTORE: '/run/key.json' },
    ],
    [
      { TAG_PEPPER_PREVIOUS: key, TAG_COMMITMENT: 'keccak-uid' },
      'TAG_PEPPER_PREVIOUS',
      { TAG_PEPPER: '35'.repeat(31) + '01', TAG_PEPPER_PREVIOUS: key },
    ],
    [{ REDIS_URL: 'redis://127.0.0.1', RATE_LIMIT_STORE: 'process' }, 'REDIS_URL', { REDIS_URL: 'redis://127.0.0.1' }],
  ] satisfies [Record<string, string>, string, Record<string, string>][])
    it(`are named: ${Object.keys(given).join(' beside ')}`, () => {
      assert.deepEqual(idle(given), [name])
      assert.deepEqual(idle(used), [])
    })

  it('are none where nothing is given', () => assert.deepEqual(idle({}), []))
})
