/** Temporary folders of tests. A folder stays until the file has ended, because one of its last hooks may close a database in it. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const made = new Set<string>()
process.once('exit', removeTestFolders)

/** Makes an empty folder. It may be called anywhere: by a file, a suite, a hook, a test or a world. */
export function testFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'touchstone-'))
  made.add(folder)
  return folder
}

/** Removes the folders that the file made, before another file of the process begins. */
export function removeTestFolders(): void {
  for (const folder of made) rmSync(folder, { recursive: true, force: true })
  made.clear()
}
