/**
 * Test files that share a process. Most of the processor time of a small file is that of reading the sources, and of compiling the embedded
 * database; the next file of the process finds both done. Each file is a test of its own: its hooks run for it alone, and what it opens
 * is closed before the next one begins.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { removeTestFolders } from '../service/test/support/folder.ts'
import { killChildren } from '../service/test/support/processes/kill.ts'
import { trackPromises } from './promise-tracking.ts'

/** Files that read their own arguments, or change what a process has once, keep a process of their own. */
const ownProcess = /process\.(?:argv|umask)\b/
/** Folders whose files start programs and browsers, the slowest first. They begin before the others, so that the lanes end together. */
const slow = ['pages', 'deploy', 'fleet', 'cli', 'contracts', 'discovery']
/** A larger group saves little more, and takes one lane beyond the end of the others. */
const atMost = { slow: 4, other: 7, modules: 20 }

/** A file that takes longer, even on a busy machine, hangs. It fails, and the next one begins. */
const longestMs = 20 * 60_000

/** Writes one test file for each group of `files` into `folder`. Returns their paths, in the order in which Node runs them. */
export function groupFiles(files: readonly string[], folder: string): string[] {
  const alone = new Set(files.filter((file) => ownProcess.test(readFileSync(file, 'utf8'))))
  const folders = Map.groupBy(
    files.filter((file) => !alone.has(file)),
    (file) => (isOfModule(file) ? 'service/src' : dirname(file)),
  )
  const groups = [...Array.from(alone, (file) => [file]), ...Array.from(folders.values(), split).flat()]
  const ranked = groups.toSorted((a, b) => rankOf(a) - rankOf(b))
  return ranked.map((group, at) => {
    const path = join(folder, `${String(at).padStart(3, '0')}.test.mjs`)
    const paths = JSON.stringify(group.map((file) => resolve(file)))
    writeFileSync(path, `import { runInTurn } from ${JSON.stringify(import.meta.url)}\nrunInTurn(${paths})\n`)
    return path
  })
}

/**
 * Runs test files one after another. They are imported within a test, so that all they register at their top level belongs to it. Promises
 * are followed until then.
 */
export function runInTurn(files: readonly string[]): void {
  for (const file of files)
    void test(file, { timeout: longestMs }, async (context) => {
      context.after(killChildren)
      trackPromises(true)
      await import(pathToFileURL(file).href).finally(() => trackPromises(false))
      // Behind the hooks that the file has registered, which close what is open in the folders.
      context.after(removeTestFolders)
      // A test is over when its function returns, even where tests of it wait. This one waits behind them.
      await context.test('ends', () => {})
    })
}

/** A test beside the module that it tests is short. */
const isOfModule = (file = '') => file.startsWith('service/src/')

/** Splits the files of a folder into groups of about the same length. */
function split(files: readonly string[]): string[][] {
  const isSlow = rankOf(files) < slow.length
  const count = Math.ceil(files.length / (isOfModule(files[0]) ? atMost.modules : isSlow ? atMost.slow : atMost.other))
  return Array.from({ length: count }, (_, at) => files.filter((__, index) => index % count === at))
}

/** Returns the place of a group's folder among the slow ones, or a place behind them. */
function rankOf([file = '']: readonly string[]): number {
  const place = isOfModule(file) ? -1 : slow.findIndex((name) => dirname(file).endsWith(name))
  return place === -1 ? slow.length : place
}
