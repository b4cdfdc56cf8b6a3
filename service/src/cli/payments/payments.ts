/** `touchstone payments …`: the seller's view of what was sold (spec §4.8): list, show, report, export. */
import { Option, type Command } from 'commander'
import type { Hex } from '@touchstone/verdict'
import { chainId } from '../../domain/chain.ts'
import { formatCsvRow } from '../../lib/csv.ts'
import {
  createBook,
  dimensions,
  outcomes,
  type Book,
  type BookRow,
  type Dimension,
  type Filter,
  type Group,
} from '../../payments/book.ts'
import { channelFigures } from '../../payments/channels/store.ts'
import { argument, defineCommand, defineGroup, inSession } from '../session/command.ts'
import type { RunWork, Session } from '../session/session.ts'
import { CommandError, formatJson, printTable } from '../session/output.ts'

export function paymentsCommand(run: RunWork): Command {
  return defineGroup(
    'payments',
    'Payments of the gateway: list, show, report, export, channels.',
    [listCommand(run), showCommand(run), reportCommand(run), exportCommand(run), channelsCommand(run)],
    'Days and times are in UTC. The gas of a transaction is shared evenly by its payments.',
  )
}

function addFilter(command: Command): Command {
  return addSpan(command)
    .addOption(new Option('--outcome <outcome>', 'only these').choices(outcomes))
    .option('--payer <address>', 'only of this payer', argument.address)
}

function addSpan(command: Command): Command {
  return command
    .option('--since <time>', 'first day, or moment, such as 2026-01-31 or 2026-01-31T12:00:00Z', argument.time)
    .option('--until <time>', 'the day, or moment, before which to stop', argument.time)
    .hook('preAction', (self) => {
      const { since = -Infinity, until = Infinity } = self.opts<{ since?: number; until?: number }>()
      if (until <= since)
        throw new CommandError('--until is the day, or moment, before which to stop: give one after --since.')
    })
}

function listCommand(run: RunWork): Command {
  const command = defineCommand('list', 'Lists payments, the newest first. Pending ones come before all others.', {
    examples: [
      'touchstone payments list',
      'touchstone payments list --outcome rejected --since 2026-01-01 --limit 200',
    ],
  })
  return addFilter(command)
    .option('--limit <n>', 'at most so many', argument.count(1_000), 50)
    .option('--json', 'print a JSON array')
    .action(
      inSession(run, async (session, { limit, json, ...filter }: Filter & { limit: number; json?: true }) => {
        printRows(session, await bookOf(session).list(filter, limit), json)
      }),
    )
}

function showCommand(run: RunWork): Command {
  return defineCommand('show', 'Shows the payment of an authorization, or all payments of a transaction.', {
    examples: ['touchstone payments show 0x<payer> 0x<nonce>', 'touchstone payments show 0x<transaction>'],
  })
    .argument('<payer-or-transaction>', 'address of the payer, or hash of the transaction', parseKey)
    .argument('[nonce]', 'nonce of the authorization, with a payer', argument.hash)
    .option('--json', 'print a JSON array')
    .action(
      inSession(run, async (session, key: Hex, nonce: Hex | undefined, { json }: { json?: true }) => {
        const rows = await findRows(bookOf(session), key, nonce)
        if (rows.length === 0) throw new CommandError('There is no such payment; see touchstone payments list.')
        if (json === true) return printRows(session, rows, json)
        for (const row of rows) for (const line of formatRow(row)) session.io.out(line)
      }),
    )
}

async function findRows(book: Book, key: Hex, nonce: Hex | undefined): Promise<BookRow[]> {
  const isPayer = key.length === 42
  if (isPayer === (nonce === undefined)) throw new CommandError('Give a payer with a nonce, or a transaction alone.')
  if (nonce === undefined) return book.findByTransaction(key)
  const row = await book.find(key, nonce)
  return row === undefined ? [] : [row]
}

