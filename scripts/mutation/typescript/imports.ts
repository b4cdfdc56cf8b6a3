/** Follows imports, to know which tests can reach a source at all. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Returns the paths that a file imports, directly or not, and its own. Packages are left out but for the client library. */
export function importedBy(root: string, path: string): ReadonlySet<string> {
  const found = new Set<string>()
  const waiting = [path]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (found.has(next) || !existsSync(join(root, next))) continue
    found.add(next)
    for (const [, name = ''] of readFileSync(join(root, next), 'utf8').matchAll(/(?:from|import\()\s*'([^']+)'/g)) {
      if (name.startsWith('.')) waiting.push(join(dirname(next), name))
      if (name === '@touchstone/verdict') waiting.push('verdict/src/index.ts')
    }
  }
  return found
}
