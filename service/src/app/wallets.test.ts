import assert from 'node:assert/strict'
import { chmod, copyFile, writeFile } from 'node:fs/promises'
import { before, describe, it } from 'node:test'
import { createLog } from '../lib/log.ts'
import { signersAt } from '../pages/certificate/wallets.ts'
import { makeWalletKeys, type WalletKeys } from '../../test/support/pages/wallets.ts'
import { ConfigError, readConfig } from './config/config.ts'
import { openWallets } from './wallets.ts'

let keys: WalletKeys
const lines: string[] = []
const log = createLog((line) => lines.push(line), 'info')
before(async () => void (keys = await makeWalletKeys()))

const open = (env: Record<string, string> = {}) =>
  openWallets(readConfig({ PASSPORT_SIGNING: 'on', ...keys.env, ...env }).passport, log)

const refused = (env: Record<string, string>, message: RegExp) =>
  assert.rejects(open(env), (error: Error) => {
    assert.ok(error instanceof ConfigError, String(error))
    assert.match(error.message, message)
    return true
  })

describe('keys of wallet passes', () => {
  it('are read, also from an encrypted key, and are none without settings', async () => {
    const { apple, google } = await open()
    assert.equal(apple?.team, 'TEAM123456')
    assert.ok(apple.until > Date.now())
    assert.equal(google?.key.type, 'private')
    assert.deepEqual(await openWallets(readConfig({}).passport, log), { apple: null, google: null })
    const plain = await open({ APPLE_PASS_KEY_FILE: keys.at('plain.key'), APPLE_PASS_KEY_PASSWORD_FILE: '' })
    assert.equal(plain.apple?.key, apple.key)
    assert.deepEqual(lines.splice(0).length, 2, 'a certificate of two days ends soon')
  })

  it('are refused where key, certificate, issuer and names do not belong together', async () => {
    await refused({ APPLE_PASS_KEY_FILE: keys.at('other.key') }, /^APPLE_PASS_KEY_FILE is not the key of APPLE_PASS_C/)
    await refused({ APPLE_WWDR_CERTIFICATE: keys.at('other.pem') }, /^APPLE_WWDR_CERTIFICATE did not issue/)
    await refused({ APPLE_TEAM_ID: 'TEAM999999' }, /^APPLE_TEAM_ID is not the one that APPLE_PASS_CERTIFICATE names/)
    await refused({ APPLE_PASS_TYPE: 'pass.com.example' }, /^APPLE_PASS_TYPE is not the one/)
    await refused({ APPLE_PASS_CERTIFICATE: keys.at('none.pem') }, /^APPLE_PASS_CERTIFICATE cannot be read \(ENOENT\)/)
    await refused({ APPLE_WWDR_CERTIFICATE: '/dev/zero' }, /^APPLE_WWDR_CERTIFICATE has more than 65536 bytes/)
    await refused(
      { APPLE_PASS_CERTIFICATE: keys.at('google.json') },
      /^APPLE_PASS_CERTIFICATE is no certificate in PEM/,
    )
  })

  it('are refused where a file is open to others, no key, or locked, without a word of it', async () => {
    const path = keys.at('open.key')
    await copyFile(keys.at('plain.key'), path)
    await chmod(path, 0o644)
    await refused({ APPLE_PASS_KEY_FILE: path }, /^APPLE_PASS_KEY_FILE: .* is open to other users: chmod 600 closes it/)
    await writeFile(keys.at('wrong.password'), 'hunter2', { mode: 0o600 })
    await refused(
      { APPLE_PASS_KEY_PASSWORD_FILE: keys.at('wrong.password') },
      /^APPLE_PASS_KEY_FILE holds no private key in PEM, or APPLE_PASS_KEY_PASSWORD_FILE does not open it/,
    )
    for (const text of ['', '{}', '{"type":"service_account","client_email":"a@b","private_key":"hunter2"}']) {
      await writeFile(keys.at('wrong.json'), text, { mode: 0o600 })
      await refused(
        { GOOGLE_WALLET_ACCOUNT_FILE: keys.at('wrong.json') },
        /^GOOGLE_WALLET_ACCOUNT_FILE (is not|holds no)/,
      )
    }
    await chmod(keys.at('google.json'), 0o604)
    await refused({}, /^GOOGLE_WALLET_ACCOUNT_FILE: .* is open to other users/)
    await chmod(keys.at('google.json'), 0o600)
  })

  it('give no passes of Apple once the certificate has ended, and the log says so', async () => {
    const wallets = await open({ APPLE_PASS_CERTIFICATE: await keys.issue('ended.pem', { days: 0 }) })
    const { apple, google } = signersAt(wallets, wallets.apple?.until ?? 0)
    assert.deepEqual([apple, google], [null, wallets.google])
    assert.notEqual(signersAt(wallets, (wallets.apple?.until ?? 0) - 1).apple, null)
    assert.match(lines.at(-1) ?? '', /no passes of Apple Wallet: the certificate has ended/)
  })
})
