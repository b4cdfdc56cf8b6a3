#!/usr/bin/env node
/**
 * `touchstone`: argv to commands. Whatever cannot be done ends with one sentence on stderr and exit code 1.
 */
import { Command } from 'commander'
import { devCommand } from './commands/dev.ts'
import { serveCommand } from './commands/serve.ts'
import { outputError, runFromCli, sentenceOf } from './commands/store-command.ts'
import { storeCommands } from './commands/store-program.ts'
import { verifyCommand } from './commands/verify.ts'

const program = new Command('touchstone')
  .description('Verifies physical products: an NFC tag, a token on a public chain, an answer anyone can check.')
  .version('0.1.0')
const print = (line: string) => void process.stdout.write(`${line}\n`)
const commands = [devCommand(), serveCommand(), verifyCommand(), ...storeCommands(runFromCli, print)]
for (const command of commands) program.addCommand(command)
sayErrorsAlike(program)

try {
  await program.parseAsync()
} catch (error) {
  process.stderr.write(`touchstone: ${sentenceOf(error)}\n`)
  process.exitCode = 1
}

function sayErrorsAlike(command: Command): void {
  command.configureOutput({ outputError })
  for (const child of command.commands) sayErrorsAlike(child)
}
