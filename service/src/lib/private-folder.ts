/** Folders and files that only the user of this process may read. */
import { chmod, lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'

/** The permissions of the group and of all others. */
export const forOthers = 0o077

/** Takes all permissions of others from an entry. Returns whether it had some; one of another user, or a link, stays as it is. */
export async function closeEntry(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => null)
  if (found === null || found.isSymbolicLink() || (found.mode & forOthers) === 0) return false
  return chmod(path, found.mode & 0o7777 & ~forOthers).then(
    () => true,
    () => false,
  )
}

/** Closes a folder, or a file, with everything below it. Returns how many entries were open. */
export async function closeTree(path: string): Promise<number> {
  const below = await readdir(path, { recursive: true }).catch(() => [])
  const closed = await Promise.all([path, ...below.map((name) => join(path, name))].map(closeEntry))
  return closed.filter(Boolean).length
}
