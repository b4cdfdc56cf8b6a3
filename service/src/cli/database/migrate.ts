/** `touchstone migrate`: brings the database to the schema of this program before its processes start, or lists what is missing. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Option, type Command } from 'commander'
import type { Database } from '../../db/database.ts'
import { type Cluster, distribute, readCluster } from '../../db/cluster/distribute.ts'
import { type HeldLock, locks, serviceStatement } from '../../db/locks.ts'
import {
  appliedMigrations,
  isNamed,
  migrate,
  type Migration,
  migrationsTo,
  missingMigrations,
  readMigrations,
  undoMigration,
} from '../../db/migrate.ts'
import { sleep } from '../../lib/async/sleep.ts'
import { type BareSession, type RunBare, withDatabase } from '../session/session.ts'
import { assertNotInterrupted, CommandError, formatJson } from '../session/output.ts'
import { argument, defineCommand } from '../session/command.ts'
import type { CommandIo } from '../session/control-client.ts'

export function migrateCommand(run: RunBare): Command {
  const description = 'Brings the database to the schema of this program, while older programs continue to serve.'
  return defineCommand('migrate', description, {
    notes: `It never waits long for a lock, so that no query waits behind it; it tries again for two minutes.
With --distribute, DATABASE_URL names the coordinator of a Citus cluster. End all services of the database before: each table is locked
while its rows are copied to the shards. A run that was interrupted goes on where it ended.`,
    examples: ['touchstone migrate --check', 'touchstone migrate', 'touchstone migrate --distribute'],
  })
    .option('--check', 'change nothing; exit code 1 when something is missing')
    .option('--to <name>', 'stop after this file, such as 0008 or 0008-rate-windows.sql')
    .addOption(new Option('--undo [name]', 'revert the newest file, if it can be reverted').conflicts(['check', 'to']))
    .option('--yes', 'with --undo: confirm')
    .addOption(
      new Option('--distribute', 'then spread the large tables over the nodes of a Citus cluster').conflicts([
        'check',
        'to',
        'undo',
      ]),
    )
    .option(
      '--shards <n>',
      'with --distribute: shards of each table, 1 to 1024; default: four for each worker',
      argument.count(1_024, 'A table has 1 to 1024 shards.'),
    )
    .option('--json', 'print a JSON object')
    .action((options: MigrateOptions) => run((session) => migrateBy(session, options)))
}

type MigrateOptions = {
  readonly check?: true
  readonly to?: string
  readonly undo?: string | true
  readonly yes?: true
  readonly distribute?: true
  readonly shards?: number
  readonly json?: true | undefined
}

async function migrateBy(session: BareSession, options: MigrateOptions): Promise<number> {
  if (options.json === true) return asJson(session, { ...options, json: undefined })
  const { check, to, undo, yes, distribute: isDistributed, shards } = options
  if (shards !== undefined && isDistributed !== true) throw new CommandError('--shards goes with --distribute.')
  const all = readMigrations()
  if (undo !== undefined) return undoNewest(session, all, { name: undo === true ? null : undo, isSure: yes === true })
  const wanted = to === undefined ? all : migrationsTo(all, to)
  if (wanted === null)
    throw new CommandError(`This program has no migration ${to}; the newest is ${nameOf(all.at(-1))}.`)
  if (isDistributed === true)
    return withDatabase(session, (database) => spread(session, database, shards), copyTimeoutMs)
  if (check !== true) return withDatabase(session, (database) => apply(database, wanted, session.io))
  const { missing, cluster } = await readState(session, wanted)
  for (const { name } of missing) session.io.out(`missing  ${name}`)
  session.io.out(
    missing.length === 0
      ? `Nothing is missing: the database has ${nameOf(wanted.at(-1))}.`
      : `${missing.length} missing; run touchstone migrate.`,
  )
  if (cluster !== null) reportCluster(session.io, cluster)
  return missing.length === 0 ? 0 : 1
}

/** Runs the command, and prints what came of it as one object: what it would have printed is for people. */
async function asJson(session: BareSession, options: MigrateOptions): Promise<number> {
  const quiet = { ...session, io: { ...session.io, out: () => {} } }
  const exit = await migrateBy(quiet, options)
  const { newest, missing } = await readState(session, readMigrations())
  session.io.out(formatJson({ newest, missing: missing.map(({ name }) => name) }))
  return exit
}

async function readState(session: BareSession, wanted: readonly Migration[]) {
  if (!exists(session)) return { newest: null, missing: wanted, cluster: null }
  return withDatabase(session, async (database) => ({
    newest: [...(await appliedMigrations(database)).keys()].at(-1) ?? null,
    missing: await missingMigrations(database, wanted),
    cluster: await readCluster(database),
  }))
}

