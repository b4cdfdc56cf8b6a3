/** A folder in which this process can write nothing, like the keys of a container that only reads them. */
import { execFileSync } from 'node:child_process'
import { chmodSync } from 'node:fs'

/** Makes a folder read-only until it is disposed of. Returns null where root, who may write to any folder, may not mount one. */
export function makeReadOnly(folder: string): Disposable | null {
  if (process.getuid?.() !== 0) {
    chmodSync(folder, 0o500)
    return { [Symbol.dispose]: () => chmodSync(folder, 0o700) }
  }
  try {
    execFileSync('mount', ['--bind', folder, folder], { stdio: 'ignore' })
  } catch {
    return null
  }
  execFileSync('mount', ['-o', 'remount,bind,ro', folder])
  return { [Symbol.dispose]: () => execFileSync('umount', ['--lazy', folder]) }
}
