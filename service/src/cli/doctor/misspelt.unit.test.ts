import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { misspeltSettings } from './misspelt.ts'
import { settings } from '../../app/config/schema.ts'

const found = (env: Readonly<Record<string, string>>) =>
  misspeltSettings(env).map(({ name, meant }) => `${name} ${meant}`)

describe('misspelt settings', () => {
  it('are found within two letters of the name that was meant', () => {
    for (const [name, meant] of [
      ['VERIFICATON_PORT', 'VERIFICATION_PORT'],
      ['BASEURL', 'BASE_URL'],
      ['TAG_KEKK', 'TAG_KEK'],
      ['TAG_KEK_FIEL', 'TAG_KEK_FILE'],
      ['TAP_CHALENGE', 'TAP_CHALLENGE'],
      ['TRUSTED_PROXYS', 'TRUSTED_PROXIES'],
      ['database_url', 'DATABASE_URL'],
      ['KEY', 'KEYS'],
    ] as const)
      assert.deepEqual(found({ [name]: '1' }), [`${name} ${meant}`])
  })

  it('are files of settings that are not secret, which are read from the variable alone', () => {
    for (const name of ['BASE_URL', 'CHAIN_CONTRACT', 'FACILITATOR_URL'])
      assert.deepEqual(found({ [`${name}_FILE`]: '/run/text' }), [`${name}_FILE ${name}`])
  })

  it('are neither settings nor what a machine sets', () => {
    const names = Object.entries(settings).flatMap(([name, { secret }]) => (secret ? [name, `${name}_FILE`] : [name]))
    assert.deepEqual(found(Object.fromEntries(names.map((name) => [name, '1']))), [])
    const usual =
      'HOME HOSTNAME PORT PWD PATH USER LANG TERM SHELL TZ EDITOR PAGER NODE_ENV NODE_OPTIONS PGHOST PGDATABASE NO_COLOR POSTGRES_DB NOTIFY_SOCKET INVOCATION_ID LOGNAME MAIL KUBERNETES_PORT NEW_DATA_DIR'
    assert.deepEqual(found(Object.fromEntries(usual.split(' ').map((name) => [name, '1']))), [])
    assert.deepEqual(found({ TAG_KEKK: '' }), [])
  })
})
