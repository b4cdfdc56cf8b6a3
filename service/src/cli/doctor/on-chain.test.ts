/** The doctor asks the chain what `touchstone chain roles` and the health of the gateway ask. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startWorld, type World } from '../../../test/support/world.ts'
import { diagnoseSettings } from './doctor.ts'

describe('touchstone doctor', () => {
  let world: World
  before(async () => {
    world = await startWorld()
  })
  after(() => world?.end())

  const wrongOnes = async (env: Readonly<Record<string, string>>) =>
    (await diagnoseSettings({ ...world.settings, ...env }))
      .filter(({ state }) => state === 'wrong')
      .map(({ area, what }) => `${area}: ${what}`)

  it('names the roles and the ether that keys of the service lack, and what keeps its gateway from selling', async () => {
    const [strange, shared] = ['51'.repeat(32), '52'.repeat(32)]
    const token = { PAYMENT_PAY_TO: `0x${'12'.repeat(20)}`, PAYMENT_ASSET: `0x${'11'.repeat(20)}` }
    const keys = { OPERATOR_KEY: strange, ATTESTER_KEY: shared, FACILITATOR_KEY: shared }
    const found = await wrongOnes({ ...keys, ...token })
    const expected = [
      /^roles: OPERATOR_KEY \(0x\w{40}\) lacks ISSUER_ROLE, BINDER_ROLE, QA_ROLE, GUARDIAN_ROLE, RECYCLER_ROLE\.$/,
      /^roles: ATTESTER_KEY \(0x\w{40}\) lacks ATTESTER_ROLE\.$/,
      /^roles: OPERATOR_KEY \(0x\w{40}\) has no ether\.$/,
      /^gateway: There is no contract at the payment token’s address\.$/,
      /^gateway: No account of the facilitator can pay for a settlement\.$/,
    ]
    assert.equal(found.length, expected.length, found.join('\n'))
    for (const [index, what] of expected.entries()) assert.match(found[index] ?? '', what)
    assert.deepEqual(
      await wrongOnes({ ...keys, ...token, ONLY: 'verification', OPERATOR_KEY: '', ATTESTER_KEY: '' }),
      [],
    )
  })

  it('warns of a role without a key where other roles have one', async () => {
    const of = async (env: object) =>
      (await diagnoseSettings({ ...world.settings, ...env }))
        .filter(({ area, state }) => area === 'roles' && state === 'warning')
        .map(({ what }) => what)
    assert.deepEqual(await of({}), [])
    assert.deepEqual(await of({ ATTESTER_KEY: '' }), [
      'The role attester has no key: the service writes nothing as it.',
    ])
    assert.deepEqual(await of({ ATTESTER_KEY: '', OPERATOR_KEY: '' }), [])
  })
})