function printRows({ io }: Session, rows: readonly BookRow[], json?: true): void {
  if (json === true) return io.out(formatJson(rows.map(toRecord)))
  if (rows.length === 0) return io.out('There is no such payment.')
  const hasChannels = rows.some(({ kind }) => kind !== 'transfer')
  const cells = rows.map(({ time, outcome, kind, payer, nonce, assetId, units, gas, transaction, reason }) => ({
    time: `${time.slice(0, 19)}Z`,
    outcome,
    ...(hasChannels && { kind }),
    payer,
    nonce,
    asset: assetId ?? '',
    USDC: formatUsdc(BigInt(units)),
    'gas (ETH)': gas === null ? '' : formatEther(BigInt(gas)),
    'transaction or reason': transaction ?? reason ?? '',
  }))
  const values = cells.map((cell) => Object.values(cell))
  printTable(io.out, Object.keys(cells[0] ?? {}), values, numeric)
}

const numeric = new Set(['asset', 'payments', 'USDC', 'gas (ETH)'])

function formatRow(row: BookRow): string[] {
  const gas = row.gas === null ? 'none, or not known' : `${formatEther(BigInt(row.gas))} ETH`
  const facts = { ...toRecord(row), gas_wei: gas }
  return Object.entries(facts).flatMap(([name, value]) =>
    value === null ? [] : [`${(labels[name as keyof typeof facts] ?? name).padEnd(12)} ${value}`],
  )
}

const labels: Partial<Record<keyof ReturnType<typeof toRecord>, string>> = {
  asset_id: 'asset',
  amount_usdc: 'USDC',
  gas_wei: 'gas',
}

/** Returns the fields of an exported row, in the order of `exportHead`. */
function toRecord({ assetId, units, block, gas, ...row }: BookRow) {
  const { time, outcome, payer, nonce, transaction, reason, kind, channel } = row
  const amount = { asset_id: assetId, amount_usdc: formatUsdc(BigInt(units)) }
  const mined = { transaction, block: block === null ? null : Number(block) }
  return { time, outcome, payer, nonce, ...amount, ...mined, reason, gas_wei: gas, kind, channel }
}

type ReportOptions = {
  readonly since?: number
  readonly until?: number
  readonly by: readonly Dimension[]
  readonly format: 'table' | 'csv' | 'json'
}

function reportCommand(run: RunWork): Command {
  const command = defineCommand('report', 'Sums what was paid, and the gas that it cost.', {
    notes: `Only payments that ended are counted. USDC is what was settled. A dash stands for gas of transactions without a payment,
such as one that only frees a nonce.`,
    examples: [
      'touchstone payments report --since 2026-01-01 --until 2026-02-01',
      'touchstone payments report --by day,outcome --format csv > january.csv',
    ],
  })
  return addSpan(command)
    .addOption(
      new Option('--by <fields>', `one or several of ${dimensions.join(', ')}`)
        .argParser(parseDimensions)
        .default(['day'], 'day'),
    )
    .addOption(new Option('--format <format>', 'format of the rows').choices(['table', 'csv', 'json']).default('table'))
    .action(inSession(run, report))
}

async function report(session: Session, { by, format, ...span }: ReportOptions): Promise<void> {
  const { io } = session
  const found = await bookOf(session).report(span, by)
  if (found === null)
    throw new CommandError('There are more than 100,000 groups: narrow the report with --since and --until.')
  const groups = found.toSorted(
    by[0] === 'day' ? compareKeys : (a, b) => compare(b.units, a.units) || compareKeys(a, b),
  )
  const head = [...by, 'payments']
  if (format === 'table') {
    const total = { key: by.map((_, index) => (index === 0 ? 'total' : '')), payments: 0, units: 0n, gas: 0n }
    for (const { payments, units, gas } of groups) {
      total.payments += payments
      total.units += units
      total.gas += gas
    }
    const cells = [...groups, total].map(({ key, payments, units, gas }) => {
      return [...key, String(payments), formatUsdc(units), formatEther(gas)]
    })
    return printTable(io.out, [...head, 'USDC', 'gas (ETH)'], cells, numeric)
  }
  const records = groups.map(({ key, payments, units, gas }) => ({
    ...Object.fromEntries(by.map((dimension, index) => [dimension, key[index] ?? ''])),
    payments,
    usdc: formatUsdc(units),
    gas_wei: String(gas),
  }))
  await printRecords(session, format, [...head, 'usdc', 'gas_wei'], [records])
}

