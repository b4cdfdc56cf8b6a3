/** A folder in which this process can write nothing, like the keys of a container that only reads them. */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Root may write to any folder, but for one that is mounted read-only. */
const isRoot = process.getuid?.() === 0

/** The reason to skip, or `false`. */
export const noReadOnly: string | false = isRoot && !mayMount() ? 'no folder can be mounted read-only here' : false

function mayMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'mount-'))
  try {
    makeReadOnly(folder)[Symbol.dispose]()
    return true
  } catch {
    return false
  } finally {
    rmdirSync(folder)
  }
}

/** Makes a folder read-only until it is disposed of. */
export function makeReadOnly(folder: string): Disposable {
  if (!isRoot) {
    chmodSync(folder, 0o500)
    return { [Symbol.dispose]: () => chmodSync(folder, 0o700) }
  }
  execFileSync('mount', ['--bind', folder, folder], { stdio: 'ignore' })
  execFileSync('mount', ['-o', 'remount,bind,ro', folder])
  return { [Symbol.dispose]: () => execFileSync('umount', ['--lazy', folder]) }
}
