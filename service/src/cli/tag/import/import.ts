/** `touchstone tag import`: registers tags from a CSV file and, if wanted, brings them onto the chain (spec §3, §4.4). */
import { createReadStream } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { Hex } from '@touchstone/verdict'
import { csvLine, readCsv } from './csv.ts'
import { argument, defineCommand, inSession } from '../../session/command.ts'
import { chainOf, CommandError, operatorOf, tagHashOf, type RunWork, type Session } from '../../session/session.ts'
import { type ImportChain, type RowOutcome, importColumns, parseHead, parseRow, type ParsedRow } from './rows.ts'
import { createImporter, type RowResult, type Wanted } from './steps.ts'

type Options = { mint?: true; bind?: true; activate?: true; to?: Hex; dryRun?: true }

export function importCommand(run: RunWork): Command {
  return defineCommand(
    'import',
    'Registers tags from a CSV file; with --mint, --bind and --activate it brings them onto the chain too.',
    {
      notes: `Columns: ${importColumns.join(', ')}
uid and batch are needed in every row; epoch is the batch's when empty; gtin and serial go together; counter is the tap
counter that was read when the tag was made. The columns from name on are product metadata and count when a row is minted.

Each row is checked before anything is done for it. Running the import again does what is missing and nothing else, so
after an interruption, or when rows were corrected, run it again on this machine. <file>.report.csv has the outcome of
each row. Exit code 0 when every row is done, 1 when not.`,
      examples: ['touchstone tag import tags.csv --mint --bind --activate'],
    },
  )
    .argument('<file>', 'CSV file, its first line names the columns')
    .option('--mint', 'mint an asset for each row without tokenId, with the metadata of the row')
    .option('--bind', 'bind each tag to its asset on chain')
    .option('--activate', 'activate each asset')
    .option('--to <address>', 'owner of what is minted (default: the operator)', argument.address)
    .option('--dry-run', 'check every row and report what would be done; nothing is written')
    .action(inSession(run, importTags))
}

/** Stores with a running import: two at once could mint for the same rows. */
const busy = new WeakSet<object>()

async function importTags(session: Session, file: string, options: Options): Promise<number> {
  const { store, io } = session
  if (busy.has(store.tags)) throw new CommandError('Another import is at work; run this one when it is done.')
  busy.add(store.tags)
  try {
    return await importFile(session, resolve(io.cwd, file), toWanted(session, options))
  } finally {
    busy.delete(store.tags)
  }
}

function toWanted(session: Session, options: Options): Wanted {
  const { mint = false, bind = false, activate = false, dryRun = false } = options
  return { mint, bind, activate, dryRun, to: options.to ?? (mint ? operatorOf(session) : '0x') }
}

async function importFile(session: Session, path: string, wanted: Wanted): Promise<number> {
  const { io } = session
  const rows = await countRows(path)
  const importer = await createImporter(session, chainFor(session, wanted), wanted)
  const report = await openReport(`${path}.report.csv`)
  const tally = createTally(rows, (line) => io.err(line))
  let end: string | null = null
  try {
    for await (const window of readWindows(path)) {
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

/** Reads the whole file before the first row is acted on, so that a malformed one changes nothing. */
async function countRows(path: string): Promise<number> {
  const found = await stat(path).catch(() => null)
  if (found?.isFile() !== true) throw new CommandError(`There is no file ${path}.`)
  let rows = 0
  for await (const window of readWindows(path)) rows += window.length
  return rows
}

/** Yields rows by 200, which one transaction can mint. */
async function* readWindows(path: string): AsyncGenerator<ParsedRow[]> {
  let places: ReturnType<typeof parseHead> | undefined
  let window: ParsedRow[] = []
  for await (const row of readCsv(createReadStream(path) as AsyncIterable<Buffer>)) {
    if (places === undefined) places = parseHead(row.cells)
    else if (window.push(parseRow(places, row)) === 200) {
      yield window
      window = []
    }
  }
  if (places === undefined) throw new CommandError('The file is empty; its first line names the columns.')
  if (window.length > 0) yield window
}

function chainFor(session: Session, { mint, bind, activate }: Wanted): ImportChain | null {
  if (!mint && !bind && !activate) return null
  return { ...chainOf(session), tagHash: tagHashOf(session) }
}

const reportColumns = ['line', 'uid', 'batch', 'epoch', 'tokenId', 'outcome', 'detail'] as const

/** Opens the report of outcomes, which replaces that of an earlier run. Only its owner can read it. */
async function openReport(path: string) {
  const file = await open(path, 'w', 0o600).catch((error: NodeJS.ErrnoException) => {
    throw new CommandError(`The report ${path} cannot be written (${error.code}).`)
  })
  const write = (lines: readonly string[]) => file.write(lines.map((line) => `${line}\n`).join(''))
  await write([csvLine(reportColumns)])
  return {
    write: (results: readonly RowResult[]) =>
      write(results.map((result) => csvLine(reportColumns.map((name) => result[name])))),
    close: () => file.close(),
  }
}

/** Counts outcomes and prints a line each 100 rows and each second. */
function createTally(rows: number, print: (line: string) => void) {
  const began = performance.now()
  const counts: Record<RowOutcome, number> = { done: 0, unchanged: 0, ready: 0, refused: 0, pending: 0, failed: 0 }
  let printedAt = began
  const total = () => Object.values(counts).reduce((sum, count) => sum + count, 0)
  const seconds = () => ((performance.now() - began) / 1_000).toFixed(1)
  const format = () => Object.entries(counts).flatMap(([name, count]) => (count > 0 ? [`${count} ${name}`] : []))
  return {
    count: (outcome: RowOutcome) => {
      counts[outcome]++
      if (total() % 100 !== 0 && performance.now() - printedAt < 1_000) return
      printedAt = performance.now()
      print(`  ${total()} of ${rows} rows: ${format().join(', ')} (${seconds()} s)`)
    },
    summary: () => `${total()} of ${rows} rows in ${seconds()} s: ${format().join(', ') || 'nothing to do'}`,
    isClean: () => counts.refused + counts.pending + counts.failed === 0,
  }
}
