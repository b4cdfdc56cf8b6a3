/** Checks of the files that settings name and a start reads. */
import type { Config } from '../../app/config/config.ts'
import { readThemes } from '../../app/themes.ts'
import { readWallets, validityAt } from '../../app/wallets.ts'
import { type CheckFinding, ok, warning, wrong } from './finding.ts'

/** Throws where a start would. */
export async function checkThemes({ roles, pages }: Config): Promise<readonly CheckFinding[]> {
  if (roles.has('verification')) readThemes(pages.themeDir)
  return []
}

/** Throws where a start would. */
export async function checkTrustedDocuments(config: Config): Promise<readonly CheckFinding[]> {
  if (config.roles.has('graphql') && config.graphql.persisted !== null)
    await (await import('../../app/hosts.ts')).trustedDocumentsOf(config)
  return []
}

/** Checks the keys for wallet passes, and shows none. Throws a ConfigError where a start would. `now` is in milliseconds since 1970. */
export async function checkPasses({ passport, roles }: Config, now = Date.now()): Promise<readonly CheckFinding[]> {
  if (!roles.has('verification')) return []
  const { apple, google } = await readWallets(passport)
  return [
    ...(apple === null ? [] : [endOf(apple.until, now)]),
    ...(google === null ? [] : [ok('The account of Google Wallet passes has an RSA key.')]),
  ]
}

const renewal =
  'Renew the one that ends first, APPLE_PASS_CERTIFICATE or APPLE_WWDR_CERTIFICATE, then start the service again.'

function endOf(until: number, now: number): CheckFinding {
  const day = new Date(until).toISOString().slice(0, 10)
  const validity = validityAt(until, now)
  if (validity === 'ended')
    return wrong(`There are no passes of Apple Wallet: their certificate ended on ${day}.`, renewal)
  return validity === 'ending'
    ? warning(`The certificate of Apple Wallet passes ends on ${day}.`, renewal)
    : ok(`The certificate of Apple Wallet passes fits its key, and ends on ${day}.`)
}
