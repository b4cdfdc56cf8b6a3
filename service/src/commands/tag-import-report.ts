/** What became of each row of an import, beside its file, as a table that can be filtered and corrected. */
import { open } from 'node:fs/promises'
import { csvLine } from './csv.ts'
import { CommandError } from './store-command.ts'
import type { RowResult } from './tag-import-steps.ts'

const columns = ['line', 'uid', 'batch', 'epoch', 'tokenId', 'outcome', 'detail'] as const

/** Replaces the report of an earlier run; only its owner can read it. */
export async function openReport(path: string) {
  const file = await open(path, 'w', 0o600).catch((error: NodeJS.ErrnoException) => {
    throw new CommandError(`The report ${path} cannot be written (${error.code}).`)
  })
  const write = (lines: readonly string[]) => file.write(lines.map((line) => `${line}\n`).join(''))
  await write([csvLine(columns)])
  return {
    write: async (results: readonly RowResult[]): Promise<void> => {
      await write(results.map((result) => csvLine(columns.map((name) => result[name]))))
    },
    close: () => file.close(),
  }
}
