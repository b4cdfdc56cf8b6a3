/** The program `touchstone`. */
import type { Command } from 'commander'
import { runProgram } from './run-program.ts'

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

/** Loads what the first argument names: a command, a group, or nothing for the version. Any other argument loads all. */
async function commandsFor(name = ''): Promise<readonly Command[]> {
  if (name === '--version' || name === '-V') return []
  const load = Object.hasOwn(local, name) ? local[name] : undefined
  if (load !== undefined) return [await load()]
  const { isStoreGroup, loadStoreCommands } = await import('./store-commands.ts')
  const { runBareFromCli, runFromCli } = await import('./session/session.ts')
  const isGroup = isStoreGroup(name)
  const makeStoreCommands = await loadStoreCommands(isGroup ? name : undefined)
  const print = (line: string) => void process.stdout.write(`${line}\n`)
  return [...(isGroup ? [] : await localCommands()), ...makeStoreCommands(runFromCli, print, runBareFromCli)]
}