function exportCommand(run: RunWork): Command {
  const command = defineCommand('export', 'Prints every payment that ended, oldest first, for accounting.', {
    examples: [
      'touchstone payments export --since 2026-01-01 --until 2027-01-01 > 2026.csv',
      'touchstone payments export --outcome settled --format json > sales.json',
    ],
  })
  return addFilter(command)
    .addOption(new Option('--format <format>', 'format of the rows').choices(['csv', 'json']).default('csv'))
    .action(
      inSession(run, async (session, { format, ...filter }: Filter & { format: 'csv' | 'json' }) => {
        if (filter.outcome === 'pending') throw new CommandError('Pending payments have not ended: see payments list.')
        await printRecords(session, format, exportHead, recordPages(bookOf(session), filter))
      }),
    )
}

function channelsCommand(run: RunWork): Command {
  return defineCommand('channels', 'Sums what payment channels hold, and what is sold through them but not claimed.', {
    notes: `In USDC. Deposits are what buyers can still spend or take back. Uncovered is what was sold and cannot be claimed, because the
payer has taken the deposit back.`,
    examples: ['touchstone payments channels'],
  })
    .option('--json', 'print a JSON object')
    .action(
      inSession(run, async (session, { json }: { json?: true }) => {
        const { io, store } = session
        const figures = await channelFigures(store.database, soldFor(session))
        const { channels, balance, unclaimed, uncovered, oldestSeconds } = figures
        const money = {
          deposits_usdc: formatUsdc(BigInt(balance)),
          unclaimed_usdc: formatUsdc(BigInt(unclaimed)),
          uncovered_usdc: formatUsdc(BigInt(uncovered)),
        }
        const facts = { channels, ...money, oldest_unclaimed_seconds: Math.round(oldestSeconds) }
        if (json === true) return io.out(formatJson(facts))
        for (const [name, value] of Object.entries(facts)) io.out(`${name.padEnd(25)} ${value}`)
      }),
    )
}

const exportHead = 'time outcome payer nonce asset_id amount_usdc transaction block reason gas_wei kind channel'.split(
  ' ',
)

async function* recordPages(book: Book, filter: Filter) {
  for await (const page of book.pages(filter)) yield page.map(toRecord)
}

type Records = readonly Readonly<Record<string, string | number | null>>[]

/** Prints page after page, each when the caller has taken the one before. */
async function printRecords(
  { io }: Session,
  format: 'csv' | 'json',
  head: readonly string[],
  pages: Iterable<Records> | AsyncIterable<Records>,
): Promise<void> {
  io.out(format === 'csv' ? formatCsvRow(head) : '[')
  let before = ''
  for await (const page of pages) {
    for (const record of page) {
      if (format === 'csv') io.out(formatCsvRow(head.map((name) => record[name] ?? null)))
      else {
        if (before !== '') io.out(`${before},`)
        before = JSON.stringify(record)
      }
    }
    await io.drained?.()
    if (io.signal.aborted)
      throw new CommandError('The export was interrupted before it was complete. Repeat the command.')
  }
  if (format === 'csv') return
  if (before !== '') io.out(before)
  io.out(']')
}

function bookOf(session: Session): Book {
  return createBook(session.store.database, soldFor(session))
}

const soldFor = ({ config }: Session) => ({ chainId, asset: config.gateway.asset.address })

const formatUsdc = (units: bigint) => formatFixed(units, 6)
/** Formats wei as ether, exact to a gwei. */
const formatEther = (wei: bigint) => formatFixed(wei / 1_000_000_000n, 9)

/** Formats an amount with all its decimals: 10000n with 6 is `0.010000`. */
function formatFixed(amount: bigint, decimals: number): string {
  const text = amount.toString().padStart(decimals + 1, '0')
  return `${text.slice(0, -decimals)}.${text.slice(-decimals)}`
}

function compareKeys({ key: a }: Group, { key: b }: Group): number {
  return compare(a.join(), b.join())
}

function compare<T extends bigint | string>(a: T, b: T): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function parseKey(text: string): Hex {
  return text.length === 42 ? argument.address(text) : argument.hash(text)
}

function parseDimensions(text: string): Dimension[] {
  const words = [...new Set(text.split(',').map((word) => word.trim()))]
  const found = words.flatMap((word) => dimensions.filter((dimension) => dimension === word))
  if (found.length !== words.length) throw new CommandError(`--by takes ${dimensions.join(', ')}, separated by commas.`)
  return found
}
