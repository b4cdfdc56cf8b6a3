/** `touchstone backup`: all data of a service in one file, while it serves. */
import { access } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { chainId } from '../../domain/chain.ts'
import { dumpDatabase } from '../../db/backup/backup.ts'
import { programVersion } from '../../lib/version.ts'
import { defineCommand } from '../session/command.ts'
import { type BareSession, CommandError, type RunBare, withDatabase } from '../session/session.ts'
import { writeBackup, type BackupCounts, type WriteLine } from './backup-file.ts'
import { readDataFiles } from './data-files.ts'

export function backupCommand(run: RunBare): Command {
  return defineCommand(
    'backup',
    'Writes the database and the key files of the data folder into one file, while the service runs.',
    {
      notes: `The file HOLDS SECRETS: sealed tag keys, the keys of issuer and attestations, all payments and owners. Keep it as you keep
those (its mode is 0600). TAG_KEK, TAG_PEPPER and other keys of the environment are not in it; it is useless without them.
An embedded database serves nothing else while it is read: several seconds for 100,000 rows.`,
      examples: ['touchstone backup touchstone.backup'],
    },
  )
    .argument('<file>', 'a new file, such as touchstone.backup')
    .action((file: string) => run((session) => backup(session, file)))
}

async function backup(session: BareSession, file: string): Promise<void> {
  const { io, config } = session
  const path = resolve(io.cwd, file)
  const isTaken = await access(path).then(
    () => true,
    () => false,
  )
  if (isTaken) throw new CommandError(`${path} exists. A backup is never written over another one: name a new file.`)
  const counts = await withDatabase(session, (database) =>
    writeBackup(path, async (write) => {
      await dumpDatabase(database, createDump(write, session))
      // Files come after the rows: a key that has no row is harmless, a row that has no key is not.
      for await (const part of readDataFiles(config.dataDir)) await write({ kind: 'file', part })
    }),
  ).catch((error: NodeJS.ErrnoException) => {
    if (['ENOENT', 'EACCES', 'EROFS', 'ENOSPC'].includes(error.code ?? '') && error.path !== undefined)
      throw new CommandError(`${path} cannot be written (${error.code}).`, { cause: error })
    throw error
  })
  io.out(`${formatCounts(counts)}: ${path}`)
  io.err('The file holds secrets: keep it as you keep keys. TAG_KEK and TAG_PEPPER are not in it.')
}

function createDump(write: WriteLine, { io, config }: BareSession) {
  let reported = 0
  let rows = 0
  return {
    schema: (head: Parameters<Parameters<typeof dumpDatabase>[1]['schema']>[0]) =>
      write({
        kind: 'head',
        head: {
          touchstone: 'backup',
          format: 1,
          program: programVersion,
          created: new Date().toISOString(),
          chainId,
          ...head,
          contract: head.contract ?? config.chain.contract,
        },
      }),
    table: (head: Parameters<Parameters<typeof dumpDatabase>[1]['table']>[0]) => write({ kind: 'table', head }),
    async rows(texts: readonly string[]) {
      if (io.signal.aborted) throw new CommandError('The backup was stopped; no file was written.')
      for (const text of texts) await write({ kind: 'row', text })
      rows += texts.length
      if (rows - reported < 100_000) return
      reported = rows
      io.err(`  ${rows} rows`)
    },
  }
}

export function formatCounts({ rows, files }: BackupCounts): string {
  const all = Object.values(rows)
  return `${all.reduce((sum, n) => sum + n, 0)} rows of ${all.length} tables and ${files} files`
}
