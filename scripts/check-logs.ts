/**
 * The last stage of `npm test`. It checks that no log line of the whole suite holds a key, a picc or a cmac that any test used (spec §5).
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const folder = process.argv[2] ?? ''
const read = (kind: string) =>
  readdirSync(folder)
    .filter((name) => name.startsWith(kind))
    .flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n'))
    .filter((line) => line !== '')

const logs = read('logs-')
const secrets = new Set(read('secrets-').map((secret) => secret.toUpperCase()))
const lengths = new Set(Array.from(secrets, (secret) => secret.length))
const found = logs.filter((line) => {
  // Returns every long run of hex digits, and every part of it that has the length of a secret.
  return [...line.toUpperCase().matchAll(/[0-9A-F]{16,}/g)].some(([run]) =>
    Array.from(lengths).some((length) =>
      Array.from({ length: Math.max(run.length - length + 1, 0) }, (_, at) => run.slice(at, at + length)).some((part) =>
        secrets.has(part),
      ),
    ),
  )
})

console.log(`${logs.length} log lines of the suite, ${secrets.size} secrets: ${found.length} lines hold one`)
if (logs.length < 100 || secrets.size < 100) console.log('Too little was collected for this to mean anything.')
process.exitCode = found.length > 0 || logs.length < 100 || secrets.size < 100 ? 1 : 0
