/** Files that a command is given by name. The running service may read them, so that none is read without a bound. It overwrites none but reports. */
import { constants, createReadStream } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { parseUniqueJson } from '@touchstone/verdict'
import { bytesWithin, decodeUtf8 } from '../../lib/bytes.ts'
import { type Cell, formatCsvRow } from '../../lib/csv.ts'
import { createPrivateFile } from '../../lib/sealed/file.ts'
import { isOwnDescriptor } from './control-client.ts'
import { CommandError } from './output.ts'

const maxLength = 100_000

/** Reads a JSON file of at most 100,000 characters. Throws a CommandError for another, or one that names a member twice. */
export async function readJsonFile(path: string): Promise<unknown> {
  const text = await readTextFile(path, 4 * maxLength)
  if (text === null || text.length > maxLength) throw new CommandError(`${path} has more than ${maxLength} characters.`)
  const value = parseUniqueJson(text)
  if (value === undefined) throw new CommandError(`${path} is not JSON, or names a member twice.`)
  return value
}

/** Reads a text in UTF-8, or returns null when it has more than `maxBytes`. A pipe of the shell may stand for a file, such as `<(…)`. */
export async function readTextFile(path: string, maxBytes: number): Promise<string | null> {
  const bytes = await readBytes(path, maxBytes)
  const text = bytes && decodeUtf8(bytes)
  if (bytes !== null && text === null) throw new CommandError(`${path} is not UTF-8: save the file as UTF-8.`)
  return text
}

/** Reads a file, or returns null when it has more than `maxBytes`. Throws a CommandError for one that cannot be read. */
export async function readBytes(path: string, maxBytes: number): Promise<Uint8Array | null> {
  if (!isOwnDescriptor(path)) await requireFile(path)
  return bytesWithin(createReadStream(path), maxBytes).catch((error: NodeJS.ErrnoException) => unread(path, error))
}

/** Throws a CommandError where a path names no regular file. Opening a pipe without a writer would hold a thread of the service. */
export async function requireFile(path: string): Promise<void> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => unread(path, error))
  if (!found.isFile()) throw new CommandError(`There is no file ${path}: it is a folder, a pipe or a device.`)
}

function unread(path: string, { code = 'unknown reason' }: NodeJS.ErrnoException): never {
  const isMissing = code === 'ENOENT' || code === 'ENOTDIR'
  throw new CommandError(isMissing ? `There is no file ${path}.` : `${path} cannot be read (${code}).`)
}

/** Writes a file that does not exist yet, readable by its owner only. Throws `CommandError`. */
export async function writeNew(path: string, text: string): Promise<void> {
  try {
    await createPrivateFile(path, text)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') throw new CommandError(`${path} exists already; give --out a new file.`)
    if (code === 'ENOENT' || code === 'ENOTDIR')
      throw new CommandError(`There is no folder ${dirname(path)}; make it, or give --out a file elsewhere.`)
    throw error
  }
}

/** Opens a report with its first rows, which replaces that of an earlier run. Only its owner can read it. `write` returns the code of a fault. */
export async function openReport(path: string, columns: readonly string[], first: readonly (readonly Cell[])[] = []) {
  const unwritable = (code: string) => new CommandError(`The report ${path} cannot be written (${code}).`)
  const codeOf = ({ code = 'unknown reason' }: NodeJS.ErrnoException) => code
  const file = await openPrivate(path).catch((error: NodeJS.ErrnoException) => {
    throw unwritable(codeOf(error))
  })
  const write = (rows: readonly (readonly Cell[])[]) =>
    file.appendFile(rows.map((cells) => `${formatCsvRow(cells)}\n`).join('')).then(() => null, codeOf)
  const fault = await write([columns, ...first])
  if (fault !== null) {
    await file.close()
    throw unwritable(fault)
  }
  return { write, close: () => file.close() }
}

const { O_WRONLY, O_CREAT, O_TRUNC, O_APPEND } = constants

/** Opens a file that it empties. One that was there before is made private too. Another process may append its own lines. */
async function openPrivate(path: string) {
  const file = await open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0o600)
  try {
    if ((await file.stat()).isFile()) await file.chmod(0o600)
    return file
  } catch (error) {
    await file.close()
    throw error
  }
}
