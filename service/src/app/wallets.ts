/** Reads the operator's keys for wallet passes at the start, and checks that passes of them will be accepted. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { textWithin } from '../lib/bytes.ts'
import { parseJsonObject } from '../lib/json.ts'
import type { Log } from '../lib/log.ts'
import { readPrivateFile } from '../lib/private-folder.ts'
import type { AppleSigner, GoogleSigner, Wallets } from '../pages/certificate/wallets.ts'
import { type Config, ConfigError } from './config/config.ts'

type Passport = Config['passport']

const [appleFile, passwordName] = ['APPLE_PASS_KEY_FILE', 'APPLE_PASS_KEY_PASSWORD_FILE'] as const
const googleFile = 'GOOGLE_WALLET_ACCOUNT_FILE'
const maxBytes = 64 * 1024
const warnDays = 30
const dayMs = 86_400_000

/** Reads the keys, and warns in the log of a certificate that has ended or ends soon. Throws a ConfigError as `readWallets` does. */
export async function openWallets(passport: Passport, log: Log): Promise<Wallets> {
  const wallets = await readWallets(passport)
  const { apple } = wallets
  const until = apple === null ? '' : new Date(apple.until).toISOString()
  const validity = apple === null ? 'valid' : validityAt(apple.until, Date.now())
  if (validity === 'ended') log.warn('no passes of Apple Wallet: the certificate has ended, renew it', { until })
  if (validity === 'ending') log.warn('the certificate of Apple Wallet passes ends soon: renew it', { until })
  return wallets
}

/** Throws a ConfigError that names the setting and what is wrong. A certificate that has ended is none: all else goes on without passes. */
export async function readWallets({ apple, applePasswordFile, google }: Passport): Promise<Wallets> {
  return {
    apple: apple && (await readApple(apple, applePasswordFile)),
    google: google && (await readGoogle(google)),
  }
}

/** Returns whether a certificate ends within 30 days, or has ended. Both times are in milliseconds since 1970. */
export function validityAt(until: number, now: number): 'valid' | 'ending' | 'ended' {
  const days = (until - now) / dayMs
  return days <= 0 ? 'ended' : days < warnDays ? 'ending' : 'valid'
}

async function readApple(
  { passType, team, certificate: path, keyFile, intermediate: issuerPath }: NonNullable<Passport['apple']>,
  passwordFile: string | null,
): Promise<AppleSigner> {
  const certificate = await readCertificate('APPLE_PASS_CERTIFICATE', path)
  const issuer = await readCertificate('APPLE_WWDR_CERTIFICATE', issuerPath)
  const password = passwordFile === null ? null : await readSecret(passwordName, passwordFile)
  const key = parseKey(appleFile, await readSecret(appleFile, keyFile), password?.split(/\r?\n/)[0])
  if (!certificate.checkPrivateKey(key)) throw wrong(appleFile, 'is not the key of APPLE_PASS_CERTIFICATE')
  if (!certificate.checkIssued(issuer) || !certificate.verify(issuer.publicKey))
    throw wrong('APPLE_WWDR_CERTIFICATE', 'did not issue APPLE_PASS_CERTIFICATE; get the one that its issuer names')
  const names = certificate.subject.split('\n')
  for (const [setting, name] of [
    ['APPLE_PASS_TYPE', `UID=${passType}`],
    ['APPLE_TEAM_ID', `OU=${team}`],
  ] as const)
    if (!names.includes(name)) throw wrong(setting, `is not the one that APPLE_PASS_CERTIFICATE names (${name})`)
  if (Date.now() < certificate.validFromDate.getTime())
    throw wrong('APPLE_PASS_CERTIFICATE', `is not valid before ${certificate.validFromDate.toISOString()}`)
  return {
    passType,
    team,
    certificate: certificate.toString(),
    key: key.export({ type: 'pkcs1', format: 'pem' }).toString(),
    intermediate: issuer.toString(),
    until: Math.min(certificate.validToDate.getTime(), issuer.validToDate.getTime()),
  }
}

async function readGoogle({ issuerId, accountFile }: NonNullable<Passport['google']>): Promise<GoogleSigner> {
  const {
    type,
    client_email: account,
    private_key: pem,
  } = parseJsonObject(await readSecret(googleFile, accountFile)) ?? {}
  if (type !== 'service_account' || typeof account !== 'string' || typeof pem !== 'string' || !emailText.test(account))
    throw wrong(googleFile, 'is not the JSON key of a service account, with type, client_email and private_key')
  return { issuerId, account, key: parseKey(googleFile, pem) }
}

const emailText = /^[\w.+-]{1,64}@[\w.-]{1,255}$/

async function readCertificate(setting: string, path: string): Promise<X509Certificate> {
  const pem = await textWithin(createReadStream(path), maxBytes).catch(({ code }: NodeJS.ErrnoException) => {
    throw wrong(setting, `cannot be read (${code ?? 'unknown reason'})`)
  })
  if (pem === null) throw wrong(setting, `has more than ${maxBytes} bytes`)
  try {
    return new X509Certificate(pem)
  } catch {
    throw wrong(setting, 'is no certificate in PEM')
  }
}

async function readSecret(setting: string, path: string): Promise<string> {
  const text = await readPrivateFile(path, { maxBytes }).catch((error: unknown) => {
    throw new ConfigError(`${setting}: ${error instanceof Error ? error.message : 'it cannot be read.'}`)
  })
  if (text === null) throw wrong(setting, `has more than ${maxBytes} bytes`)
  return text
}

/** Both wallets take RSA only. The reason of OpenSSL is left out, because it is about a secret. */
function parseKey(setting: string, pem: string, password?: string): KeyObject {
  const key = decrypted(pem, password)
  if (key === null) {
    const orElse = setting === appleFile ? `, or ${passwordName} does not open it` : ''
    throw wrong(setting, `holds no private key in PEM${orElse}`)
  }
  const bits = key.asymmetricKeyDetails?.modulusLength ?? 0
  if (key.asymmetricKeyType !== 'rsa' || bits < 2_048) throw wrong(setting, 'holds no RSA key of 2048 bits or more')
  return key
}

function decrypted(pem: string, passphrase?: string): KeyObject | null {
  try {
    return createPrivateKey({ key: pem, ...(passphrase !== undefined && { passphrase }) })
  } catch {
    return null
  }
}

function wrong(setting: string, what: string): ConfigError {
  return new ConfigError(`${setting} ${what}.`)
}
