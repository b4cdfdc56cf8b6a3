/** `touchstone report …`: what visitors reported, that an item does not look like its record. */
import type { Command } from 'commander'
import { argument, defineCommand, defineGroup, inSession, repeated, textArgument } from './session/command.ts'
import { CommandError, formatJson, printTable } from './session/output.ts'
import type { RunWork, Session } from './session/session.ts'

export function reportCommand(run: RunWork): Command {
  return defineGroup('report', 'Reports of visitors that an item does not look like its record.', [
    defineCommand('list', 'Shows the open reports, the newest first.', {
      notes: `Each comes from a page that was shown after a tap: the chip is genuine, the item around it may not be. Look for several reports of
one item, and flag it when they are right. Notes are text of strangers.`,
      examples: ['touchstone report list', 'touchstone report list --token 42 --json'],
    })
      .option('--token <id>', 'of one asset', argument.tokenId)
      .option('--last <n>', 'how many, 1 to 1000', argument.count(1_000), 100)
      .option('--json', 'print a JSON array')
      .action(inSession(run, list)),
    defineCommand('close', 'Removes reports that are dealt with. They cannot be brought back.', {
      examples: ['touchstone report close 17 18'],
    })
      .argument('<id...>', 'number of the report', repeated(parseNumber))
      .option('--json', 'print a JSON object')
      .action(
        inSession(run, async ({ store, io }, ids: readonly string[], { json }: { json?: true }) => {
          const closed = await store.differences.close(ids)
          if (closed === 0) throw new CommandError('There is no such report; see touchstone report list.')
          io.out(json === true ? JSON.stringify({ closed }) : `closed       ${closed}`)
        }),
      ),
  ])
}

type ListOptions = { readonly token?: bigint; readonly last: number; readonly json?: true }

async function list({ store, io }: Session, { token, last, json }: ListOptions): Promise<void> {
  const reports = await store.differences.list({ tokenId: token, limit: last })
  if (json === true) return io.out(formatJson(reports))
  if (reports.length === 0) return io.out('There is no open report.')
  const rows = reports.map(({ id, at, tokenId, tapCounter, role, note }) => {
    return [id, `${at.slice(0, 16)}Z`, tokenId, String(tapCounter), role, note]
  })
  printTable(io.out, ['id', 'at', 'asset', 'tap', 'visitor', 'note'], rows, new Set(['id', 'tap']))
}

const parseNumber = textArgument(
  (text) => /^\d{1,18}$/.test(text),
  'The number of a report is in digits, as report list prints it.',
)
