import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { makeWalletKeys, noWallets, type WalletKeys } from '../../../test/support/pages/wallets.ts'
import { readConfig } from '../../app/config/config.ts'
import { readWallets } from '../../app/wallets.ts'
import { diagnoseSettings } from './doctor.ts'
import { checkPasses } from './files.ts'

const dayMs = 86_400_000
let keys: WalletKeys
before(async () => void (keys = await makeWalletKeys()))

const configOf = (env: Record<string, string> = {}) => readConfig({ PASSPORT_SIGNING: 'on', ...keys.env, ...env })

describe('the doctor of wallet passes', () => {
  it('names the day on which the certificate ends, 30 days before, and that it has ended', async () => {
    const config = configOf({ GOOGLE_WALLET_ISSUER: '', GOOGLE_WALLET_ACCOUNT_FILE: '' })
    const until = (await readWallets(config.passport)).apple?.until ?? 0
    const day = new Date(until).toISOString().slice(0, 10)
    const found = []
    for (const now of [until - 31 * dayMs, until - 29 * dayMs, until])
      found.push(...(await checkPasses(config, now)).map(({ state, what }) => `${state}: ${what}`))
    assert.deepEqual(found, [
      `ok: The certificate of Apple Wallet passes fits its key, and ends on ${day}.`,
      `warning: The certificate of Apple Wallet passes ends on ${day}.`,
      `wrong: There are no passes of Apple Wallet: their certificate ended on ${day}.`,
    ])
  })

  it('is a part of touchstone doctor, and says what a start would refuse', async () => {
    const passesIn = async (env: Record<string, string>) =>
      (
        await diagnoseSettings({
          PASSPORT_SIGNING: 'on',
          DATA_DIR: keys.at('data'),
          VERIFICATION_PORT: '0',
          ...keys.env,
          ...env,
        })
      )
        .filter(({ area }) => area === 'passes')
        .map(({ state, what }) => `${state}: ${what}`)
    assert.match((await passesIn({})).join('\n'), /^warning: The certificate.*\nok: The account of Google Wallet/)
    const [refused] = await passesIn({ APPLE_PASS_KEY_FILE: keys.at('other.key') })
    assert.equal(refused, 'wrong: APPLE_PASS_KEY_FILE is not the key of APPLE_PASS_CERTIFICATE.')
    assert.deepEqual(await passesIn(noWallets), [])
    assert.deepEqual(await passesIn({ ONLY: 'graphql' }), [])
  })
})
