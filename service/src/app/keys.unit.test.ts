import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { publishedAccounts, publishedKey } from '../domain/published-accounts.ts'
import { readConfig } from './config/config.ts'
import { keysByRole, openRoleKeys, sharedRoles } from './keys.ts'

const accounts = publishedAccounts(8)
const variables = ['ISSUER_KEY', 'BINDER_KEY', 'QA_KEY', 'GUARDIAN_KEY', 'RECYCLER_KEY', 'RELAYER_KEY', 'ATTESTER_KEY']
const roles = variables.map((variable) => variable.replace('_KEY', '').toLowerCase())
const open = (env: Record<string, string>) => openRoleKeys(readConfig(env), () => null)

describe('the keys of the roles', () => {
  it('are each of its own setting', async () => {
    const env = Object.fromEntries(variables.map((variable, index) => [variable, publishedKey(index)]))
    const keys = await open({ ...env, OPERATOR_KEY: publishedKey(7) })
    assert.deepEqual(
      keys.map(({ role, account, from }) => [role, account.address, from]),
      variables.map((variable, index) => [roles[index], accounts[index]?.address, variable]),
    )
    assert.deepEqual(sharedRoles(keys), [])
    assert.deepEqual(Object.keys(keysByRole(keys)), roles)
  })

  it('are the operator key where a role has none, but for the attester', async () => {
    const keys = await open({ OPERATOR_KEY: publishedKey(7), QA_KEY: publishedKey(2) })
    assert.deepEqual(
      keys.map(({ role, from }) => `${role} ${from}`),
      ['issuer', 'binder', 'qa', 'guardian', 'recycler', 'relayer'].map(
        (role) => `${role} ${role === 'qa' ? 'QA_KEY' : 'OPERATOR_KEY'}`,
      ),
    )
    assert.deepEqual(sharedRoles(keys), [['issuer', 'binder', 'guardian', 'recycler', 'relayer']])
  })

  it('are shared also where two settings name the same key', async () => {
    assert.deepEqual(sharedRoles(await open({ BINDER_KEY: publishedKey(1), ATTESTER_KEY: publishedKey(1) })), [
      ['binder', 'attester'],
    ])
  })

  it('are none without settings, and a key that is none is named', async () => {
    assert.deepEqual(await open({}), [])
    await assert.rejects(open({ GUARDIAN_KEY: '00'.repeat(32) }), /GUARDIAN_KEY must be a private key of secp256k1/)
  })
})
