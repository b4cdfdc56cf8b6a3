/** Keys of an operator for wallet passes, as Apple and Google give them, made by openssl. */
import { execFile } from 'node:child_process'
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { testFolder } from '../folder.ts'

const run = promisify(execFile)
const password = 'correct horse'

export type WalletKeys = {
  readonly env: Readonly<Record<string, string>>
  readonly at: (name: string) => string
  /** Makes another certificate of the same key; `days` of 0 is one that has ended. */
  readonly issue: (file: string, options: { readonly days?: number; readonly subject?: string }) => Promise<string>
  readonly google: KeyObject
}

/** Settings that switch the passes off. */
export const noWallets = {
  APPLE_PASS_TYPE: '',
  APPLE_TEAM_ID: '',
  APPLE_PASS_CERTIFICATE: '',
  APPLE_PASS_KEY_FILE: '',
  APPLE_PASS_KEY_PASSWORD_FILE: '',
  APPLE_WWDR_CERTIFICATE: '',
  GOOGLE_WALLET_ISSUER: '',
  GOOGLE_WALLET_ACCOUNT_FILE: '',
}

export async function makeWalletKeys(): Promise<WalletKeys> {
  const folder = testFolder()
  const at = (name: string) => join(folder, name)
  const subject = '/UID=pass.com.example.verify/CN=Pass Type ID: pass.com.example.verify/OU=TEAM123456/O=Example/C=CH'
  const rsa = ['-newkey', 'rsa:2048', '-nodes', '-keyout']
  for (const name of ['ca', 'other']) {
    const named = ['-days', '2', '-subj', `/CN=Test WWDR ${name}/OU=G4/O=Example/C=US`]
    await run('openssl', ['req', '-x509', ...rsa, at(`${name}.key`), '-out', at(`${name}.pem`), ...named])
  }
  await run('openssl', ['req', ...rsa, at('plain.key'), '-out', at('plain.csr'), '-subj', subject])
  const locked = ['-in', at('plain.key'), '-out', at('pass.key'), '-passout', `pass:${password}`]
  await run('openssl', ['pkcs8', '-topk8', ...locked])
  async function issue(file: string, options: { readonly days?: number; readonly subject?: string }) {
    const named = options.subject === undefined ? [] : ['-subj', options.subject]
    await run('openssl', ['req', '-new', '-key', at('plain.key'), '-out', at('next.csr'), '-subj', subject, ...named])
    const days = ['-days', String(options.days ?? 2)]
    const ca = ['-CA', at('ca.pem'), '-CAkey', at('ca.key'), '-CAcreateserial']
    await run('openssl', ['x509', '-req', '-in', at('next.csr'), '-out', at(file), ...ca, ...days])
    return at(file)
  }
  const certificate = await issue('pass.pem', {})
  const google = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const account = {
    type: 'service_account',
    client_email: 'touchstone-passes@example-operator-472911.iam.gserviceaccount.com',
    private_key: google.privateKey.export({ type: 'pkcs8', format: 'pem' }),
  }
  await writeFile(at('google.json'), JSON.stringify(account), { mode: 0o600 })
  await writeFile(at('password'), `${password}\n`, { mode: 0o600 })
  for (const name of ['ca.key', 'other.key', 'plain.key', 'pass.key']) await chmod(at(name), 0o600)
  const env = {
    APPLE_PASS_TYPE: 'pass.com.example.verify',
    APPLE_TEAM_ID: 'TEAM123456',
    APPLE_PASS_CERTIFICATE: certificate,
    APPLE_PASS_KEY_FILE: at('pass.key'),
    APPLE_PASS_KEY_PASSWORD_FILE: at('password'),
    APPLE_WWDR_CERTIFICATE: at('ca.pem'),
    GOOGLE_WALLET_ISSUER: '3388000000022345678',
    GOOGLE_WALLET_ACCOUNT_FILE: at('google.json'),
  }
  return {
    env,
    at,
    issue,
    google: google.publicKey,
  }
}