function reportCluster(io: CommandIo, { nodes, tables, missing }: Cluster): void {
  for (const { name, shards } of tables)
    io.out(`distributed  ${name.padEnd(18)} ${shards === null ? 'a copy on every node' : `${shards} shards`}`)
  if (missing.length > 0) io.out(`not distributed: ${missing.join(', ')}; run touchstone migrate --distribute.`)
  io.out(`The cluster has ${nodes} ${nodes === 1 ? 'node' : 'nodes'} for shards.`)
}

/** A table is copied by one statement. */
const copyTimeoutMs = 7 * 86_400_000

async function spread(session: BareSession, database: Database, shards: number | undefined): Promise<number> {
  const { io, running } = session
  if (running !== null)
    throw new CommandError('A service runs on this data folder. End it and all others of the database first.')
  if ((await readCluster(database)) === null)
    throw new CommandError(
      'DATABASE_URL names no Citus cluster: the database has no extension citus. Nothing was changed.',
    )
  await using opened = new AsyncDisposableStack()
  const held = await holdDistribution(database, io)
  opened.defer(held.release)
  await apply(database, readMigrations(), io)
  const done = await distribute(database, {
    ...(shards !== undefined && { shards }),
    signal: io.signal,
    onTable: (table, { rows, milliseconds }) =>
      io.out(`${table.padEnd(18)} ${String(rows).padStart(12)} rows ${milliseconds.toFixed(0).padStart(8)} ms`),
  })
  io.out(done.length === 0 ? 'All tables were distributed already.' : `${done.length} tables are distributed now.`)
  return 0
}

/** Waits until no other process distributes. One that was killed is noticed by the database when the copy of its table ends. */
async function holdDistribution({ hold }: Database, io: CommandIo): Promise<HeldLock> {
  for (let isFirst = true; ; isFirst = false) {
    assertNotInterrupted(io.signal)
    const held = await hold(locks.distribution)
    if (held !== null) return held
    if (isFirst) io.err('Another process distributes the tables. Waiting for it …')
    await sleep(500, { signal: io.signal })
  }
}

/** Returns whether there is a database. A check must not create an embedded one. */
function exists({ config: { dataDir, store }, running }: BareSession): boolean {
  return running !== null || store.databaseUrl !== null || existsSync(join(dataDir, 'store', 'PG_VERSION'))
}

async function apply(database: Database, wanted: readonly Migration[], io: CommandIo): Promise<number> {
  const applied = await migrate(database, wanted, {
    onApplied: (name, ms) => io.out(`${name.padEnd(34)} ${ms.toFixed(0).padStart(6)} ms`),
    onWaiting: waiting(io),
    signal: io.signal,
  })
  io.out(
    applied.length === 0
      ? `Nothing was missing: the database has ${nameOf(wanted.at(-1))}.`
      : `The database has ${nameOf(wanted.at(-1))}.`,
  )
  return 0
}

async function undoNewest(
  session: BareSession,
  all: readonly Migration[],
  { name, isSure }: { readonly name: string | null; readonly isSure: boolean },
): Promise<number> {
  if (session.running !== null) throw serviceRuns()
  if (!exists(session)) throw new CommandError('There is no database yet.')
  return withDatabase(session, async (database) => {
    const newest = [...(await appliedMigrations(database)).keys()].at(-1)
    if (newest === undefined) throw new CommandError('Nothing was ever migrated in this database.')
    if (name !== null && !isNamed(newest, name))
      throw new CommandError(`The newest migration is ${newest}, and only the newest can be reverted.`)
    const migration = all.find((one) => one.name === newest)
    if (migration === undefined) throw new CommandError(`${newest} is of a newer program: revert it with that program.`)
    const { undo } = migration
    if (undo === undefined) throw new CommandError(`${newest} cannot be reverted: restore a backup instead.`)
    if (!isSure) throw new CommandError(`${newest}: ${parseLoss(undo)} Repeat the command with --yes to revert it.`)
    if ((await database.query<{ runs: boolean }>(serviceStatement))[0]?.runs === true) throw serviceRuns()
    if (
      !(await undoMigration(
        database,
        { ...migration, undo },
        { onWaiting: waiting(session.io), signal: session.io.signal },
      ))
    )
      throw new CommandError('Another process migrates at this moment: check again with touchstone migrate --check.')
    session.io.out(`${newest} is reverted. A start with MIGRATE=on would apply it again.`)
    return 0
  })
}

function serviceRuns(): CommandError {
  return new CommandError(
    'A service runs on this schema. End all services first: the next start brings the schema back.',
  )
}

/** Returns the first comment, which says what is lost. */
function parseLoss(undo: string): string {
  const lines = undo.split('\n')
  const end = lines.findIndex((line) => !line.startsWith('--'))
  return lines
    .slice(0, end)
    .map((line) => line.replace(/^--\s*/, ''))
    .join(' ')
}

function waiting(io: CommandIo) {
  return (name: string, ms: number) => io.err(`  ${name} waits for its locks, ${Math.round(ms / 1000)} s so far`)
}

function nameOf(migration: Migration | undefined): string {
  return migration?.name ?? 'none'
}
