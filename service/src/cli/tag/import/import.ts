/** `touchstone tag import`: registers tags from a CSV file and, if wanted, brings them onto the chain (spec §3, §4.4). */
import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { Hex } from '@touchstone/verdict'
import type { ServiceError } from '../../../lib/errors.ts'
import { locks } from '../../../db/locks.ts'
import { countRows, readWindows } from './file.ts'
import { argument, defineCommand, inSession } from '../../session/command.ts'
import { chainOf, operatorOf, tagHashOf, type RunWork, type Session } from '../../session/session.ts'
import { openReport } from '../../session/files.ts'
import { CommandError, formatJson } from '../../session/output.ts'
import { type ImportChain, type RowOutcome, importColumns } from './rows.ts'
import { createImporter, type ImportCounts, type Wanted } from './steps.ts'

type Options = { batch?: string; mint?: true; bind?: true; activate?: true; to?: Hex; dryRun?: true; json?: true }

export function importCommand(run: RunWork): Command {
  const description =
    'Registers tags from a CSV file; with --mint, --bind and --activate it brings them onto the chain too.'
  return defineCommand('import', description, {
    notes: `Columns: ${importColumns.join(', ')}
Every row needs uid, and batch unless --batch names it. An empty epoch is the batch's. Give gtin and serial together. counter is
the tap counter that was read when the tag was made. The columns from name on are product metadata and count when a row is minted.
Later, a step on chain refuses a row whose asset has other text in a cell that is filled; see touchstone asset metadata.

Each row is checked before anything is done for it. After an interruption, or when rows were corrected, run the import again on this
machine: it does what is missing and nothing else. The file <file>.report.csv has the outcome of
each row. Exit code 0 when every row is done, 1 when not.`,
    examples: [
      'touchstone tag import tags.csv --mint --bind --activate',
      'touchstone tag import tags.csv --batch 2026-watches --mint --bind',
    ],
  })
    .argument('<file>', 'CSV file, its first line names the columns')
    .option('--batch <id>', 'batch of the rows that name none', argument.batchId)
    .option('--mint', 'mint an asset for each row without tokenId, with the metadata of the row')
    .option('--bind', 'bind each tag to its asset on chain')
    .option('--activate', 'activate each asset')
    .option('--to <address>', 'owner of what is minted (default: the operator)', argument.address)
    .option('--dry-run', 'check every row and report what would be done; nothing is written')
    .option('--json', 'print a JSON object')
    .action(inSession(run, importTags))
}

/** Imports under a lock of the database: two at once, also of two machines, could mint for the same rows. */
async function importTags(session: Session, file: string, options: Options): Promise<number> {
  const { store, io } = session
  const held = await store.database.hold(locks.imports)
  if (held === null) throw new CommandError('Another import is at work; run this one when it is done.')
  const lost = new AbortController()
  void held.lost.then(() => lost.abort(lostReason))
  const signal = AbortSignal.any([io.signal, lost.signal])
  try {
    const path = resolve(io.cwd, file)
    return await importFile({ ...session, io: { ...io, signal } }, path, toWanted(session, options), options)
  } finally {
    await held.release()
  }
}

const lostReason = 'the connection to the database was lost'

function toWanted(session: Session, options: Options): Wanted {
  const { mint = false, bind = false, activate = false, dryRun = false } = options
  // A group that cannot be signed now would be minted by a later import, for the owner of this one.
  const operator = mint ? operatorOf(session) : '0x'
  return { mint, bind, activate, dryRun, to: options.to ?? operator }
}

async function importFile(
  session: Session,
  path: string,
  wanted: Wanted,
  { batch, json }: Pick<Options, 'batch' | 'json'>,
): Promise<number> {
  const { io } = session
  const rows = await countRows(path, { batch })
  const importer = await createImporter(session, chainFor(session, wanted), wanted)
  const report = await openReport(`${path}.report.csv`, reportColumns)
  const tally = createTally(rows, (line) => io.err(line))
  let end: string | null = null
  try {
    for await (const window of readWindows(path, { batch })) {
      const results = await importer.run(window, tally.count)
      const unwritten = await report.write(results.map((result) => reportColumns.map((name) => result[name])))
      if (io.signal.aborted) end = io.signal.reason === lostReason ? lostReason : 'it was stopped'
      else if (results.some(({ outcome }) => outcome === 'failed')) end = faultOf(importer.fault())
      else if (unwritten !== null) end = `the report cannot be written (${unwritten})`
      if (end !== null) break
    }
  } finally {
    await report.close()
  }
  const sent = importer.sent()
  const isDone = tally.isClean() && end === null
  if (json === true) io.out(formatJson({ rows, ...tally.json(), ...sent, report: `${path}.report.csv`, ended: end }))
  else {
    io.out(`${tally.summary()}${wanted.dryRun ? ' (dry run)' : ''}. Report: ${path}.report.csv`)
    if (!wanted.dryRun && (wanted.mint || wanted.bind || wanted.activate)) io.out(formatSent(sent))
  }
  if (end !== null) io.err(`touchstone: the import ended early: ${end}; run it again to go on.`)
  return isDone ? 0 : 1
}

function faultOf(fault: ServiceError | null): string {
  return fault === null || fault.code === 'CHAIN_UNAVAILABLE'
    ? 'the chain does not answer'
    : fault.message.replace(/\.$/, '')
}

/** Formats the calls on chain. One transaction mints up to 200 rows; the contract binds and activates one token in each. */
function formatSent({ mint, bind, activate, reads }: ImportCounts): string {
  return `On chain: ${mint} mints of up to 200 rows, ${bind} bindings, ${activate} activations; ${reads} batches of reads.`
}

function chainFor(session: Session, { mint, bind, activate }: Wanted): ImportChain | null {
  if (!mint && !bind && !activate) return null
  return { ...chainOf(session), tagHash: tagHashOf(session) }
}

const reportColumns = ['line', 'uid', 'batch', 'epoch', 'tokenId', 'outcome', 'detail'] as const

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
      const left = ((rows - total()) / total()) * (performance.now() - began)
      print(`  ${total()} of ${rows} rows: ${format().join(', ')} (${seconds()} s, ${Math.ceil(left / 1_000)} s left)`)
    },
    summary: () => `${total()} of ${rows} rows in ${seconds()} s: ${format().join(', ') || 'nothing to do'}`,
    json: () => ({ ...counts, seconds: Number(seconds()) }),
    isClean: () => counts.refused + counts.pending + counts.failed === 0,
  }
}
