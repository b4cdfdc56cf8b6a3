/**
 * The file of a backup: gzip over lines of JSON. First the head; then each table, followed by its rows; then the files of the data
 * folder; last the end, with counts and the SHA-256 of all before it. A file without its end is none.
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import type { SchemaHead, TableHead } from '../store/backup.ts'

export type BackupHead = SchemaHead &
  Readonly<{ touchstone: 'backup'; format: 1; program: string; created: string; chainId: number }>
/** Part of a file of the data folder; parts of one file follow one another. */
export type BackupFilePart = Readonly<{ file: string; data: string }>
export type BackupCounts = Readonly<{ rows: Readonly<Record<string, number>>; files: number }>

export type BackupLine =
  | { readonly kind: 'head'; readonly head: BackupHead }
  | { readonly kind: 'table'; readonly head: TableHead }
  /** A JSON object. */
  | { readonly kind: 'row'; readonly text: string }
  | { readonly kind: 'file'; readonly part: BackupFilePart }

export class DamagedBackup extends Error {}

export type WriteLine = (line: BackupLine) => Promise<void>

/** Writes a new file (mode 0600), which has its name only when it is whole. `fill` writes the lines. */
export async function writeBackup(path: string, fill: (write: WriteLine) => Promise<void>): Promise<BackupCounts> {
  const unfinished = `${path}.unfinished-${process.pid}`
  const handle = await open(unfinished, 'wx', 0o600)
  try {
    const zip = createGzip()
    const written = pipeline(zip, handle.createWriteStream({ flush: true }))
    written.catch(() => {}) // whoever writes hears of it
    const put = (text: string) =>
      new Promise<void>((resolve, reject) => zip.write(text, (error) => (error ? reject(error) : resolve())))
    const hash = createHash('sha256')
    const count = createCount()
    let waiting = ''
    const flush = async () => {
      const text = waiting
      waiting = ''
      hash.update(text)
      await put(text)
    }
    await fill(async (line) => {
      count.add(line)
      waiting += `${textOf(line)}\n`
      if (waiting.length > 65_536) await flush()
    }).catch(async (error: unknown) => {
      zip.destroy()
      await written.catch(() => {})
      throw error
    })
    await flush()
    await put(`${JSON.stringify({ end: { ...count.counts(), sha256: hash.digest('hex') } })}\n`)
    zip.end()
    await written
    await rename(unfinished, path)
    return count.counts()
  } catch (error) {
    await handle.close().catch(() => {}) // the stream may have closed it
    await rm(unfinished, { force: true })
    throw error
  }
}

/** Gives the lines and, when they are over, returns the counts. A file that is not whole throws DamagedBackup. */
export async function* readBackup(path: string): AsyncGenerator<BackupLine, BackupCounts> {
  const hash = createHash('sha256')
  const count = createCount()
  let end: string | null = null
  for await (const bytes of linesOf(path)) {
    const text = bytes.toString()
    if (end !== null) throw new DamagedBackup('There is more after the end.')
    if (text.startsWith('{"end":')) {
      end = text
      continue
    }
    hash.update(bytes).update('\n')
    const line = lineOf(text)
    count.add(line)
    yield line
  }
  const wanted = JSON.stringify({ end: { ...count.counts(), sha256: hash.digest('hex') } })
  if (end !== wanted) throw new DamagedBackup(end === null ? 'The end is missing.' : 'The sum is another one.')
  return count.counts()
}

function textOf(line: BackupLine): string {
  if (line.kind === 'row') return `{"row":${line.text}}`
  if (line.kind === 'head') return JSON.stringify(line.head)
  return JSON.stringify(line.kind === 'table' ? line.head : line.part)
}

function lineOf(text: string): BackupLine {
  if (text.startsWith('{"row":')) return { kind: 'row', text: text.slice(7, -1) }
  const value = parsed(text)
  if (value['touchstone'] === 'backup') return { kind: 'head', head: value as unknown as BackupHead }
  if (typeof value['table'] === 'string') return { kind: 'table', head: value as unknown as TableHead }
  if (typeof value['file'] === 'string') return { kind: 'file', part: value as unknown as BackupFilePart }
  throw new DamagedBackup('A line is of no known kind.')
}

function parsed(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch (error) {
    throw new DamagedBackup('A line is not JSON.', { cause: error })
  }
}

function createCount() {
  const rows: Record<string, number> = {}
  let [table, file, files] = ['', '', 0]
  return {
    add(line: BackupLine): void {
      if (line.kind === 'table') rows[(table = line.head.table)] = 0
      if (line.kind === 'row') rows[table] = (rows[table] ?? 0) + 1
      if (line.kind !== 'file' || line.part.file === file) return
      file = line.part.file
      files += 1
    },
    counts: (): BackupCounts => ({ rows, files }),
  }
}

const longestLine = 16 * 1024 * 1024

async function* linesOf(path: string): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0)
  const chunks = createGunzip()
  createReadStream(path)
    .on('error', (error) => chunks.destroy(error))
    .pipe(chunks)
  try {
    for await (const chunk of chunks as AsyncIterable<Buffer>) {
      rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
      let from = 0
      for (let at = rest.indexOf(10); at >= 0; at = rest.indexOf(10, from)) {
        yield rest.subarray(from, at)
        from = at + 1
      }
      rest = rest.subarray(from)
      if (rest.length > longestLine) throw new DamagedBackup('A line is too long.')
    }
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    throw code.startsWith('Z_') ? new DamagedBackup('It is not whole gzip.', { cause: error }) : error
  }
  if (rest.length > 0) throw new DamagedBackup('The last line is not whole.')
}
