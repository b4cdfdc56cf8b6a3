/** The data folder is closed to other users (0700, files 0600). It holds keys, and in the database the hashes of keys and taps. */
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { closeEntry, closeTree, forOthers } from '../../lib/private-folder.ts'

/** The entries that the service itself makes. An operator may have named a folder that holds other things too. */
const ownEntries = ['chain', 'control.json', 'imports', 'keys', 'store']

/**
 * Makes everything that this process and its children write private, and closes what a former version left open. Returns how many entries
 * it closed.
 */
export async function closeDataFolder(dataDir: string): Promise<number> {
  process.umask(forOthers)
  const mode = (await lstat(dataDir).catch(() => null))?.mode ?? 0
  const isForAll = (mode & 0o1000) !== 0 // such as /tmp
  let closed = !isForAll && (await closeEntry(dataDir)) ? 1 : 0
  for (const name of ownEntries) closed += await closeTree(join(dataDir, name))
  return closed
}

/** The line of a start that found an open folder. */
export const wasOpen = 'the data folder was open to other users, and is closed now'
