/**
 * The backup file. Its first line is JSON with the data key, sealed under the backup key; the data key seals the rest. Inside is gzip over
 * lines of JSON: the head, each table followed by its rows, the files of the data folder, and the end with counts and the SHA-256 of
 * everything before it. Files of format 1 have no seal.
 */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { type FileHandle, link, open, rename, rm } from 'node:fs/promises'
import { pipeline as streamPipeline } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { assertNotInterrupted } from '../session/output.ts'
import { parseHex } from '../../lib/bytes.ts'
import { isObject, parseJsonObject } from '../../lib/json.ts'
import { seal, syncFolder, unseal } from '../../lib/sealed/file.ts'
import { BrokenSeal, openChunks, sealChunks } from '../../lib/sealed/stream.ts'
import type { SchemaHead, TableHead } from '../../db/backup.ts'

export type BackupHead = SchemaHead &
  Readonly<{ touchstone: 'backup'; format: 1 | 2; program: string; created: string; chainId: number }>
/** Part of a file of the data folder. Parts of one file are consecutive. */
export type BackupFilePart = Readonly<{ file: string; data: string }>
export type BackupCounts = Readonly<{ rows: Readonly<Record<string, number>>; files: number }>

type BackupLine =
  | { readonly kind: 'head'; readonly head: BackupHead }
  | { readonly kind: 'table'; readonly head: TableHead }
  /** `text` is a JSON object. */
  | { readonly kind: 'row'; readonly text: string }
  | { readonly kind: 'file'; readonly part: BackupFilePart }

/** The setting whose key seals a backup, and the keys of 32 bytes that open one. The present key comes first. */
export type BackupKey = Readonly<{ setting: 'BACKUP_KEY' | 'TAG_KEK'; keys: readonly [Uint8Array, ...Uint8Array[]] }>

/** A file that was cut off or altered. */
export class DamagedBackup extends Error {}
/** A file that this program cannot or may not open, though it may be whole. The message is a predicate of the file. */
export class ClosedBackup extends Error {}
/** A file that could not be written. The message is the code of the fault, and the cause the fault. */
export class UnwrittenBackup extends Error {}

export type WriteLine = (line: BackupLine) => Promise<void>

/** Writes a new file (mode 0600) that gets its name only when it is complete. `fill` writes the lines. Throws UnwrittenBackup. */
export async function writeBackup(
  path: string,
  by: BackupKey,
  fill: (write: WriteLine) => Promise<void>,
): Promise<BackupCounts> {
  // In a container every process has the same number, and a killed one leaves its file.
  const unfinished = `${path}.unfinished-${randomBytes(6).toString('hex')}`
  const handle = await open(unfinished, 'wx', 0o600).catch(unwritten)
  const output = openOutput(handle, by)
  try {
    const hash = createHash('sha256')
    const count = createCount()
    let waiting = ''
    const flush = async () => {
      const text = waiting
      waiting = ''
      hash.update(text)
      await output.write(text)
    }
    await fill(async (line) => {
      count.add(line)
      waiting += `${formatLine(line)}\n`
      if (waiting.length > 65_536) await flush()
    })
    await flush()
    await output.write(`${JSON.stringify({ end: { ...count.counts(), sha256: hash.digest('hex') } })}\n`)
    await output.end()
    await place(unfinished, path).catch(unwritten)
    await syncFolder(path).catch(unwritten)
    return count.counts()
  } catch (error) {
    await output.abort()
    throw error
  } finally {
    await rm(unfinished, { force: true })
  }
}

/** Gives a file its name. Throws EEXIST where one of that name was made meanwhile, which a rename would replace. */
async function place(unfinished: string, path: string): Promise<void> {
  await link(unfinished, path).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code === 'EEXIST') throw error
    // Some file systems have no hard links. An empty file takes the name first.
    await (await open(path, 'wx', 0o600)).close()
    await rename(unfinished, path).catch(async (fault: unknown) => {
      await rm(path, { force: true })
      throw fault
    })
  })
}

/** Compresses and seals what is written into a new file. Each function but `abort` throws UnwrittenBackup. */
function openOutput(handle: FileHandle, by: BackupKey) {
  const zip = createGzip()
  const { line: first, key } = createEnvelope(by)
  const written = pipeline(
    zip,
    async function* (source: AsyncIterable<Buffer>) {
      yield first
      yield* sealChunks(source, { key, associated: first })
    },
    handle.createWriteStream({ flush: true }),
  ).catch(unwritten)
  written.catch(() => {}) // `write` or `end` rejects with it
  return {
    // The pipeline has the fault. A stream that is destroyed never calls back for a write in progress.
    async write(text: string): Promise<void> {
      if (zip.destroyed) return written
      if (!zip.write(text)) await once(zip, 'drain').catch(() => written)
    },
    end: () => {
      zip.end()
      return written
    },
    abort: async () => {
      zip.destroy()
      await written.catch(() => {})
      await handle.close().catch(() => {}) // the stream may have closed it
    },
  }
}

