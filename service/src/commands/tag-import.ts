/** `touchstone tag import`: a CSV file of tags into the registry of tags and, if wanted, onto the chain (spec §3, §4.4). */
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { Command } from 'commander'
import type { Hex } from '@touchstone/verdict'
import { readCsv } from './csv.ts'
import type { ImportChain, RowOutcome } from './tag-import-plan.ts'
import { openReport } from './tag-import-report.ts'
import { importColumns, readHead, readRow, type ReadRow } from './tag-import-rows.ts'
import { createImporter, type Wanted } from './tag-import-steps.ts'
import { argument } from './store-arguments.ts'
import { chainOf, CommandError, type RunWork, type Session } from './store-command.ts'

type Options = { mint?: true; bind?: true; activate?: true; to?: Hex; dryRun?: true }

export function importCommand(run: RunWork): Command {
  return new Command('import')
    .description(
      'Registers tags from a CSV file; with --mint, --bind and --activate it brings them onto the chain too.',
    )
    .argument('<file>', 'CSV file, its first line names the columns')
    .option('--mint', 'mint an asset for each row without tokenId, with the metadata of the row')
    .option('--bind', 'bind each tag to its asset on chain')
    .option('--activate', 'activate each asset')
    .option('--to <address>', 'owner of what is minted; without it the operator', argument.address)
    .option('--dry-run', 'check every row and say what would be done; nothing is written')
    .addHelpText(
      'after',
      `
Columns: ${importColumns.join(', ')}
uid and batch are needed in every row; epoch is the batch's when empty; gtin and serial go together; counter is the tap
counter that was read when the tag was made. The columns from name on are product metadata and count when a row is minted.

Each row is checked before anything is done for it. Running the import again does what is missing and nothing else, so
after an interruption, or when rows were corrected, run it again on this machine. <file>.report.csv says what became of
each row. Exit code 0 when every row is done, 1 when not.

Example:
  touchstone tag import tags.csv --mint --bind --activate`,
    )
    .action((file: string, options: Options) => run((session) => importTags(session, file, options)))
}

/** Stores that an import is at work on: two at once could mint for the same rows. */
const busy = new WeakSet<object>()

async function importTags(session: Session, file: string, options: Options): Promise<number> {
  const { store, io } = session
  if (busy.has(store.tags)) throw new CommandError('Another import is at work; run this one when it is done.')
  busy.add(store.tags)
  try {
    return await importFile(session, resolve(io.cwd, file), wantedOf(session, options))
  } finally {
    busy.delete(store.tags)
  }
}

function wantedOf(session: Session, options: Options): Wanted {
  const { mint = false, bind = false, activate = false, dryRun = false } = options
  const to = options.to ?? (mint ? chainOf(session).operator : '0x')
  if (to === null) throw new CommandError('No operator key is configured (OPERATOR_KEY): nothing can be minted.')
  return { mint, bind, activate, dryRun, to }
}

async function importFile(session: Session, path: string, wanted: Wanted): Promise<number> {
  const { io } = session
  const rows = await rowsIn(path)
  const importer = await createImporter(session, chainFor(session, wanted), wanted)
  const report = await openReport(`${path}.report.csv`)
  const tally = createTally(rows, (line) => io.err(line))
  let end: string | null = null
  try {
    for await (const window of windowsOf(path)) {
      const results = await importer.run(window, tally.count)
      await report.write(results)
      if (io.signal.aborted) end = 'it was stopped'
      else if (results.some(({ outcome }) => outcome === 'failed')) end = 'the chain does not answer'
      if (end !== null) break
    }
  } finally {
    await report.close()
  }
  io.out(`${tally.summary()}${wanted.dryRun ? ' (dry run)' : ''}. Report: ${path}.report.csv`)
  if (end !== null) io.err(`touchstone: the import ended early: ${end}; run it again to go on.`)
  return tally.isClean() && end === null ? 0 : 1
}

/** The whole file is read once before the first row is acted on: a broken one changes nothing. */
async function rowsIn(path: string): Promise<number> {
  const found = await stat(path).catch(() => null)
  if (found?.isFile() !== true) throw new CommandError(`There is no file ${path}.`)
  let rows = 0
  for await (const window of windowsOf(path)) rows += window.length
  return rows
}

/** A transaction mints up to 200. */
async function* windowsOf(path: string): AsyncGenerator<ReadRow[]> {
  let places: ReturnType<typeof readHead> | undefined
  let window: ReadRow[] = []
  for await (const row of readCsv(createReadStream(path, { encoding: 'utf8' }) as AsyncIterable<string>)) {
    if (places === undefined) places = readHead(row.cells)
    else if (window.push(readRow(places, row)) === 200) {
      yield window
      window = []
    }
  }
  if (places === undefined) throw new CommandError('The file is empty; its first line names the columns.')
  if (window.length > 0) yield window
}

function chainFor(session: Session, { mint, bind, activate }: Wanted): ImportChain | null {
  if (!mint && !bind && !activate) return null
  const { tagHash, ...chain } = chainOf(session)
  if (tagHash === undefined) throw new CommandError('TAG_PEPPER is not set, so that no tag can be bound.')
  return { ...chain, tagHash }
}

/** A line each 100 rows and each second, and what it came to. */
function createTally(rows: number, print: (line: string) => void) {
  const began = performance.now()
  const counts: Record<RowOutcome, number> = { done: 0, unchanged: 0, ready: 0, refused: 0, pending: 0, failed: 0 }
  let printedAt = began
  const total = () => Object.values(counts).reduce((sum, count) => sum + count, 0)
  const seconds = () => ((performance.now() - began) / 1_000).toFixed(1)
  const parts = () => Object.entries(counts).flatMap(([name, count]) => (count > 0 ? [`${count} ${name}`] : []))
  return {
    count: (outcome: RowOutcome) => {
      counts[outcome]++
      if (total() % 100 !== 0 && performance.now() - printedAt < 1_000) return
      printedAt = performance.now()
      print(`  ${total()} of ${rows} rows: ${parts().join(', ')} (${seconds()} s)`)
    },
    summary: () => `${total()} of ${rows} rows in ${seconds()} s: ${parts().join(', ') || 'nothing to do'}`,
    isClean: () => counts.refused + counts.pending + counts.failed === 0,
  }
}
