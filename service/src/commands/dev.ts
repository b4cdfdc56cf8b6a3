/**
 * `touchstone dev` (`npm start`): the whole service on one machine, with an embedded chain, an embedded database and a small catalogue,
 * everything in one folder. It prints links and commands that work at once.
 */
import { connect } from 'node:net'
import { Command } from 'commander'
import { bytesToHex } from 'viem'
import { publishedAccounts, publishedAddresses } from '../chain/local-chain-accounts.ts'
import { startLocalChain } from '../chain/local-chain.ts'
import { deployLocalAgents, localAgentId, localAgentRegistries, registerLocalAgent } from '../chain/local-agents.ts'
import { deployLocal } from '../chain/local-deployment.ts'
import { installTestMoney, moneyAccounts } from '../chain/local-money.ts'
import { ConfigError, readConfig } from '../config.ts'
import { createLog } from '../log.ts'
import { startService } from '../service.ts'
import { newApiKey, type ApiKeyStore } from '../store/api-keys.ts'
import { demoBatch, openDemoCatalogue, type DemoItem } from './demo-catalogue.ts'
import { readOrCreateDemoSecrets } from './demo-secrets.ts'
import { createProgress } from './progress.ts'
import { untilStopped } from './signals.ts'
import { assertNotHeld, holdFolder, sessionBase } from './store-command.ts'
import { commandRunner } from './store-program.ts'
import { emulateTaps } from './tag-emulator.ts'
import { welcome } from './welcome.ts'

/** Defaults of the demonstration; the environment overrules them. An idle chain makes no blocks, so no head is too old. */
const demonstration = {
  CHAIN_MAX_HEAD_AGE_SECONDS: '0',
  CHAIN_INTERFACE: 'registry',
  PROOF_BUNDLE: 'on',
  INDEX_POLL_MS: '25',
  LOG_LEVEL: 'warn',
  DEMO: 'on',
}

export function devCommand(): Command {
  return new Command('dev')
    .description(
      'Runs everything on this machine: a chain, the registry with a small catalogue, a database, the service.',
    )
    .addHelpText(
      'after',
      '\nEnvironment: as for `touchstone serve`; DATA_DIR, VERIFICATION_PORT and LOCAL_CHAIN_PORT are the usual ones.\n\nExample:\n  touchstone dev',
    )
    .action(dev)
}

