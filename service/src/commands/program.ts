/** The program `touchstone`: argv to commands. Whatever cannot be done ends with one sentence on stderr and exit code 1. */
import { Command } from 'commander'
import { runBareFromCli } from './bare-command.ts'
import { devCommand } from './dev.ts'
import { payCommand } from './pay.ts'
import { serveCommand } from './serve.ts'
import { outputError, runFromCli, sentenceOf } from './store-command.ts'
import { storeCommands } from './store-program.ts'
import { verifyCommand } from './verify.ts'
import { programVersion } from '../version.ts'

export async function runCli(): Promise<void> {
  const program = new Command('touchstone')
    .description('Verifies physical products: an NFC tag, a token on a public chain, an answer anyone can check.')
    .version(programVersion)
  const print = (line: string) => void process.stdout.write(`${line}\n`)
  const commands = [
    devCommand(),
    serveCommand(),
    verifyCommand(),
    payCommand(),
    ...storeCommands(runFromCli, print, runBareFromCli),
  ]
  for (const command of commands) program.addCommand(command)
  sayErrorsAlike(program)
  for (const stream of [process.stdout, process.stderr]) stream.on('error', unlessUnread)
  try {
    await program.parseAsync()
  } catch (error) {
    process.stderr.write(`touchstone: ${sentenceOf(error)}\n`)
    process.exitCode = 1
  }
}

function sayErrorsAlike(command: Command): void {
  command.configureOutput({ outputError })
  for (const child of command.commands) sayErrorsAlike(child)
}

/** Whoever reads may stop reading (`| head`); the command is carried out all the same. */
function unlessUnread(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
}
