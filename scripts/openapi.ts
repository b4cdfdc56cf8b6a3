/** Lints `service/openapi.yaml` with the recommended rules of redocly. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const file = fileURLToPath(new URL('../service/openapi.yaml', import.meta.url))
const redocly = fileURLToPath(import.meta.resolve('@redocly/cli/bin/cli.js'))
const { status } = spawnSync(process.execPath, [redocly, 'lint', file, '--extends=recommended', '--max-problems=50'], {
  env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
  stdio: 'inherit',
})
process.exitCode = status ?? 1
