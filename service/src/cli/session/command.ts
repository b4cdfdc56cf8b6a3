/** Definition of commands: description, help with examples, and the work that runs in a session. */
import { Command } from 'commander'
import type { RunWork, Session } from './session.ts'

type Help = { readonly notes?: string; readonly examples: readonly string[] }

/** Defines a command whose help ends with notes and examples. */
export function defineCommand(name: string, description: string, { notes, examples }: Help): Command {
  const parts = [
    ...(notes === undefined ? [] : [notes]),
    `${examples.length === 1 ? 'Example' : 'Examples'}:\n${examples.map((line) => `  ${line}`).join('\n')}`,
  ]
  return new Command(name).description(description).addHelpText('after', `\n${parts.join('\n\n')}`)
}

/** Defines a command that only groups others. */
export function defineGroup(name: string, description: string, commands: readonly Command[], notes?: string): Command {
  const group = new Command(name).description(description)
  for (const command of commands) group.addCommand(command)
  return notes === undefined ? group : group.addHelpText('after', `\n${notes}`)
}

/** Makes the action of a command: `work` with a session, then the command's arguments and options. */
export function inSession<Args extends unknown[]>(
  run: RunWork,
  work: (session: Session, ...args: Args) => Promise<number | void>,
): (...args: Args) => Promise<void> {
  return (...args) => run((session) => work(session, ...args))
}
