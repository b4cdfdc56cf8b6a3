/**
 * The backup file: gzip over lines of JSON. It has the head, each table followed by its rows, the files of the data folder, and the end
 * with counts and the SHA-256 of everything before it. A file that has no end is damaged.
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { parseJsonObject } from '../../lib/json.ts'
import type { SchemaHead, TableHead } from '../../db/backup.ts'

export type BackupHead = SchemaHead &
  Readonly<{ touchstone: 'backup'; format: 1; program: string; created: string; chainId: number }>
/** Part of a file of the data folder. Parts of one file are consecutive. */
export type BackupFilePart = Readonly<{ file: string; data: string }>
export type BackupCounts = Readonly<{ rows: Readonly<Record<string, number>>; files: number }>

type BackupLine =
  | { readonly kind: 'head'; readonly head: BackupHead }
  | { readonly kind: 'table'; readonly head: TableHead }
  /** `text` is a JSON object. */
  | { readonly kind: 'row'; readonly text: string }
  | { readonly kind: 'file'; readonly part: BackupFilePart }

export class DamagedBackup extends Error {}

export type WriteLine = (line: BackupLine) => Promise<void>

/** Writes a new file (mode 0600) that gets its name only when it is complete. `fill` writes the lines. */
export async function writeBackup(path: string, fill: (write: WriteLine) => Promise<void>): Promise<BackupCounts> {
  const unfinished = `${path}.unfinished-${process.pid}`
  const handle = await open(unfinished, 'wx', 0o600)
  try {
    const zip = createGzip()
    const written = pipeline(zip, handle.createWriteStream({ flush: true }))
    written.catch(() => {}) // the write that follows rejects with it
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
      waiting += `${formatLine(line)}\n`
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

/** Yields the lines and returns the counts at the end. Throws DamagedBackup when the file is incomplete or altered. */
export async function* readBackup(path: string): AsyncGenerator<BackupLine, BackupCounts> {
  const hash = createHash('sha256')
  const count = createCount()
  let end: string | null = null
  for await (const bytes of readLines(path)) {
    const text = bytes.toString()
    if (end !== null) throw new DamagedBackup('There is more after the end.')
    if (text.startsWith('{"end":')) {
      end = text
      continue
    }
    hash.update(bytes).update('\n')
    const line = parseLine(text)
    count.add(line)
    yield line
  }
  const wanted = JSON.stringify({ end: { ...count.counts(), sha256: hash.digest('hex') } })
  if (end !== wanted) throw new DamagedBackup(end === null ? 'The end is missing.' : 'The checksum does not match.')
  return count.counts()
}

function formatLine(line: BackupLine): string {
  if (line.kind === 'row') return `{"row":${line.text}}`
  if (line.kind === 'head') return JSON.stringify(line.head)
  return JSON.stringify(line.kind === 'table' ? line.head : line.part)
}

function parseLine(text: string): BackupLine {
  if (text.startsWith('{"row":')) return { kind: 'row', text: text.slice(7, -1) }
  const value = parseJsonObject(text)
  if (value === null) throw new DamagedBackup('A line is not JSON.')
  if (value['touchstone'] === 'backup') return { kind: 'head', head: value as unknown as BackupHead }
  if (typeof value['table'] === 'string') return { kind: 'table', head: value as unknown as TableHead }
  if (typeof value['file'] === 'string') return { kind: 'file', part: value as unknown as BackupFilePart }
  throw new DamagedBackup('A line has an unknown kind.')
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

const maxLine = 16 * 1024 * 1024

async function* readLines(path: string): AsyncGenerator<Buffer> {
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
      if (rest.length > maxLine) throw new DamagedBackup('A line is too long.')
    }
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    throw code.startsWith('Z_') ? new DamagedBackup('It is not whole gzip.', { cause: error }) : error
  }
  if (rest.length > 0) throw new DamagedBackup('The last line is not whole.')
}
