/** The program `touchstone`. */
import type { Command } from 'commander'
import { runProgram } from './run-program.ts'
import { runBareFromCli, runFromCli } from './session/session.ts'

/** Commands that open no session, each with the import of its own file. Loading all files takes most of a second. */
const local: Readonly<Record<string, () => Promise<Command>>> = {
  dev: async () => (await import('./dev/dev.ts')).devCommand(),
  serve: async () => (await import('./serve/serve.ts')).serveCommand(),
  verify: async () => (await import('./verify.ts')).verifyCommand(),
  prove: async () => (await import('./verify.ts')).proveCommand(),
  doctor: async () => (await import('./doctor/doctor.ts')).doctorCommand(),
  pay: async () => (await import('./payments/pay.ts')).payCommand(),
}

export function localCommands(): Promise<readonly Command[]> {
  return Promise.all(Object.values(local).map((load) => load()))
}

export async function runCli(): Promise<void> {
  await runProgram(await commandsFor(process.argv[2]))
}

/** Loads the command that the first argument names. Any other argument, such as `--help`, loads all commands. */
async function commandsFor(name = ''): Promise<readonly Command[]> {
  const load = Object.hasOwn(local, name) ? local[name] : undefined
  if (load !== undefined) return [await load()]
  const { storeCommands } = await import('./store-commands.ts')
  const print = (line: string) => void process.stdout.write(`${line}\n`)
  return [...(await localCommands()), ...storeCommands(runFromCli, print, runBareFromCli)]
}
