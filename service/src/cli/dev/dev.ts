/**
 * `touchstone dev` (`npm start`) runs the whole service on one machine, in one folder. It has an embedded chain, an embedded database and a
 * small catalogue. It prints links and commands that work at once.
 */
import { existsSync } from 'node:fs'
import { join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { publishedAddresses } from '../../domain/published-accounts.ts'
import { clientCommand } from '../../domain/release.ts'
import { startLocalChain } from '../../chain/devchain/devchain.ts'
import {
  deployLocalAgents,
  localAgentId,
  localAgentRegistries,
  registerLocalAgent,
} from '../../chain/devchain/agent-registries.ts'
import { deployLocal } from '../../chain/devchain/deploy.ts'
import { installTestMoney, moneyAccounts } from '../../chain/devchain/test-money.ts'
import { type Config, ConfigError, readConfig } from '../../app/config/config.ts'
import type { Service } from '../../app/service.ts'
import { appliedMigrations } from '../../db/migrate.ts'
import { createLog } from '../../lib/log.ts'
import { isListening } from '../doctor/port.ts'
import { type ApiKeyStore, newApiKey } from '../../access/api-keys.ts'
import { type DemoAccounts, fundAccounts, openDemoAccounts } from './accounts.ts'
import { demoThemes, type DemoItem, openDemoCatalogue } from './catalogue.ts'
import { demoBatch } from './products.ts'
import { readOrCreateDemoSecrets } from './secrets.ts'
import { warnOfNames } from '../serve/serve.ts'
import { handleSignals } from '../serve/signals.ts'
import { closeDataFolder } from '../session/closed-folder.ts'
import { acquireDataFolder, assertDataFolderFree } from '../session/data-directory-lock.ts'
import { defineCommand } from '../session/command.ts'
import { sessionBase } from '../session/session.ts'
import { commandRunner } from '../store-commands.ts'
import { emulateTaps } from '../tag/emulate.ts'

/** Defaults of the demonstration, which the environment overrides. An idle chain makes no blocks, so its head may have any age. */
const demonstration = {
  CHAIN_MAX_HEAD_AGE_SECONDS: '0',
  CHAIN_INTERFACE: 'registry',
  PROOF_BUNDLE: 'on',
  INDEX_POLL_MS: '1000',
  LOG_LEVEL: 'warn',
  PAGE_OWNERSHIP: 'claim,transfer,report,passkey',
  DEMO: 'on',
  THEME_DIR: demoThemes,
}

/** The only chain there is runs on this machine: an answer that takes long is better than none. */
const longDeadlines = { attemptTimeoutMs: 20_000, readTimeoutMs: 40_000, rpcTimeoutMs: 30_000, receiptWaitMs: 60_000 }

export function devCommand(): Command {
  const description =
    'Runs everything on this machine: a chain, the registry with a small catalogue, a database, the service.'
  return defineCommand('dev', description, {
    notes:
      'Environment: as for `touchstone serve`, but for ONLY; DATA_DIR, VERIFICATION_PORT and LOCAL_CHAIN_PORT are the usual ones.',
    examples: ['touchstone dev'],
  }).action(dev)
}

async function dev(): Promise<void> {
  const env = { ...demonstration, ...process.env, ONLY: '' }
  const given = readConfig(env)
  const { dataDir, store, hosts, keys, localChain, logLevel } = given
  const log = createLog((line) => process.stderr.write(`${line}\n`), logLevel)
  warnOfNames(log)
  const signals = handleSignals()
  await assertDataFolderFree(dataDir)
  for (const host of ['verification', 'gateway', 'graphql'] as const)
    await assertFree(hosts.bind, hosts[host].port, `${host.toUpperCase()}_PORT`)
  await assertFree('127.0.0.1', localChain.port, 'LOCAL_CHAIN_PORT')
  await assertNoService(given)

  await using opened = new AsyncDisposableStack()
  await closeDataFolder({ dataDir, store }, log)
  const lock = opened.use(await acquireDataFolder(dataDir))
  const chain = await step('chain', () =>
    startLocalChain({ dataDir, port: localChain.port, log: log.child('local chain') }),
  )
  opened.defer(() => chain.close())
  const accounts = await openDemoAccounts({ keys })
  const deployed = await step('registry and test money', () => deployDemonstration(chain.url, accounts))
  const { kek, stationKek, pepper } = await readOrCreateDemoSecrets(dataDir)
  const own = { ...deployed, ...accounts.settings, TAG_KEK: kek, STATION_KEK: stationKek, TAG_PEPPER: pepper }
  const noFiles = Object.fromEntries(Object.keys(own).map((name) => [`${name}_FILE`, '']))
  const config = readConfig({ ...env, ...own, ...noFiles })
  // Loaded by the commands that start them, so that the other commands begin in half the time.
  const { startService } = await import('../../app/service.ts')
  const service = await step('database and hosts', () => startService(config, log, { deadlines: longDeadlines }))
  opened.defer(() => service.close(500))
  await service.components.writer.recover()
  const items = await step('catalogue', (print) =>
    openDemoCatalogue({ components: service.components, rpcUrl: chain.url, progress: print }),
  )
  const registration = await fetch(`${service.urls.verification}/api/agent`)
  await registerLocalAgent({ rpcUrl: chain.url, registration: await registration.text() })
  await chain.save()
  const { components, urls } = service
  const session = sessionBase(config, urls.verification, { store: components, chain: components })
  const text = formatWelcome(service, {
    items: await tapAll(session, items),
    apiKey: await demoApiKey(components.apiKeys),
    rpcUrl: chain.url,
    dataDir,
  })
  lock.serve(await commandRunner(config, service))
  opened.defer(() => lock.stop())
  signals.started()
  process.stdout.write(text)
  await signals.stop
  process.stdout.write('\nStopping …\n')
}

/** Deploys what the demonstration needs on its chain, and returns the settings that name it. */
async function deployDemonstration(rpcUrl: string, { addresses }: DemoAccounts) {
  const payer = publishedAddresses[moneyAccounts.payer] ?? '0x'
  await installTestMoney({ rpcUrl, fund: [{ address: payer, amount: 100_000_000n }] })
  const { contract, codeHash } = await deployLocal({ rpcUrl, ...addresses })
  await fundAccounts(rpcUrl, addresses)
  await deployLocalAgents({ rpcUrl })
  return {
    CHAIN_RPC_URLS: rpcUrl,
    CHAIN_CONTRACT: contract,
    CHAIN_CODE_HASH: codeHash,
    PUBLIC_RPC_URL: rpcUrl,
    AGENT_ID: localAgentId.toString(),
    AGENT_IDENTITY_REGISTRY: localAgentRegistries.identity,
    AGENT_REPUTATION_REGISTRY: localAgentRegistries.reputation,
    PAYMENT_PAY_TO: publishedAddresses[moneyAccounts.seller] ?? '',
  }
}

/** Makes an API key to try GraphQL, and revokes that of the start before. */
async function demoApiKey(keys: ApiKeyStore): Promise<string> {
  const name = 'npm start'
  for (const key of await keys.list()) if (key.name === name && key.revokedAt === null) await keys.revoke(key.id)
  const { text, hash } = newApiKey()
  await keys.create({ hash, name, scopes: ['read', 'write'] })
  return text
}

/** `tap` is the URL of a fresh tap of its software tag. It verifies once, and for five minutes after the first use. */
type WelcomeItem = DemoItem & { readonly tap: string | null }

async function tapAll(
  session: Parameters<typeof emulateTaps>[0],
  items: readonly DemoItem[],
): Promise<readonly WelcomeItem[]> {
  const tapped: WelcomeItem[] = []
  for (const item of items) {
    const { uid, gtin, serial } = item
    const address = `https://${new URL(session.baseUrl).host}/01/${gtin}/21/${serial}?picc={picc}&cmac={cmac}`
    const taps = uid && (await emulateTaps(session, { batchId: demoBatch, uid, address, count: 1 }))
    tapped.push({ ...item, tap: taps?.urls[0] ?? null })
  }
  return tapped
}

/** Throws when a port is in use. It runs before anything is started, so that a wrong start changes nothing. */
async function assertFree(host: string, port: number, setting: string): Promise<void> {
  if (port === 0) return
  if (await isListening(host, port))
    throw new ConfigError(
      `Port ${port} is in use. Stop the program that listens there, or choose another one, such as ${setting}=${port + 100}.`,
    )
}

/**
 * Throws where DATABASE_URL names the database of a service. Its payments and transactions are not on the chain of the demonstration. The
 * first row of a demonstration is its batch.
 */
async function assertNoService(config: Config): Promise<void> {
  if (config.store.databaseUrl === null) return
  const { openBareDatabase } = await import('../../app/store.ts')
  await using database = await openBareDatabase(config)
  if ((await appliedMigrations(database)).size === 0) return
  const others = await database.query(
    `select from (select 1 from operation union all select 1 from payment union all select 1 from tag_batch) kept
     where not exists (select from tag_batch where id = $1) limit 1`,
    [demoBatch],
  )
  if (others.length > 0)
    throw new ConfigError(
      'DATABASE_URL names the database of a service, and the demonstration would write into it: unset it, or name an empty one.',
    )
}

/** `apiKey` is for the playground and the GraphQL host, valid until the next start. */
type Made = Readonly<{ items: readonly WelcomeItem[]; apiKey: string; rpcUrl: string; dataDir: string }>

/** Returns the assignments that make `touchstone` a command of a shell in any folder. */
function shellSetup(dataDir: string): string {
  const above = fileURLToPath(import.meta.url).split(sep)
  const folders = above.map((_, index) => join(above.slice(0, -1 - index).join(sep), 'node_modules', '.bin'))
  const programs = folders.find((folder) => existsSync(join(folder, 'touchstone'))) // none: installed for all folders
  return `export ${programs === undefined ? '' : `PATH="${programs}:$PATH" `}DATA_DIR="${dataDir}"`
}

/** Returns the command of a reader who has the address alone, where the service offers the package. */
function withoutFolder(baseUrl: string, tokenId: bigint, rpcUrl: string): string {
  const command = clientCommand(baseUrl)
  if (command === null) return ''
  return `Or, in a folder without Touchstone:\n\n  ${command} verify ${baseUrl}/api/asset/${tokenId} --rpc ${rpcUrl} --deployment local\n\n`
}

function formatWelcome({ urls, components: { contract } }: Service, made: Made): string {
  const { items, apiKey, rpcUrl, dataDir } = made
  const baseUrl = urls.verification
  const rows = items.map(({ tokenId, state, name, tap }) => {
    const links = [`${baseUrl}/api/asset/${tokenId}`, ...(tap === null ? [] : [tap])]
    return `  ${state.padEnd(9)} ${name}\n${links.map((link) => `            ${link}`).join('\n')}`
  })
  const example = items.find(({ state }) => state === 'CLAIMED')?.tokenId ?? 1n
  return `
Touchstone runs: ${baseUrl}

The demo products, each with its keyless verdict and, where it carries a tag, the link that a tap on it opens:

${rows.join('\n')}

Try these in another terminal:

  ${shellSetup(dataDir)}
  curl ${baseUrl}/api/asset/${example}
  touchstone verify ${baseUrl}/api/asset/${example} --rpc ${rpcUrl} --deployment local
  touchstone verify ${example} --base-url ${baseUrl} --rpc ${rpcUrl} --deployment local --prove
  curl "$(touchstone tag emulate --tap)"
  touchstone pay ${example} --gateway ${urls.gateway}
  curl ${urls.graphql}/graphql -H 'Authorization: Bearer ${apiKey}' -H 'Content-Type: application/json' -d '{"query":"{ products(first: 3) { totalCount edges { node { id name state } } } }"}'

${withoutFolder(baseUrl, example, rpcUrl)}  docs       ${urls.verification}/docs
  playground ${urls.graphql}/playground   with the key ${apiKey}
  gateway    ${urls.gateway}/health

  chain      ${rpcUrl} (id 84532)   registry ${contract}
  data       ${dataDir}
  end        Ctrl-C
`
}

async function step<T>(name: string, run: (print: (detail: string) => void) => Promise<T>): Promise<T> {
  const began = performance.now()
  process.stdout.write(`  … ${name}\n`)
  const result = await run((detail) => void process.stdout.write(`    ${detail}\n`))
  process.stdout.write(`  ✔ ${name} (${((performance.now() - began) / 1000).toFixed(1)} s)\n`)
  return result
}
