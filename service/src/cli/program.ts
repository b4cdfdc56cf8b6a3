/** The program `touchstone`. A command that cannot be done ends with one sentence on stderr and exit code 1. */
import { Command } from 'commander'
import { programVersion } from '../lib/version.ts'
import { forEachCommand, formatError, outputError, runBareFromCli, runFromCli } from './session/session.ts'

/** Commands that open no session, each with the import of its own file: loading all files takes most of a second. */
const local: Readonly<Record<string, () => Promise<Command>>> = {
  dev: async () => (await import('./dev/dev.ts')).devCommand(),
  serve: async () => (await import('./serve/serve.ts')).serveCommand(),
  verify: async () => (await import('./verify.ts')).verifyCommand(),
  pay: async () => (await import('./payments/pay.ts')).payCommand(),
}

export async function runCli(): Promise<void> {
  const program = new Command('touchstone')
    .description('Verifies physical products: an NFC tag, a token on a public chain, an answer anyone can check.')
    .version(programVersion)
  for (const command of await commandsFor(process.argv[2])) program.addCommand(command)
  forEachCommand(program, (command) => command.configureOutput({ outputError }))
  try {
    await program.parseAsync()
  } catch (error) {
    process.stderr.write(`touchstone: ${formatError(error)}\n`)
    process.exitCode = 1
  }
}

/** Loads the command that the first argument names. Any other argument, such as `--help`, loads all commands. */
async function commandsFor(name = ''): Promise<readonly Command[]> {
  const load = Object.hasOwn(local, name) ? local[name] : undefined
  if (load !== undefined) return [await load()]
  const { storeCommands } = await import('./store-commands.ts')
  const print = (line: string) => void process.stdout.write(`${line}\n`)
  return [
    ...(await Promise.all(Object.values(local).map((each) => each()))),
    ...storeCommands(runFromCli, print, runBareFromCli),
  ]
}
