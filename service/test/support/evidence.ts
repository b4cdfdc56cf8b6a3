/**
 * What the whole suite leaves behind for one last look: every log line that a test's service wrote, and every secret that a test
 * used. `scripts/test.ts` names the folder and looks afterwards that no secret stands in a log line.
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
