#!/usr/bin/env node
/** Starts the program. The compile cache beside the packages must be on before anything is imported; it halves the start of a command. */
import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'

enableCompileCache(fileURLToPath(new URL('../../node_modules/.cache/touchstone', import.meta.url)))
// A reload that comes while the program is loaded must not end a service (systemd sends it to whatever runs).
if (process.argv[2] === 'serve') process.on('SIGHUP', () => {})
for (const stream of [process.stdout, process.stderr])
  stream.on('error', ({ code }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE') return // a reader that closes the pipe (`| head`) does not end the command
    if (stream === process.stdout)
      process.stderr.write(`touchstone: The output cannot be written (${code}). What the command changed stays so.\n`)
    process.exit(1)
  })
const { forwardToService } = await import('./cli/session/control-client.ts')
if (!(await forwardToService(process.argv.slice(2)))) {
  const { runCli } = await import('./cli/program.ts')
  await runCli()
}
