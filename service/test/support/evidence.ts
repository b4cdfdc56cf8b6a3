/**
 * Collects, over the whole suite, the log lines of the tests' services and the secrets that tests used.
 * `scripts/test.ts` names the folder; `scripts/check-logs.ts` fails when a log line contains a secret.
 */
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'

const folder = process.env['TEST_EVIDENCE']

export function keepLog(lines: readonly string[]): void {
  if (folder !== undefined && lines.length > 0)
    appendFileSync(join(folder, `logs-${process.pid}`), `${lines.join('\n')}\n`)
}

/** A key, picc or cmac in hex; text that is all zeros is no secret. */
export function keepSecret(hex: string): void {
  if (folder !== undefined && hex.length >= 16 && /[1-9a-f]/i.test(hex))
    appendFileSync(join(folder, `secrets-${process.pid}`), `${hex}\n`)
}
