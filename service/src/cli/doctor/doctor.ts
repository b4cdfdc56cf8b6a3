/** `touchstone doctor`: what keeps the service of these settings from its work, and the remedy. It changes nothing. */
import type { Command } from 'commander'
import { ConfigError, readConfig, readServiceConfig, type Config } from '../../app/config/config.ts'
import { misspeltSettings } from './misspelt.ts'
import { defineCommand } from '../session/command.ts'
import { holderOf } from '../session/control-client.ts'
import { coloured, formatJson } from '../session/output.ts'
import { type CheckFinding, type Finding, findingsOf, ok, warning, wrong } from './finding.ts'
import { checkPasses, checkThemes, checkTrustedDocuments } from './files.ts'
import { idleSettings } from './idle.ts'
import { checkKeys, checkRoleKeys } from './keys.ts'
import { checkFolder, checkNode, checkPorts } from './machine.ts'
import { checkOnChain } from './on-chain.ts'
import { checkChain, checkCollector, checkDatabase, checkRedis, checkReplica } from './upstreams.ts'

export function doctorCommand(): Command {
  return defineCommand('doctor', 'Checks settings, data folder, ports, database, chain, keys and clock.', {
    notes: `It reads the settings of touchstone serve, asks what they name, and changes nothing. Secrets are not shown.
Exit code 0: nothing is wrong, though there may be warnings; 1: something is.`,
    examples: ['touchstone doctor', 'touchstone doctor --json'],
  })
    .option('--json', 'print a JSON object')
    .action(async ({ json }: { json?: true }) => {
      const findings = await diagnoseSettings(process.env)
      const isWell = findings.every(({ state }) => state !== 'wrong')
      process.stdout.write(`${json === true ? formatJson({ ok: isWell, findings }) : format(findings)}\n`)
      process.exitCode = isWell ? 0 : 1
    })
}

export async function diagnoseSettings(env: NodeJS.ProcessEnv): Promise<readonly Finding[]> {
  const named = settingsOf(readConfig, env)
  const idle = misspeltSettings(env).map(({ name, meant }) =>
    ofSettings(warning(`${name} is no setting, and has no effect.`, `Write ${meant}, or remove it.`)),
  )
  if ('state' in named) return [checkNode(), named, ...idle]
  const holder = await holderOf(named.dataDir).catch(() => null)
  const isRunning = holder !== null
  if (isRunning && named.chain.rpcUrls.length === 0) return [checkNode(), unchecked(holder.pid), ...idle]
  const config = settingsOf(readServiceConfig, env)
  if ('state' in config) return [checkNode(), config, ...idle]
  const [chain, roleKeys, ...others] = await Promise.all([
    findingsOf('chain', 'Look at CHAIN_RPC_URLS.', () => checkChain(config)),
    findingsOf('keys', 'Look at the keys of the roles, and at KEYS and the module of the token.', () =>
      checkRoleKeys(config),
    ),
    findingsOf('folder', 'Look at the folder of DATA_DIR.', () => checkFolder(config)),
    findingsOf('ports', 'Look at HOST and the ports.', () => checkPorts(config, isRunning)),
    findingsOf('database', 'Start PostgreSQL, or correct DATABASE_URL.', () => checkDatabase(config, isRunning)),
    findingsOf('database', 'Correct DATABASE_READ_URL.', () => checkReplica(config)),
    findingsOf('redis', 'Look at REDIS_URL.', () => checkRedis(config)),
    findingsOf('traces', 'Look at OTEL_EXPORTER_OTLP_ENDPOINT.', () => checkCollector(config)),
    findingsOf('keys', 'Look at DATA_DIR/keys.', () => checkKeys(config)),
    findingsOf('settings', 'Correct THEME_DIR or the file.', () => checkThemes(config)),
    findingsOf('settings', 'Correct GRAPHQL_PERSISTED or the file.', () => checkTrustedDocuments(config)),
    findingsOf('passes', 'Correct the setting; docs/passports.md explains the files.', () => checkPasses(config)),
  ])
  const isReady = [...chain, ...roleKeys].every(({ state }) => state !== 'wrong')
  const onChain = isReady ? await checkOnChain(config) : []
  idle.push(...idleSettings(config, env).map(ofSettings))
  const running: readonly Finding[] = isRunning
    ? [{ area: 'machine', ...ok(`The service runs, as process ${holder.pid}.`) }]
    : []
  return [
    checkNode(),
    ...running,
    ofSettings(ok('They can be read.')),
    ...idle,
    ...chain,
    ...roleKeys,
    ...others.flat(),
    ...onChain,
  ]
}

function ofSettings(found: CheckFinding): Finding {
  return { area: 'settings', ...found }
}

/** The service of `npm start` makes its own settings, and another one may have been given them elsewhere. */
const unchecked = (pid: number): Finding =>
  ofSettings(
    warning(
      `Process ${pid} serves this folder with settings of its own, which were not checked.`,
      'Run touchstone doctor with those settings; npm start makes its own.',
    ),
  )

function settingsOf(read: typeof readConfig, env: NodeJS.ProcessEnv): Config | Finding {
  try {
    return read(env)
  } catch (error) {
    if (error instanceof ConfigError)
      return ofSettings(wrong(error.message, 'Correct it; touchstone serve --help lists every setting.'))
    throw error
  }
}

const marks = {
  ok: () => coloured('green', 'ok      '),
  warning: () => coloured('yellow', 'warning '),
  wrong: () => coloured('red', 'WRONG   '),
} as const

function format(findings: readonly Finding[]): string {
  const lines = findings.flatMap(({ area, state, what, remedy }) => [
    `  ${marks[state]()} ${area.padEnd(9)} ${what}`,
    ...(remedy === undefined ? [] : [`                     → ${remedy}`]),
  ])
  const count = findings.filter(({ state }) => state === 'wrong').length
  return [
    ...lines,
    count === 0
      ? `Nothing is wrong in the ${findings.length} things that were checked.`
      : `${count} ${count === 1 ? 'thing is' : 'things are'} wrong.`,
  ].join('\n')
}