async function dev(): Promise<void> {
  const env = { ...demonstration, ...process.env }
  const { dataDir, hosts, localChain, logLevel } = readConfig(env)
  const log = createLog((line) => process.stderr.write(`${line}\n`), logLevel)
  const stopped = untilStopped()
  await assertNotHeld(dataDir)
  await assertFree(hosts.bind, hosts.verification.port, 'VERIFICATION_PORT')
  await assertFree(hosts.bind, hosts.gateway.port, 'GATEWAY_PORT')
  await assertFree(hosts.bind, hosts.graphql.port, 'GRAPHQL_PORT')
  await assertFree('127.0.0.1', localChain.port, 'LOCAL_CHAIN_PORT')

  const progress = createProgress((text) => process.stdout.write(text))
  await using opened = new AsyncDisposableStack()
  const door = opened.use(await holdFolder(dataDir))
  const chain = await progress.step('chain', () =>
    startLocalChain({ dataDir, port: localChain.port, log: log.child('local chain') }),
  )
  opened.defer(() => chain.close())
  const { contract, codeHash } = await progress.step('registry and test money', async () => {
    const payer = publishedAddresses[moneyAccounts.payer] ?? '0x'
    await installTestMoney({ rpcUrl: chain.url, fund: [{ address: payer, amount: 100_000_000n }] })
    const deployed = await deployLocal({ rpcUrl: chain.url })
    await deployLocalAgents({ rpcUrl: chain.url })
    return deployed
  })
  const deployed = {
    CHAIN_RPC_URLS: chain.url,
    CHAIN_CONTRACT: contract,
    CHAIN_CODE_HASH: codeHash,
    PUBLIC_RPC_URL: chain.url,
    AGENT_ID: localAgentId.toString(),
    AGENT_IDENTITY_REGISTRY: localAgentRegistries.identity,
    AGENT_REPUTATION_REGISTRY: localAgentRegistries.reputation,
    PAYMENT_PAY_TO: publishedAddresses[moneyAccounts.seller] ?? '',
  }
  const secrets = await readOrCreateDemoSecrets(dataDir)
  const config = readConfig({
    ...env,
    ...deployed,
    ...demoKeys(),
    TAG_KEK: secrets.kek,
    TAG_PEPPER: secrets.pepper,
  })
  const service = await progress.step('database and hosts', () => startService(config, log))
  opened.defer(() => service.close(500))
  await service.parts.writer.recover()
  const items = await progress.step('catalogue', (say) =>
    openDemoCatalogue({ parts: service.parts, rpcUrl: chain.url, progress: say }),
  )
  const registration = await fetch(`${service.urls.verification}/api/agent`)
  await registerLocalAgent({ rpcUrl: chain.url, registration: await registration.text() })
  await chain.save()
  const taps = await tapAll({
    items,
    session: sessionBase(config, service.urls.verification, { store: service.parts, chain: service.parts }),
  })
  door.serve(commandRunner({ config, service }))
  opened.defer(() => door.stop())
  stopped.started()
  process.stdout.write(
    welcome({
      items: items.map((item, index) => ({ ...item, tap: taps[index] ?? null })),
      urls: service.urls,
      apiKey: await demoApiKey(service.parts.apiKeys),
      rpcUrl: chain.url,
      contract: service.parts.contract,
      codeHash,
      dataDir,
    }),
  )

  await stopped.asked
  process.stdout.write('\nStopping …\n')
}

/** A key to try GraphQL with; that of the start before ends. */
async function demoApiKey(keys: ApiKeyStore): Promise<string> {
  const name = 'npm start'
  for (const key of await keys.list()) if (key.name === name && key.revokedAt === null) await keys.revoke(key.id)
  const { text, hash } = newApiKey()
  await keys.create({ hash, name, scopes: ['read', 'write'] })
  return text
}

/** One fresh tap of each tag, for the product's page. */
async function tapAll({
  items,
  session,
}: {
  readonly items: readonly DemoItem[]
  readonly session: Parameters<typeof emulateTaps>[0]
}): Promise<(string | null)[]> {
  const taps: (string | null)[] = []
  for (const { uid, gtin, serial } of items) {
    const address = `https://${new URL(session.baseUrl).host}/01/${gtin}/21/${serial}?picc={picc}&cmac={cmac}`
    const tapped = uid && (await emulateTaps(session, { batchId: demoBatch, uid, address, count: 1 }))
    taps.push(tapped?.urls[0] ?? null)
  }
  return taps
}

/** anvil's published accounts: 0 is the operator, 1 the attester; another one settles payments. */
function demoKeys(): { OPERATOR_KEY: string; ATTESTER_KEY: string; FACILITATOR_KEY: string } {
  const keys = publishedAccounts(10).map((account) => bytesToHex(account.getHdKey().privateKey ?? new Uint8Array()))
  return {
    OPERATOR_KEY: keys[0] ?? '',
    ATTESTER_KEY: keys[1] ?? '',
    FACILITATOR_KEY: keys[moneyAccounts.facilitator] ?? '',
  }
}

/** Asked before anything is started, so that a wrong start changes nothing. */
async function assertFree(host: string, port: number, setting: string): Promise<void> {
  if (port === 0) return
  const taken = await new Promise<boolean>((resolve) => {
    const socket = connect({ port, host, timeout: 1_000 })
    socket
      .once('connect', () => resolve(true))
      .once('error', () => resolve(false))
      .once('timeout', () => resolve(false))
    socket.once('close', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
  if (taken)
    throw new ConfigError(
      `Port ${port} is in use. End what listens there, or choose another one, such as ${setting}=${port + 100}.`,
    )
}
