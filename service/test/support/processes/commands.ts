/** The commands of the program that do something, in the order of its help. */
import type { Command } from 'commander'

type NamedCommand = Readonly<{ path: readonly string[]; command: Command }>

/** Returns the commands with work: those without others below them, and those with arguments of their own. */
export function commandsWithin(command: Command, before: readonly string[] = []): NamedCommand[] {
  const path = [...before, command.name()]
  const below = command.commands.flatMap((child) => commandsWithin(child, path))
  return below.length === 0 || command.registeredArguments.length > 0 ? [{ path, command }, ...below] : below
}
