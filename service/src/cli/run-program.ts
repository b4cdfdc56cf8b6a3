/** Parses the command line of this process. A command that cannot be done ends with one sentence on stderr and exit code 1. */
import { Command } from 'commander'
import { programVersion } from '../lib/version.ts'
import { completionCommand } from './completion.ts'
import { forEachCommand, formatError, outputErrorOf } from './session/output.ts'

export async function runProgram(commands: readonly Command[]): Promise<void> {
  const program = new Command('touchstone')
    .description('Verifies physical products: an NFC tag, a token on a public chain, an answer anyone can check.')
    .version(programVersion)
  for (const command of [...commands, completionCommand(program)]) program.addCommand(command)
  forEachCommand(program, (command) => command.configureOutput({ outputError: outputErrorOf(command) }))
  try {
    await program.parseAsync()
  } catch (error) {
    process.stderr.write(`touchstone: ${formatError(error)}\n`)
    process.exitCode = 1
  }
}
