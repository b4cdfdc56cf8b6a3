/**
 * Test files that share processes. Most of the processor time of a small file is that of reading the sources, and of compiling the embedded
 * database; the next file of the process finds both done. A process takes the next file of a queue whenever one has ended, so that all
 * processes end together. Each file is a test of its own: its hooks run for it alone, and what it opens is closed before the next one begins.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { test, type TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import { killChildren } from '../service/test/support/processes/kill.ts'

/** Files that read their own arguments, or change what a process has once, keep a process of their own. */
const ownProcess = /process\.(?:argv|umask)\b/
/** Folders whose files start programs and browsers, the slowest first. No process should begin such a file when the others end. */
const slow = ['pages', 'deploy', 'fleet', 'cli', 'contracts', 'discovery']
/** A process that ran so many files ends, and the memory that its modules keep with it. */
const atMost = 40

/** A file that takes longer, even on a busy machine, hangs. It fails, and the next one begins. */
const longestMs = 20 * 60_000

/** Writes test files for Node into `folder`, of which `lanes` run at a time. Together they run each of `files` once. Returns their paths. */
export function queueFiles(files: readonly string[], lanes: number, folder: string): string[] {
  const { alone = [], shared = [] } = Object.groupBy(files, (file) =>
    ownProcess.test(readFileSync(file, 'utf8')) ? 'alone' : 'shared',
  )
  const queue = [...alone, ...shared.toSorted((a, b) => rankOf(a) - rankOf(b))].map((file) => resolve(file))
  writeFileSync(join(folder, 'queue.json'), JSON.stringify(queue))
  // The last ones find nothing left, unless a process before them ended early.
  const processes = shared.length === 0 ? 0 : Math.ceil(shared.length / atMost) + lanes - 1
  const spans = [
    ...alone.map((_, at) => [at, at + 1]),
    ...Array.from({ length: processes }, () => [alone.length, queue.length]),
  ]
  return spans.map(([from, to], at) => {
    const path = join(folder, `${String(at).padStart(3, '0')}.test.mjs`)
    const call = `takeFiles(import.meta.filename, ${from}, ${to})`
    writeFileSync(path, `import { takeFiles } from ${JSON.stringify(import.meta.url)}\n${call}\n`)
    return path
  })
}

/** Runs files of the queue, `from` up to `to`, that no other process has taken, one after another. `path` is the own test file. */
export function takeFiles(path: string, from: number, to: number): void {
  const folder = dirname(path)
  const queue = readQueue(folder)
  let [left, isDone] = [atMost, false]
  process.once('exit', () => {
    if (!isDone) process.exitCode = 1
  })
  // Hooks of the process run when its last test has ended. One test spans all files, so that this is behind the last of them.
  void test('files of the queue', { timeout: longestMs * atMost }, async (context) => {
    for (let at = from; at < to && left > 0; at += 1) {
      if (!isTaken(markOf(folder, at, 'taken'), path)) continue
      left -= 1
      await runFile(queue[at] ?? '', context)
      writeFileSync(markOf(folder, at, 'ended'), '')
    }
    isDone = true
  })
}

/**
 * Returns what to run again after a failure, for what the reporter `named`. For a process that ended badly, these are all files that it took.
 * A file that did not end is among them, though nothing names it.
 */
export function failedFiles(folder: string, named: readonly string[]): string[] {
  return readQueue(folder).filter((file, at) => {
    if (named.includes(file) || !existsSync(markOf(folder, at, 'ended'))) return true
    return named.includes(readFileSync(markOf(folder, at, 'taken'), 'utf8'))
  })
}

/** Runs a file. It is imported within a test, so that all it registers at its top level belongs to that test. */
async function runFile(file: string, files: TestContext): Promise<void> {
  await files.test(file, { timeout: longestMs }, async (context) => {
    context.after(killChildren)
    await import(pathToFileURL(file).href)
    // A test is over when its function returns, even where tests of it wait. This one waits behind them.
    await context.test('ends', () => {})
  })
}

function readQueue(folder: string): readonly string[] {
  return JSON.parse(readFileSync(join(folder, 'queue.json'), 'utf8')) as string[]
}

function markOf(folder: string, at: number, mark: 'taken' | 'ended'): string {
  return join(folder, `${at}.${mark}`)
}

/** Returns whether this process is the first that takes a file. The `mark` of the file then holds `path`. */
function isTaken(mark: string, path: string): boolean {
  try {
    writeFileSync(mark, path, { flag: 'wx' })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** Returns the place of a file's folder among the slow ones, or a place behind them. */
function rankOf(file: string): number {
  const place = slow.findIndex((name) => dirname(file).endsWith(name))
  return place === -1 ? slow.length : place
}
