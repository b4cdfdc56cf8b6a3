/**
 * `npm run docs` writes the generated parts of docs/*.md, between their markers. They are settings, metrics, commands, error codes,
 * the references of the API and of GraphQL. With `--check` it writes nothing and lists what is not up to date.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { parse } from 'yaml'
import { completionCommand } from '../service/src/cli/completion.ts'
import { type CommandRight, commandRights } from '../service/src/cli/session/command-rights.ts'
import { localCommands } from '../service/src/cli/program.ts'
import { loadStoreCommands } from '../service/src/cli/store-commands.ts'
import { type Rule, rules } from '../service/src/graphql/access/rules.ts'
import { errorRows } from '../service/src/lib/error-codes.ts'
import { createLog } from '../service/src/lib/log.ts'
import { readMigrations } from '../service/src/db/migrate.ts'
import { createMetrics } from '../service/src/app/metrics.ts'
import { settings } from '../service/src/app/config/schema.ts'
import type { Setting } from '../service/src/app/config/setting.ts'
import { commandsWithin } from '../service/test/support/processes/commands.ts'
import { code, tableOf } from './markdown-table.ts'
import { apiReference, schemaReference } from './references.ts'
import { readOptions } from './options.ts'

const folder = new URL('../docs/', import.meta.url)
const local = await localCommands()
const makeStoreCommands = await loadStoreCommands()

/** Every source as it is and as it should be. */
export function docsSources(): readonly { readonly name: string; readonly found: string; readonly wanted: string }[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.md'))
    .map((name) => {
      const found = readFileSync(new URL(name, folder), 'utf8')
      return { name, found, wanted: withTables(found, name) }
    })
}

function withTables(source: string, file: string): string {
  return source.replace(/^<!-- generated:(\S+) -->\n[^]*?^<!-- \/generated -->$/gm, (_, name: string) => {
    const [table, text] = [tables[name], texts[name]]
    if (table === undefined && text === undefined)
      throw new Error(`docs/${file} asks for ${name}, which is not generated.`)
    return `<!-- generated:${name} -->\n\n${text?.() ?? tableOf(...(table?.() ?? [[], []]))}\n\n<!-- /generated -->`
  })
}

/** Parts that are no single table. */
const texts: Readonly<Record<string, () => string>> = { api: apiReference, schema: schemaReference }

type Table = readonly [head: readonly string[], rows: readonly (readonly string[])[]]

const tables: Readonly<Record<string, () => Table>> = {
  settings: () => [
    ['Setting', 'Default', 'Meaning'],
    Object.entries<Setting>(settings).map(([name, { fallback, help, secret }]) => [
      code(name) + (secret === true ? ' _secret_' : ''),
      fallback === '' ? '–' : code(fallback),
      help,
    ]),
  ],
  metrics: () => [
    ['Metric', 'Type', 'Labels', 'Meaning'],
    createMetrics({ version: '', log: createLog(() => {}) })
      .registry.getMetricsAsArray()
      .filter(({ name }) => name.startsWith('touchstone_'))
      .map((metric) => [code(metric.name), typeOf(metric), labelsOf(metric), metric.help]),
  ],
  alerts: () => [
    ['Alert', 'Means', 'Expression', 'For', 'Do'],
    alertRules().map(({ alert, expr, for: time = '–', annotations: { summary, description } }) => [
      alert,
      summary,
      code(expr),
      time,
      description,
    ]),
  ],
  migrations: () => [
    ['Migration', 'Purpose', 'Lost by `--undo`'],
    readMigrations().map(({ name, script, undo }) => [
      code(name.replace('.sql', '')),
      firstSentence(script).replace(/[:;] .*/, ''),
      undo === undefined ? 'cannot be reverted' : firstSentence(undo),
    ]),
  ],
  commands: () => [
    ['Command', 'Effect', 'Changes'],
    programs()
      .flatMap((program) => commandsWithin(program))
      .map(commandRow),
  ],
  rights: () => [['Field', 'Scopes', 'A key with brands'], Object.entries(rules).map(rightsRow)],
  errors: () => [
    ['Condition', 'Keyless read', 'MCP tool', 'MCP request', 'A2A', 'GraphQL', 'Gateway'],
    errorRows.map(({ name, rest, tool, mcp, a2a, graphql, gateway }) => [
      titleOf(name),
      rest === undefined ? '–' : `${rest} ${code(name)}`,
      tool === undefined ? '–' : code(name),
      mcp === undefined ? '–' : `${mcp[1]}, ${mcp[0]}`,
      a2a === undefined ? '–' : `${a2a[2]}, ${a2a[1]}`,
      graphql === undefined ? '–' : code(graphql),
      gateway === undefined ? '–' : `${gateway.status} ${code(gateway.error)}`,
    ]),
  ],
  'errors-keyless': () => [
    ['Code', 'Status', 'Meaning', 'Remedy'],
    errorRows.flatMap(({ name, rest, meaning, remedy }) =>
      rest === undefined ? [] : [[code(name), String(rest), meaning, remedy]],
    ),
  ],
  'errors-gateway': () => [
    ['`error`', 'Status', 'Message', 'Remedy'],
    errorRows.flatMap(({ gateway, meaning, remedy }) =>
      gateway === undefined ? [] : [[code(gateway.error), String(gateway.status), gateway.message ?? meaning, remedy]],
    ),
  ],
  'errors-graphql': () => [
    ['`extensions.code`', 'Meaning', 'Remedy'],
    errorRows.flatMap(({ graphql, meaning, remedy }) =>
      graphql === undefined ? [] : [[code(graphql), meaning, remedy]],
    ),
  ],
  'errors-a2a': () => [
    ['`reason`', 'JSON-RPC', 'Status', 'Canonical code', 'Meaning', 'Remedy'],
    errorRows.flatMap(({ a2a, meaning, remedy }) =>
      a2a === undefined ? [] : [[code(a2a[0]), String(a2a[1]), String(a2a[2]), code(a2a[3]), meaning, remedy]],
    ),
  ],
}

