/** Folders and files that only the user of this process may read. */
import { access, chmod, constants, lstat, mkdir, open, readdir, readFile, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { ServiceError } from './errors.ts'

/** The permissions of the group and of all others. */
export const forOthers = 0o077

/** Write access of the group, and all access of others. Secrets of Kubernetes are readable by a group. */
const forStrangers = 0o027

/** Reads a file of secrets, or returns null for one above `maxBytes`. Throws an Error of one sentence for one that is missing or open to others. */
export async function readPrivateFile(
  path: string,
  { maxBytes }: { readonly maxBytes: number },
): Promise<string | null> {
  const file = await open(path).catch(({ code }: NodeJS.ErrnoException) => {
    throw new Error(`${path} cannot be read (${code ?? 'unknown reason'}).`)
  })
  try {
    const { mode, size } = await file.stat()
    if ((mode & forStrangers) !== 0) throw new Error(`${path} is open to other users: chmod 600 closes it.`)
    return size > maxBytes ? null : await file.readFile('utf8')
  } finally {
    await file.close()
  }
}

/** Reads a file of the service, or returns null when it is missing. Throws INTERNAL with a remedy where this user may not read it. */
export async function readOwnFile(path: string): Promise<string | null> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    if (error.code !== 'EACCES' && error.code !== 'EPERM') throw error
    const message = `${path} may not be read by this user. Run the program as its owner, or give this user the file: chown <user> ${path}.`
    throw new ServiceError('INTERNAL', message, { cause: error })
  })
}

/**
 * Makes a folder and the missing ones above it, for their owner only. Node's own recursive `mkdir` never ends below a folder that takes
 * none, such as /proc.
 */
export async function makeFolder(path: string): Promise<void> {
  try {
    await makeOne(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || dirname(path) === path) throw error
    await makeFolder(dirname(path))
    await makeOne(path)
  }
}

async function makeOne(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 })
  } catch (error) {
    const found = await stat(path).catch(() => null)
    if (found?.isDirectory() !== true) throw error
  }
}

/** An entry that this process may not read and write. `remedy` is one sentence. */
export type ClosedToUs = Readonly<{ path: string; code: string; remedy: string }>

/** Returns the first entry of a folder that this process may not read and write. It is null where there is none. */
export async function findClosedToUs(folder: string): Promise<ClosedToUs | null> {
  try {
    await access(folder, constants.R_OK | constants.W_OK)
    for (const path of await pathsBelow(folder)) await access(path, constants.R_OK | constants.W_OK)
    return null
  } catch (error) {
    const { code = 'unknown reason', path = folder } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return null
    const remedy =
      code === 'EROFS'
        ? 'Mount its file system writable.'
        : `Run the program as the user who owns it, or give that user all of it: chown -R <user> ${folder}.`
    return { path, code, remedy }
  }
}

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
  const below = await pathsBelow(path).catch(() => [])
  const closed = await Promise.all([path, ...below].map(closeEntry))
  return closed.filter(Boolean).length
}

/** Returns the paths of all entries below a folder. Links are not followed: without `withFileTypes`, Node does so. */
export async function pathsBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries.map(({ parentPath, name }) => join(parentPath, name))
}
