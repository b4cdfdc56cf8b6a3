/** Opens the private keys of this process where the settings place them (spec §5): settings and files, or a PKCS#11 token. */
import { join } from 'node:path'
import type { OperatorRole } from '../chain/transactions/calls.ts'
import type { OperatorKeys } from '../chain/transactions/writer.ts'
import { isPublishedAddress } from '../domain/published-accounts.ts'
import { accountOf, type EthereumKey, localEthereumKey, storedEthereumKey } from '../keys/ethereum.ts'
import { type KeyStore, KeyStoreError } from '../keys/key.ts'
import { openToken } from '../keys/pkcs11/token.ts'
import type { KeySourceOptions } from '../payments/attestation/source.ts'
import { type Config, ConfigError } from './config/config.ts'
import { type KeyName, operatorSettings } from './config/key-source.ts'
import type { LocalAccount } from 'viem'

/** Returns the key store that holds the named key; null: it is in a setting or a file. */
export type KeyStores = (name: KeyName) => KeyStore | null

/** Opens the token, if the settings name one. Throws a KeyStoreError or KEY_STORE_UNAVAILABLE. */
export async function openKeyStores({ keys }: Pick<Config, 'keys'>, opened: AsyncDisposableStack): Promise<KeyStores> {
  if (keys === null) return () => null
  const token = opened.use(await openToken(keys.token))
  return (name) => (keys.names.has(name) ? token : null)
}

/** The key of a role, and the setting, or the name in the token, that it came from. */
export type RoleKey = Readonly<{ role: OperatorRole; account: LocalAccount; from: string }>

/**
 * Returns the keys of the operator's roles and of the attester. They are in settings of their own or named `operator-issuer` and so on in a
 * token; else it is the operator key. A role without a key writes nothing.
 */
export async function openRoleKeys({ operator }: Pick<Config, 'operator'>, stores: KeyStores): Promise<RoleKey[]> {
  const token = stores('operator')
  const own = await Promise.all(
    operatorSettings.map(async ([role, variable]): Promise<RoleKey | null> => {
      const secret = operator[`${role}Key`]
      if (token === null) return secret && { role, account: accountOf(localKey(secret, variable)), from: variable }
      const stored = await token.signingKey(`operator-${role}`)
      return stored && { role, account: accountOf(storedEthereumKey(stored)), from: stored.name }
    }),
  )
  const isComplete = own.every((key) => key !== null)
  const account = isComplete && token !== null ? null : await accountFor('operator', operator.key, stores)
  const attester = await accountFor('attester', operator.attesterKey, stores)
  const shared = token === null ? 'OPERATOR_KEY' : 'operator'
  const keys: RoleKey[] = operatorSettings.flatMap(
    ([role], index) => own[index] ?? (account === null ? [] : [{ role, account, from: shared }]),
  )
  const from = stores('attester') === null ? 'ATTESTER_KEY' : 'attester'
  return attester === null ? keys : [...keys, { role: 'attester', account: attester, from }]
}

export function keysByRole(keys: readonly RoleKey[]): OperatorKeys {
  return Object.fromEntries(keys.map(({ role, account }) => [role, account]))
}

/** Returns the roles of each account that has several. A stolen key of such an account has all of them. */
export function sharedRoles(keys: readonly RoleKey[]): readonly (readonly OperatorRole[])[] {
  const accounts = Map.groupBy(keys, ({ account }) => account.address)
  return [...accounts.values()].filter((own) => own.length > 1).map((own) => own.map(({ role }) => role))
}

/** Returns the accounts that take turns at settlements: `facilitator`, `facilitator-2` and so on of a token. */
export async function facilitatorAccounts(
  { gateway: { facilitatorKey, facilitatorKeys } }: Pick<Config, 'gateway'>,
  stores: KeyStores,
): Promise<readonly LocalAccount[]> {
  const store = stores('facilitator')
  const keys =
    store === null
      ? [facilitatorKey, ...facilitatorKeys].flatMap((key) => (key === null ? [] : [localKey(key, 'FACILITATOR_KEY')]))
      : (await store.signingKeys('facilitator'))
          .filter(({ name }) => /^facilitator(-\d+)?$/.test(name))
          .map(storedEthereumKey)
  if (store !== null && keys.length === 0) throw missing('facilitator')
  const distinct = new Map(keys.map((key) => [key.address, key]))
  return [...distinct.values()].map(accountOf)
}

/** Returns the keys that authorize claims of payment channels, the one for new channels first. */
export function channelKeys({ gateway }: Pick<Config, 'gateway'>): readonly EthereumKey[] {
  return gateway.channels ? gateway.channelKeys.map((key) => localKey(key, 'PAYMENT_CHANNEL_KEYS')) : []
}

export function attestationSources(
  { dataDir, demo, gateway }: Pick<Config, 'dataDir' | 'demo' | 'gateway'>,
  stores: KeyStores,
): KeySourceOptions {
  return {
    folder: join(dataDir, 'keys'),
    privateKey: gateway.attestationKey,
    keystore: gateway.keystore,
    keystorePasswordFile: gateway.keystorePasswordFile,
    keyStore: stores('attestation'),
    isPublicKnowledge: isPublishedAddress,
    demo,
  }
}

/** Throws a ConfigError where a key is missing that steps of ownership in a page need. */
export function assertPageKeys({ pages: { ownership }, tap }: Pick<Config, 'pages' | 'tap'>, keys: OperatorKeys): void {
  if (!ownership.has('claim') && !ownership.has('transfer')) return
  if (tap.kek === null || keys.relayer === undefined || (ownership.has('claim') && keys.attester === undefined))
    throw new ConfigError('PAGE_OWNERSHIP=claim,transfer needs TAG_KEK and RELAYER_KEY, for claims also ATTESTER_KEY.')
}

async function accountFor(
  name: 'operator' | 'attester',
  secret: Uint8Array | null,
  stores: KeyStores,
): Promise<LocalAccount | null> {
  const store = stores(name)
  if (store === null) return secret === null ? null : accountOf(localKey(secret, `${name.toUpperCase()}_KEY`))
  const key = await store.signingKey(name)
  if (key === null) throw missing(name)
  return accountOf(storedEthereumKey(key))
}

function localKey(secret: Uint8Array, variable: string): EthereumKey {
  const key = localEthereumKey(secret)
  if (key === null) throw new ConfigError(`${variable} must be a private key of secp256k1.`)
  return key
}

function missing(name: KeyName): KeyStoreError {
  return new KeyStoreError(
    `The PKCS#11 token has no key named ${name}. Make it with touchstone hsm generate ${name}, or leave ${name} out of keys= in KEYS.`,
  )
}
