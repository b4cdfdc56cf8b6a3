/**
 * The accounts of the demonstration. They are anvil's published ones, whose keys go into settings. With KEYS the keys are made in the
 * token, and get ether.
 */
import type { Hex } from '@touchstone/verdict'
import type { Config } from '../../app/config/config.ts'
import type { KeyName } from '../../app/config/key-source.ts'
import { openKeyStores } from '../../app/keys.ts'
import { moneyAccounts } from '../../chain/devchain/test-money.ts'
import { localRpc, transact } from '../../chain/devchain/transact.ts'
import { publishedAccounts, publishedAddresses, publishedKey } from '../../domain/published-accounts.ts'
import { storedEthereumKey } from '../../keys/ethereum.ts'

/** Indexes of anvil's accounts, by the names of the keys. */
const accounts = { operator: 0, attester: 1, facilitator: moneyAccounts.facilitator } as const
type DemoName = keyof typeof accounts & KeyName
type DemoSettings = Readonly<Partial<Record<`${Uppercase<DemoName>}_KEY`, Hex>>>

/** `settings` hold the keys that are not in the token. */
export type DemoAccounts = Readonly<{ addresses: Readonly<Record<DemoName, Hex>>; settings: DemoSettings }>

/** Makes missing keys in the token. Throws a KeyStoreError or KEY_STORE_UNAVAILABLE. */
export async function openDemoAccounts(config: Pick<Config, 'keys'>): Promise<DemoAccounts> {
  await using opened = new AsyncDisposableStack()
  const published = publishedAccounts(10)
  const stores = await openKeyStores(config, opened)
  const settings: Record<string, Hex> = {}
  const addresses: Record<string, Hex> = {}
  for (const [name, index] of Object.entries(accounts) as [DemoName, number][]) {
    const store = stores(name)
    if (store !== null) {
      const key = (await store.signingKey(name)) ?? (await store.generateSigningKey(name, 'secp256k1'))
      addresses[name] = storedEthereumKey(key).address
      continue
    }
    addresses[name] = published[index]?.address ?? '0x'
    settings[`${name.toUpperCase()}_KEY`] = publishedKey(index)
  }
  return { addresses: addresses as DemoAccounts['addresses'], settings }
}

/** Sends ether for gas to the accounts that have none: those that anvil does not know. */
export async function fundAccounts(rpcUrl: string, addresses: DemoAccounts['addresses']): Promise<void> {
  const rpc = localRpc(rpcUrl)
  const from = publishedAddresses[moneyAccounts.minter] as Hex
  for (const to of Object.values(addresses))
    if ((await rpc('eth_getBalance', [to, 'latest'])) === '0x0')
      await transact(rpc, 'the ether for gas', { from, to, data: '0x', value: thousandEther })
}

const thousandEther = '0x3635c9adc5dea00000'
