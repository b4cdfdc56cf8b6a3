/** `touchstone tag import`: a CSV file of tags into the registry of tags and, if wanted, onto the chain (spec §3, §4.4). */
import { createReadStream, createWriteStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { once } from 'node:events'
import { Command } from 'commander'
import type { Hex } from '@touchstone/verdict'
import { CsvError, csvLine, readCsv } from './csv.ts'
import { importColumns, readHead, readRow, type ReadRow } from './tag-import-rows.ts'
import { chainFor, createImporter, type RowOutcome, type RowResult, type Wanted } from './tag-import-steps.ts'
import { argument } from './store-arguments.ts'
import { chainOf, CommandError, type RunWork, type Session } from './store-command.ts'

type Options = { mint?: true; bind?: true; activate?: true; to?: Hex; dryRun?: true }

export function importCommand(run: RunWork): Command {
  return new Command('import')
    .description('Registers tags from a CSV file; with --mint, --bind and --activate it brings them onto the chain too.')
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

Each row is taken whole or not at all. Running the import again does what is missing and nothing else, so after an
interruption, or when rows were corrected, run it again on this machine. <file>.report.csv says what became of each row.
Exit code 0 when every row is done, 1 when not.

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
    const path = resolve(io.cwd, file)
    return await importFile(session, path, wantedOf(session, options))
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
  const importer = await createImporter(session, chainFor(wanted, () => chainOf(session)), wanted)
  const size = await sizeOf(path)
  const source = createReadStream(path, { encoding: 'utf8' })
  const report = await openReport(`${path}.report.csv`)
  const counts: Record<RowOutcome, number> = { done: 0, unchanged: 0, refused: 0, pending: 0, failed: 0 }
  const say = createTicker(io.err)
  let rows = 0
  let end: string | null = null
  const onRow = () => say(++rows, `${rows} rows, ${Math.min(100, Math.floor((100 * source.bytesRead) / size))} % of the file read`)
  try {
    for await (const window of windowsOf(source)) {
      const results = await importer.run(window, onRow)
      for (const result of results) counts[result.outcome]++
      await report.write(results)
      end = io.signal.aborted ? 'stopped' : results.some(({ outcome }) => outcome === 'failed') ? 'the chain does not answer' : null
      if (end !== null) break
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    end = error.message
  } finally {
    source.destroy()
    await report.close()
  }
  const open = counts.refused + counts.pending + counts.failed
  const seconds = (say.elapsedMs() / 1000).toFixed(1)
  const parts = Object.entries(counts).flatMap(([name, count]) => (count > 0 ? [`${count} ${name}`] : []))
  io.out(`${rows} rows in ${seconds} s: ${parts.join(', ') || 'nothing to do'}${wanted.dryRun ? ' (dry run)' : ''}. Report: ${path}.report.csv`)
  if (end !== null) io.err(`touchstone: the import ended early (${end}); run it again to go on.`)
  return open === 0 && end === null ? 0 : 1
}

async function sizeOf(path: string): Promise<number> {
  const found = await stat(path).catch(() => null)
  if (found?.isFile() !== true) throw new CommandError(`There is no file ${path}.`)
  return Math.max(1, found.size)
}

/** A transaction mints up to 200. */
async function* windowsOf(source: AsyncIterable<string>): AsyncGenerator<ReadRow[]> {
  let places: ReturnType<typeof readHead> | undefined
  let window: ReadRow[] = []
  for await (const row of readCsv(source)) {
    if (places === undefined) places = readHead(row.cells)
    else if (window.push(readRow(places, row)) === 200) {
      yield window
      window = []
    }
  }
  if (places === undefined) throw new CommandError('The file is empty; its first line names the columns.')
  if (window.length > 0) yield window
}

async function openReport(path: string) {
  const file = createWriteStream(path, { mode: 0o600 })
  await once(file, 'open').catch(() => {
    throw new CommandError(`The report ${path} cannot be written.`)
  })
  const columns = ['line', 'uid', 'batch', 'epoch', 'tokenId', 'outcome', 'detail'] as const
  const write = async (lines: readonly string[]) => {
    if (!file.write(lines.map((line) => `${line}\n`).join(''))) await once(file, 'drain')
  }
  await write([csvLine(columns)])
  return {
    write: (results: readonly RowResult[]) => write(results.map((result) => csvLine(columns.map((name) => result[name])))),
    close: () => new Promise<void>((done) => file.end(done)),
  }
}

/** A line each 100 rows and each second. */
function createTicker(print: (line: string) => void) {
  const began = performance.now()
  let last = began
  const say = (rows: number, text: string) => {
    const now = performance.now()
    if (rows % 100 !== 0 && now - last < 1_000) return
    last = now
    print(`  ${text} (${((now - began) / 1000).toFixed(1)} s)`)
  }
  return Object.assign(say, { elapsedMs: () => performance.now() - began })
}
