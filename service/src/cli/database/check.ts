/** The checks of a backup file before anything is changed: its seal, its end, what it is of. */
import { Option } from 'commander'
import {
  type BackupCounts,
  type BackupHead,
  type BackupKey,
  ClosedBackup,
  DamagedBackup,
  readBackup,
  type ReadOptions,
} from './backup-file.ts'
import { isDataFile } from './data-files.ts'
import type { CommandIo } from '../session/control-client.ts'
import { requireFile } from '../session/files.ts'
import { CommandError } from '../session/output.ts'
import type { Config } from '../../app/config/config.ts'
import { schemaRefusal } from '../../db/backup.ts'
import { readMigrations } from '../../db/migrate.ts'
import { chainId } from '../../domain/chain.ts'

/** Returns the key of backups: BACKUP_KEY, else TAG_KEK; `null` without either. */
export function backupKeyOf({ backupKey, tap }: Pick<Config, 'backupKey' | 'tap'>): BackupKey | null {
  const { kek, previousKek } = tap
  if (backupKey !== null) return { setting: 'BACKUP_KEY', keys: [backupKey] }
  if (kek === null) return null
  return { setting: 'TAG_KEK', keys: previousKek === null ? [kek] : [kek, previousKek] }
}

export type UnsealedOption = { readonly unsealed?: true }

export const unsealedOption = () =>
  new Option('--unsealed', 'also read a file of an earlier version, which anybody could have altered')

type Checked = { readonly head: BackupHead; readonly counts: BackupCounts; readonly reading: ReadOptions }

/** Reads the whole file. Throws a CommandError when it cannot be restored by this program. */
export async function checkBackup(
  path: string,
  config: Pick<Config, 'backupKey' | 'chain' | 'tap'>,
  { unsealed, io }: UnsealedOption & { readonly io: Pick<CommandIo, 'err' | 'signal'> },
): Promise<Checked> {
  const reading = { key: backupKeyOf(config), allowUnsealed: unsealed === true, signal: io.signal }
  await requireFile(path)
  const read = await describeDamage(path, () => readWhole(path, reading))
  if (read.head.format === 1) io.err(`Warning: ${path} has no seal. Its checksum shows damage, but not an alteration.`)
  assertFits(read.head, config.chain.contract)
  const refusal = schemaRefusal(read.head, readMigrations())
  if (refusal !== null) throw new CommandError(refusal)
  return { ...read, reading }
}

async function readWhole(path: string, reading: ReadOptions): Promise<Omit<Checked, 'reading'>> {
  const lines = readBackup(path, reading)
  const first = await lines.next()
  if (first.done === true || first.value.kind !== 'head') throw new DamagedBackup('It does not begin with a head.')
  for (;;) {
    const { done, value } = await lines.next()
    if (done === true) return { head: first.value.head, counts: value }
    if (value.kind === 'file' && !isDataFile(value.part.file))
      throw new DamagedBackup('It has a file in an unknown place.')
  }
}

/** Runs work on a backup, and turns what is wrong with the file into a sentence. */
export async function describeDamage<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (error instanceof ClosedBackup) throw new CommandError(`${path} ${error.message}.`, { cause: error })
    // SQLSTATE 22 and 23 are rows that no dump contains. The message of the database would show them.
    if (error instanceof DamagedBackup || /^2[23]\w{3}$/.test(code))
      throw new CommandError(
        `${path} is not a complete backup: it is cut off, or was altered. Nothing was changed; take another copy of it.`,
        { cause: error },
      )
    if (code === 'EACCES') throw new CommandError(`${path} cannot be read (${code}).`, { cause: error })
    throw error
  }
}

function assertFits({ chainId: id, contract }: BackupHead, wanted: string | null): void {
  if (id !== chainId) throw new CommandError(`The backup is of chain ${id}; this service works on chain ${chainId}.`)
  if (wanted !== null && contract !== null && contract.toLowerCase() !== wanted.toLowerCase())
    throw new CommandError(`The backup is of the contract ${contract}; CHAIN_CONTRACT names another one.`)
}

export function formatCounts({ rows, files }: BackupCounts): string {
  const all = Object.values(rows)
  return `${all.reduce((sum, n) => sum + n, 0)} rows of ${all.length} tables and ${files} files`
}
