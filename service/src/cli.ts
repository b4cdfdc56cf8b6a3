#!/usr/bin/env node
/** Starts the program. The compile cache beside the packages must be on before anything is imported; it halves the start of a command. */
import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'

enableCompileCache(fileURLToPath(new URL('../../node_modules/.cache/touchstone', import.meta.url)))
const isServing = process.argv[2] === 'serve'
// A reload that comes while the program is loaded must not end a service (systemd sends it to whatever runs).
if (isServing) process.on('SIGHUP', () => {})
for (const stream of [process.stdout, process.stderr])
  stream.on('error', ({ code }: NodeJS.ErrnoException) => {
    // Neither a reader that closes the pipe (`| head`) nor a log on a full disk ends the work.
    if (code === 'EPIPE' || isServing) return
    if (stream === process.stdout)
      process.stderr.write(`touchstone: The output cannot be written (${code}). What the command changed stays so.\n`)
    process.exit(1)
  })
const { forwardToService } = await import('./cli/session/control-client.ts')
if (!(await forwardToService(process.argv.slice(2)))) {
  const { runCli } = await import('./cli/program.ts')
  await runCli()
}
