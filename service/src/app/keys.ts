/** Opens the private keys of this process where the settings place them (spec §5): in settings and files, or in a PKCS#11 token. */
import type { OperatorKeys } from '../chain/transactions/writer.ts'
import { accountOf, type EthereumKey, localEthereumKey, storedEthereumKey } from '../keys/ethereum.ts'
import { type KeyStore, KeyStoreError } from '../keys/key.ts'
import { openToken } from '../keys/pkcs11/token.ts'
import { type Config, ConfigError } from './config/config.ts'
import type { KeyName } from './config/key-source.ts'
import type { LocalAccount } from 'viem'

/** Returns the key store that holds the named key; null: it is in a setting or a file. */
export type KeyStores = (name: KeyName) => KeyStore | null

/** Opens the token, if the settings name one. Throws a KeyStoreError or KEY_STORE_UNAVAILABLE. */
export async function openKeyStores({ keys }: Pick<Config, 'keys'>, opened: AsyncDisposableStack): Promise<KeyStores> {
  if (keys === null) return () => null
  const token = opened.use(await openToken(keys.token))
  return (name) => (keys.names.has(name) ? token : null)
}

/** Returns one key for all operator roles, and one for the attester. A role without a key writes nothing. */
export async function operatorKeys({ operator }: Pick<Config, 'operator'>, stores: KeyStores): Promise<OperatorKeys> {
  const account = await accountFor('operator', operator.key, stores)
  const attester = await accountFor('attester', operator.attesterKey, stores)
  return {
    ...(account && {
      issuer: account,
      binder: account,
      qa: account,
      guardian: account,
      recycler: account,
      relayer: account,
    }),
    ...(attester && { attester }),
  }
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
