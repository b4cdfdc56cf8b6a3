/** The program `touchstone`. A command that cannot be done ends with one sentence on stderr and exit code 1. */
import { Command } from 'commander'
import { programVersion } from '../lib/version.ts'
import { devCommand } from './dev/dev.ts'
import { payCommand } from './payments/pay.ts'
import { serveCommand } from './serve/serve.ts'
import { forEachCommand, formatError, outputError, runBareFromCli, runFromCli } from './session/session.ts'
import { storeCommands } from './store-commands.ts'
import { verifyCommand } from './verify.ts'

export async function runCli(): Promise<void> {
  const program = new Command('touchstone')
    .description('Verifies physical products: an NFC tag, a token on a public chain, an answer anyone can check.')
    .version(programVersion)
  const print = (line: string) => void process.stdout.write(`${line}\n`)
  const local = [devCommand(), serveCommand(), verifyCommand(), payCommand()]
  for (const command of [...local, ...storeCommands(runFromCli, print, runBareFromCli)]) program.addCommand(command)
  forEachCommand(program, (command) => command.configureOutput({ outputError }))
  try {
    await program.parseAsync()
  } catch (error) {
    process.stderr.write(`touchstone: ${formatError(error)}\n`)
    process.exitCode = 1
  }
}
