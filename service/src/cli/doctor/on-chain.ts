/** Checks of what the keys and the gateway of the service need on chain: roles, ether and the token. */
import type { Hex } from '@touchstone/verdict'
import { type Config, localUrl } from '../../app/config/config.ts'
import { channelKeys, facilitatorAccounts, type KeyStores, openKeyStores, openRoleKeys } from '../../app/keys.ts'
import type { RpcClient } from '../../chain/rpc/client.ts'
import { chainId } from '../../domain/chain.ts'
import { createLog } from '../../lib/log.ts'
import { type CheckFinding, type Finding, findingsOf, ok, warning, wrong } from './finding.ts'

const log = createLog(() => {}, 'silent')

/** Asks what `touchstone chain roles` and the health of the gateway ask. The chain answers, and the keys can be opened. */
export async function checkOnChain(config: Config): Promise<readonly Finding[]> {
  const { contract, rpcUrls } = config.chain
  if (contract === null) return []
  const { createAnyProvider } = await import('../../chain/rpc/any-provider.ts')
  const { requiredAnswers } = await import('../../chain/rpc/trust.ts')
  await using opened = new AsyncDisposableStack()
  const neededForReceipts = requiredAnswers(config.chain)
  const { rpc } = opened.adopt(createAnyProvider({ rpcUrls, contract, chainId, neededForReceipts, log }), (it) =>
    it.close(),
  )
  const stores = await openKeyStores(config, opened)
  const found = [
    await findingsOf('roles', 'Run touchstone chain roles.', () => checkRoles(config, contract, stores, rpc)),
    await findingsOf('gateway', 'Ask for /health of the gateway.', () => checkGateway(config, contract, stores, rpc)),
  ]
  return found.flat()
}

async function checkRoles(
  { operator, chain }: Config,
  contract: Hex,
  stores: KeyStores,
  paymentRpc: RpcClient,
): Promise<readonly CheckFinding[]> {
  const roleKeys = await openRoleKeys({ operator }, stores)
  if (roleKeys.length === 0 || chain.interface === 'foreign') return []
  const { createChainSource } = await import('../../chain/rpc/source.ts')
  const { examineRoles } = await import('../chain-roles.ts')
  await using opened = new AsyncDisposableStack()
  const indexSource = opened.adopt(createChainSource({ ...chain, contract, chainId, log }), (it) => it.close())
  const parts = { contract, chainInterface: chain.interface, indexSource, startBlock: null, roleKeys, paymentRpc }
  const { keys, missing } = await examineRoles(parts, { err: () => {}, signal: new AbortController().signal })
  if (missing.length === 0) return [ok('Every key holds its role on chain, and has ether.')]
  const nameOf = (address: Hex | null) => `${keys.find((key) => key.address === address)?.key} (${address})`
  const keyless = missing.filter(({ what }) => what === 'key')
  const unfunded = missing.filter(({ what }) => what === 'ether')
  const lacking = missing.filter(({ what }) => what !== 'key' && what !== 'ether')
  return [
    ...[...Map.groupBy(lacking, ({ address }) => address)].map(([address, own]) => {
      const roles = new Set(own.map(({ what }) => what.replace(forReported, '')))
      const sentence = `${nameOf(address)} lacks ${[...roles].join(', ')}.`
      const remedy = 'Let the admin of the contract give it: touchstone chain roles prints the command for each.'
      return (own.every(({ what }) => forReported.test(what)) ? warning : wrong)(sentence, remedy)
    }),
    ...unfunded.map(({ address, remedy }) => wrong(`${nameOf(address)} has no ether.`, remedy)),
    ...keyless.map(({ role, remedy }) =>
      warning(`The role ${role} has no key: the service writes nothing as it.`, remedy),
    ),
  ]
}

/** Follows a role that only items that were reported need. */
const forReported = / \(.*\)$/

async function checkGateway(
  config: Config,
  contract: Hex,
  stores: KeyStores,
  rpc: RpcClient,
): Promise<readonly CheckFinding[]> {
  if (!config.roles.has('gateway')) return []
  const { facilitatorUrl: url, facilitatorHeadersFile: headersFile, allowHighPrice } = config.gateway
  const { paymentTermsOf } = await import('../../app/hosts.ts')
  const { channelTerms } = await import('../../payments/x402/terms.ts')
  const { createRemoteFacilitator } = await import('../../payments/facilitator/remote.ts')
  const { createPaymentChain } = await import('../../payments/on-chain.ts')
  const { examineSale } = await import('../../payments/self-check.ts')
  const { bind, gateway } = config.hosts
  const plain = paymentTermsOf(config, gateway.url ?? localUrl(bind, gateway.port))
  const [first, ...more] = channelKeys(config)
  const terms = { ...plain, channels: first && channelTerms([first, ...more], plain.price) }
  const chain = createPaymentChain({ rpc, asset: terms.asset })
  const accounts = url === null ? await facilitatorAccounts(config, stores) : []
  const facilitatorAddresses = accounts.map(({ address }) => address)
  const facilitator =
    url === null ? { supports: async () => true } : createRemoteFacilitator({ url, headersFile, terms, chain })
  const shared = { rpc, heads: chain.heads, terms, contract, allowHighPrice }
  const results = await examineSale({ ...shared, facilitator, facilitatorAddresses })
  const found = results.filter(({ state }) => state !== 'ok')
  if (found.length === 0) return [ok('It can sell: token, facilitator and ether are there.')]
  const unpaid = found.some(({ name }) => name === 'settlement')
  return found
    .filter(({ name }) => !(unpaid && name === 'gas'))
    .map(({ name, state, message }) => {
      const remedy = remedies[name] ?? `Send ether to ${facilitatorAddresses.join(', ')}.`
      return (state === 'wrong' || name === 'settlement' ? wrong : warning)(message, remedy)
    })
}

/** The remedies of the gateway's checks by their names. The remedy of all other checks is ether. */
const remedies: Readonly<Record<string, string>> = {
  price: 'Correct PAYMENT_PRICE, or set PAYMENT_HIGH_PRICE.',
  chain: 'Correct CHAIN_RPC_URLS.',
  clock: 'Synchronise the clocks with NTP (timedatectl set-ntp true).',
  token: 'Correct PAYMENT_ASSET, PAYMENT_ASSET_NAME and PAYMENT_ASSET_VERSION.',
  contract: 'Correct CHAIN_CONTRACT.',
  facilitator: 'Correct FACILITATOR_URL, or name another facilitator.',
  channels: 'Set PAYMENT_CHANNELS=off.',
}