function unwritten(cause: NodeJS.ErrnoException): never {
  throw new UnwrittenBackup(cause.code ?? cause.message, { cause })
}

/** A new data key, and the line with it under the backup key. */
function createEnvelope({ setting, keys }: BackupKey): { readonly line: Buffer; readonly key: Uint8Array } {
  const key = randomBytes(32)
  const dataKey = JSON.parse(seal('backup', key.toString('hex'), keys[0])) as unknown
  return { key, line: Buffer.from(`${JSON.stringify({ touchstone: 'backup', format: 2, under: setting, dataKey })}\n`) }
}

/** `allowUnsealed` also reads a file of format 1, whose checksum shows damage but no forgery. `signal` is that of the command. */
export type ReadOptions = Readonly<{ key: BackupKey | null; allowUnsealed: boolean; signal: AbortSignal }>

/**
 * Yields the lines and returns the counts at the end. Throws ClosedBackup before the first line, and DamagedBackup when the file is
 * incomplete or altered. Throws a CommandError when the command is interrupted. A line that was yielded from a sealed file is as it was
 * written.
 */
export async function* readBackup(path: string, options: ReadOptions): AsyncGenerator<BackupLine, BackupCounts> {
  const hash = createHash('sha256')
  const count = createCount()
  let end: string | null = null
  const { content, format } = await openContent(path, options)
  for await (const bytes of readLines(content)) {
    assertNotInterrupted(options.signal)
    const text = bytes.toString()
    if (end !== null) throw new DamagedBackup('There is more after the end.')
    if (text.startsWith('{"end":')) {
      end = text
      continue
    }
    hash.update(bytes).update('\n')
    const line = parseLine(text)
    if (line.kind === 'head' && line.head.format !== format) throw unknownFormat(line.head.format)
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

async function* readLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  /** The parts of a line that is not whole yet. */
  let parts: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of chunks) {
      let from = 0
      for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
        yield Buffer.concat([...parts, chunk.subarray(from, at)])
        ;[parts, length, from] = [[], 0, at + 1]
      }
      parts.push(chunk.subarray(from))
      length += chunk.length - from
      if (length > maxLine) throw new DamagedBackup('A line is too long.')
    }
  } catch (error) {
    if (error instanceof BrokenSeal) throw new DamagedBackup(error.message, { cause: error })
    const { code = '' } = error as NodeJS.ErrnoException
    throw code.startsWith('Z_') ? new DamagedBackup('It is not whole gzip.', { cause: error }) : error
  }
  if (length > 0) throw new DamagedBackup('The last line is not whole.')
}

const maxEnvelope = 4_096

async function openContent(
  path: string,
  { key: by, allowUnsealed }: ReadOptions,
): Promise<{ readonly content: AsyncIterable<Buffer>; readonly format: 1 | 2 }> {
  const handle = await open(path)
  let start: Buffer
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(maxEnvelope), 0, maxEnvelope, 0)
    start = buffer.subarray(0, bytesRead)
  } finally {
    await handle.close()
  }
  const unzip = createGunzip()
  const ended = () => {} // the reader of the stream gets the error
  if (start[0] === 0x1f && start[1] === 0x8b) {
    if (!allowUnsealed)
      throw new ClosedBackup(
        'is of an earlier version and has no seal: anybody could have altered it. If you know that it is yours, repeat the command with --unsealed',
      )
    return { content: streamPipeline(createReadStream(path), unzip, ended), format: 1 }
  }
  const line = start.subarray(0, start.indexOf(10) + 1)
  const key = openEnvelope(line, by)
  const plain = (source: AsyncIterable<Buffer>) => openChunks(source, { key, associated: line })
  return { content: streamPipeline(createReadStream(path, { start: line.length }), plain, unzip, ended), format: 2 }
}

function unknownFormat(format: unknown): ClosedBackup {
  return new ClosedBackup(`has the format ${Number(format)}, which this version does not support: use a newer one`)
}

function openEnvelope(line: Buffer, by: BackupKey | null): Uint8Array {
  const { touchstone, format, under, dataKey } = parseJsonObject(line.toString()) ?? {}
  if (touchstone !== 'backup' || !isObject(dataKey)) throw new DamagedBackup('It does not begin with a data key.')
  if (format !== 2) throw unknownFormat(format)
  const setting = under === 'TAG_KEK' ? under : 'BACKUP_KEY'
  if (by === null) throw new ClosedBackup(`is sealed: set ${setting} as it was`)
  for (const kek of by.keys) {
    const { value } = unseal('backup', JSON.stringify(dataKey), kek) ?? {}
    const key = typeof value === 'string' ? parseHex(value) : null
    if (key?.length === 32) return key
  }
  const remedy =
    setting === by.setting ? `set ${setting} as it was` : `it was sealed under ${setting}, and ${by.setting} is set`
  throw new ClosedBackup(`does not open with ${by.setting}: ${remedy}, or take another copy of it`)
}
