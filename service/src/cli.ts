#!/usr/bin/env node
/**
 * `touchstone`: argv to commands. Whatever cannot be done ends with one sentence on stderr and exit code 1.
 */
import { Command } from 'commander'
import { devCommand } from './commands/dev.ts'
import { serveCommand } from './commands/serve.ts'
import { verifyCommand } from './commands/verify.ts'
import { reasonOf } from './errors.ts'

const program = new Command('touchstone')
  .description('Verifies physical products: an NFC tag, a token on a public chain, an answer anyone can check.')
  .version('0.1.0')
  .showHelpAfterError('(add --help for the options)')
  .addCommand(devCommand())
  .addCommand(serveCommand())
  .addCommand(verifyCommand())

try {
  await program.parseAsync()
} catch (error) {
  process.stderr.write(`touchstone: ${reasonOf(error)}\n`)
  process.exitCode = 1
}
