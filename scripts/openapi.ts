/**
 * Generates `service/openapi.json` from the tables and schemas of `service/src/agents/openapi*.ts`; `--check` only says whether the
 * file is what they make, and lints it (redocly, recommended rules).
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { openApiDocument } from '../service/src/agents/openapi.ts'
import { openApiFile } from '../service/src/agents/openapi-file.ts'

const made = `${JSON.stringify(openApiDocument(), null, 2)}\n`
const file = fileURLToPath(openApiFile)

if (!process.argv.includes('--check')) {
  writeFileSync(file, made)
  console.log(`${file}: ${made.length} bytes`)
} else {
  if (readFileSync(file, 'utf8') !== made) {
    console.error('service/openapi.json is not what the schemas make. Run: node scripts/openapi.ts')
    process.exit(1)
  }
  const redocly = fileURLToPath(import.meta.resolve('@redocly/cli/bin/cli.js'))
  execFileSync(process.execPath, [redocly, 'lint', file, '--extends=recommended', '--max-problems=50'], {
    env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
    stdio: 'inherit',
  })
}
