/** `touchstone backup`: all data of a service in one sealed file, while it serves. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { UnwrittenBackup, writeBackup, type WriteLine } from './backup-file.ts'
import { backupKeyOf, checkBackup, formatCounts, unsealedOption, type UnsealedOption } from './check.ts'
import { readDataFiles } from './data-files.ts'
import { defineCommand } from '../session/command.ts'
import { assertDataFolder } from '../session/closed-folder.ts'
import { type BareSession, type RunBare, withDatabase } from '../session/session.ts'
import { CommandError, formatJson } from '../session/output.ts'
import { dumpDatabase } from '../../db/backup.ts'
import { chainId } from '../../domain/chain.ts'
import { isPlaceholder } from '../../lib/bytes.ts'
import { fileFault } from '../../lib/sealed/file.ts'
import { programVersion } from '../../lib/version.ts'
import { issuerKeyFile } from '../../passport/signing/issuer.ts'
import { tagKeyFile } from '../../tap/keys/store.ts'

export function backupCommand(run: RunBare): Command {
  const description = 'Writes the database and the key files of the data folder into one file, while the service runs.'
  return defineCommand('backup', description, {
    notes: `The file is sealed (AES-256-GCM) under BACKUP_KEY, or under TAG_KEK where that is empty: without the key it cannot be read,
altered or made. It HOLDS SECRETS: sealed tag keys, the keys of issuer and attestations, all payments and owners; its mode is 0600.
TAG_KEK, TAG_PEPPER and other keys of the environment are not in it, nor the secrets that npm start made in keys/demo.json. The file
station.keys is in it only with --with-station-keys: a verifier never needs it.
With PostgreSQL it runs anywhere; DATA_DIR names the folder with the keys of the service, and a warning says what is missing there.
An embedded database serves nothing else while it is read: several seconds for 100,000 rows.`,
    examples: ['touchstone backup touchstone.backup', 'touchstone backup verify touchstone.backup'],
  })
    .addCommand(verifyCommand(run))
    .argument('<file>', 'a new file, such as touchstone.backup')
    .option('--with-station-keys', 'include station.keys, the sealed application keys, which can rewrite chips')
    .option('--json', 'print a JSON object')
    .action((file: string, options: BackupOptions) => run((session) => backup(session, file, options)))
}

type BackupOptions = { readonly withStationKeys?: true; readonly json?: true }

async function backup(session: BareSession, file: string, { withStationKeys, json }: BackupOptions): Promise<void> {
  const withStation = withStationKeys === true
  const { io, config } = session
  const path = resolve(io.cwd, file)
  if (existsSync(path)) throw taken(path)
  const key = backupKeyOf(config)
  if (key === null)
    throw new CommandError('A backup is sealed under a key: set BACKUP_KEY. Make one with: openssl rand -hex 32')
  // It still opens a backup that was made under it.
  if (isPlaceholder(key.keys[0]))
    throw new CommandError(
      'BACKUP_KEY is no random key: everybody could open the backup. Make one with: openssl rand -hex 32',
    )
  if (session.running === null) await assertDataFolder(config)
  const files = new Set<string>()
  const counts = await withDatabase(session, (database) =>
    writeBackup(path, key, async (write) => {
      await dumpDatabase(database, createDump(write, session))
      // Files come after the rows. A key without a row is harmless; a row without a key is not.
      for await (const part of readDataFiles(config.dataDir, { withStation })) {
        files.add(part.file)
        await write({ kind: 'file', part })
      }
    }),
  ).catch((error: unknown) => {
    if (!(error instanceof UnwrittenBackup)) throw error
    const { message, cause } = error
    if (message === 'EEXIST') throw taken(path)
    const fault = fileFault(path, cause)
    throw fault === cause ? new CommandError(`${path} cannot be written (${message}).`, { cause }) : fault
  })
  io.out(json === true ? formatJson({ file: path, ...counts }) : `${formatCounts(counts)}: ${path}`)
  const left = withStation ? 'TAG_KEK, STATION_KEK and TAG_PEPPER are' : 'TAG_KEK, TAG_PEPPER and station.keys are'
  for (const [table, name] of keyFiles)
    if ((counts.rows[table] ?? 0) > 0 && !files.has(name))
      io.err(
        `Warning: ${name} is not in the backup, because ${config.dataDir} does not have it. The database needs it: name the data folder of the service in DATA_DIR, and back up again.`,
      )
  io.err(`The file holds secrets, sealed under ${key.setting}: keep that key elsewhere. ${left} not in it.`)
}

/** The tables whose rows are of no use without keys, and the file of these keys. */
const keyFiles = [
  ['tag_batch', tagKeyFile('keys')],
  ['issuer_key', issuerKeyFile('keys')],
] as const

function taken(path: string): CommandError {
  return new CommandError(`${path} exists. A backup is never written over another one: name a new file.`)
}

function createDump(write: WriteLine, { io, config }: BareSession): Parameters<typeof dumpDatabase>[1] {
  let reported = 0
  let rows = 0
  return {
    schema: (head) =>
      write({
        kind: 'head',
        head: {
          touchstone: 'backup',
          format: 2,
          program: programVersion,
          created: new Date().toISOString(),
          chainId,
          ...head,
          contract: head.contract ?? config.chain.contract,
        },
      }),
    table: (head) => write({ kind: 'table', head }),
    async rows(texts) {
      if (io.signal.aborted) throw new CommandError('The backup was stopped; no file was written.')
      for (const text of texts) await write({ kind: 'row', text })
      rows += texts.length
      if (rows - reported < 100_000) return
      reported = rows
      io.err(`  ${rows} rows`)
    },
  }
}

function verifyCommand(run: RunBare): Command {
  return defineCommand('verify', 'Checks a backup as restore would, and changes nothing.', {
    notes: `The whole file is read. Exit code 1: it is cut off, altered, sealed under another key, of another chain or contract, or newer than
this program.`,
    examples: ['touchstone backup verify touchstone.backup'],
  })
    .argument('<file>', 'a file of touchstone backup')
    .addOption(unsealedOption())
    .option('--json', 'print a JSON object')
    .action((file: string, options: UnsealedOption, self: Command) =>
      run(async ({ io, config }) => {
        const { json } = self.optsWithGlobals<BackupOptions>() // `backup` takes the option that it has too
        const path = resolve(io.cwd, file)
        const { head, counts } = await checkBackup(path, config, { ...options, io })
        if (json === true) return io.out(formatJson({ file: path, ...counts, ...head }))
        io.out(`${formatCounts(counts)}, as they were at ${head.created}: ${path} can be restored.`)
        io.out(`program ${head.program}, chain ${head.chainId}, contract ${head.contract ?? 'none'}`)
      }),
    )
}