/** Returns the first sentence of the comment that a script begins with. */
function firstSentence(script: string): string {
  const comment = /^(?:--.*\n)+/.exec(script)?.[0].replace(/^-- ?/gm, '').replaceAll('\n', ' ').trim() ?? ''
  return (/^.*?\.(?=\s|$)/.exec(comment)?.[0] ?? comment).replace(/\.$/, '')
}

/** Writes `INVALID_TOKEN_ID` as words. The first cell of the overview is not a code, because each code is an anchor once a page. */
function titleOf(name: string): string {
  return name.charAt(0) + name.slice(1).toLowerCase().replaceAll('_', ' ')
}

function programs(): readonly Command[] {
  const nothing = () => Promise.resolve()
  return [...local, completionCommand(new Command('touchstone')), ...makeStoreCommands(nothing, () => {}, nothing)]
}

function commandRow({ path, command }: ReturnType<typeof commandsWithin>[number]): string[] {
  const name = path.join(' ')
  const words = command.registeredArguments.map((argument) => ` <${argument.name()}>`).join('')
  const right = commandRights[name]
  if (right === undefined) throw new Error(`${name} has no right in service/src/cli/session/command-rights.ts.`)
  return [code(`touchstone ${name}${words}`), command.description(), changesOf[right]]
}

const changesOf: Readonly<Record<CommandRight, string>> = { reads: 'no', changes: 'yes', noted: 'yes', apart: 'apart' }

type AlertRule = {
  readonly alert: string
  readonly expr: string
  readonly for?: string
  readonly annotations: Readonly<Record<'summary' | 'description', string>>
}

/** The alerting rules in deploy/, in their order. */
export function alertRules(): readonly AlertRule[] {
  const file = readFileSync(new URL('../deploy/prometheus/alerts.yaml', import.meta.url), 'utf8')
  const { groups } = parse(file) as { readonly groups: readonly { readonly rules: readonly AlertRule[] }[] }
  return groups.flatMap(({ rules }) => rules)
}

function rightsRow([name, { needs, about, note }]: readonly [string, Rule]): string[] {
  const scopes = needs({}).map((need) => [...new Set(need)].map(code).join(' or '))
  const limit =
    about === 'brand'
      ? 'registers these brands only'
      : about === undefined
        ? 'reads their products only'
        : 'changes their products only'
  return [code(name), [...scopes, ...(note === undefined ? [] : [note])].join('; '), limit]
}

function typeOf(metric: object): string {
  return 'type' in metric ? String(metric.type) : ''
}

function labelsOf(metric: object): string {
  return 'labelNames' in metric && Array.isArray(metric.labelNames) && metric.labelNames.length > 0
    ? metric.labelNames.map(String).map(code).join(', ')
    : '–'
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values: options } = readOptions({ options: { check: { type: 'boolean', default: false } } })
  const stale = docsSources().filter(({ found, wanted }) => found !== wanted)
  if (options.check) {
    for (const { name } of stale) console.log(`docs/${name} is not up to date: npm run docs writes it`)
    process.exitCode = stale.length === 0 ? 0 : 1
  } else for (const { name, wanted } of stale) writeFileSync(new URL(name, folder), wanted)
}
