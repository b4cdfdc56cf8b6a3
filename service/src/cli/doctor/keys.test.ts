import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { testFolder } from '../../../test/support/folder.ts'
import { readConfig } from '../../app/config/config.ts'
import { publishedKey } from '../../domain/published-accounts.ts'
import { checkKeys, checkRoleKeys } from './keys.ts'

/** Returns whether the doctor misses TAG_PEPPER with these settings. */
async function missesPepper(env: Readonly<Record<string, string>>): Promise<boolean> {
  const folder = testFolder()
  const found = await checkKeys(readConfig({ DATA_DIR: folder, ...env }))
  return found.some(({ what }) => what.startsWith('TAG_PEPPER is not set'))
}

describe('touchstone doctor', () => {
  it('misses TAG_PEPPER where tags are bound or looked up under it', async () => {
    assert.equal(await missesPepper({}), true)
    assert.equal(await missesPepper({ ONLY: 'graphql' }), true)
    assert.equal(await missesPepper({ TAG_PEPPER: 'ab'.repeat(31) + '01' }), false)
  })

  it('misses no TAG_PEPPER where none is used', async () => {
    assert.equal(await missesPepper({ TAG_COMMITMENT: 'keccak-uid' }), false)
    assert.equal(await missesPepper({ ONLY: 'gateway', PAYMENT_PAY_TO: `0x${'12'.repeat(20)}` }), false)
  })

  it('warns of a settlement key that writes to the registry too', async () => {
    const [one, other] = ['34'.repeat(32), '35'.repeat(32)]
    const gateway = { DATA_DIR: testFolder(), PAYMENT_PAY_TO: `0x${'12'.repeat(20)}` }
    const isShared = async (env: Readonly<Record<string, string>>) =>
      (await checkKeys(readConfig({ ...gateway, ...env }))).some(
        ({ state, what }) =>
          state === 'warning' && what === 'A key of FACILITATOR_KEY or FACILITATOR_KEYS writes to the registry too.',
      )
    assert.equal(await isShared({ OPERATOR_KEY: one, FACILITATOR_KEY: one }), true)
    assert.equal(await isShared({ RELAYER_KEY: one, FACILITATOR_KEYS: `${other},0x${one}` }), true)
    assert.equal(await isShared({ ATTESTER_KEY: one, FACILITATOR_KEY: one }), true)
    assert.equal(await isShared({ OPERATOR_KEY: one, FACILITATOR_KEY: other }), false)
    assert.equal(await isShared({ OPERATOR_KEY: one }), false)
  })

  it('refuses a published key for a role, but in a demonstration', async () => {
    const env = { DATA_DIR: testFolder(), OPERATOR_KEY: publishedKey(0) }
    const of = (more = {}) => checkRoleKeys(readConfig({ ...env, ...more }))
    await assert.rejects(of(), /is one of anvil's published keys/)
    assert.deepEqual(await of({ DEMO: 'on' }), [])
  })
})
