/** The output of commands: errors as their users read them, JSON for programs, tables. */
import { styleText } from 'node:util'
import type { Command } from 'commander'
import { ConfigError } from '../../app/config/config.ts'
import { reasonOf, ServiceError } from '../../lib/errors.ts'
import { bigintAsText } from '../../lib/json.ts'

/** Colours a text on a terminal that has colours; NO_COLOR, a pipe or a file gets none. */
export function coloured(colour: 'green' | 'red' | 'yellow', text: string): string {
  const { stdout } = process
  return stdout.isTTY && stdout.hasColors() ? styleText(colour, text, { validateStream: false }) : text
}

/** The command cannot be done. The message is one sentence for the user. */
export class CommandError extends Error {}

/** Throws a CommandError when the command is interrupted. The caller has changed nothing, or what it did is undone. */
export function assertNotInterrupted({ aborted }: AbortSignal): void {
  if (aborted) throw new CommandError('The command was interrupted. Nothing was changed.')
}

/** Matches what moves a cursor, sets a title or reorders text. Errors repeat names and cells of files that others wrote. */
const invisible = /[[\p{Cc}\p{Cf}]--[\n\t]]/gv

/** Formats an error as one sentence. The causes of an expected error are left out. */
export function formatError(error: unknown): string {
  const { code } = (error ?? {}) as NodeJS.ErrnoException
  if (code === 'EMFILE' || code === 'ENFILE')
    return `Too many files are open (${code}). Raise the limit: ulimit -n in a shell, LimitNOFILE in a unit of systemd.`
  const isExpected = error instanceof CommandError || error instanceof ConfigError || error instanceof ServiceError
  return isExpected ? error.message.replaceAll(invisible, '\ufffd') : reasonOf(error)
}

/** Formats a result for a program. Amounts and ids that a JSON number cannot hold are text. */
export function formatJson(value: unknown, indent = 2): string {
  return JSON.stringify(value, bigintAsText, indent)
}

/** Prints rows below a head. `right` names the columns that are aligned to the right. */
export function printTable(
  print: (line: string) => void,
  head: readonly string[],
  rows: readonly (readonly string[])[],
  right: ReadonlySet<string> = new Set(),
): void {
  const widths = head.map((name, column) => Math.max(name.length, ...rows.map((row) => row[column]?.length ?? 0)))
  for (const cells of [head, ...rows]) {
    const padded = cells.map((cell, column) => {
      const width = widths[column] ?? 0
      return right.has(head[column] ?? '') ? cell.padStart(width) : cell.padEnd(width)
    })
    print(padded.join('  ').trimEnd())
  }
}

export function forEachCommand(command: Command, visit: (command: Command) => void): void {
  visit(command)
  for (const child of command.commands) forEachCommand(child, visit)
}

/** Makes the function that writes an error of commander as one line. It adds what the command takes there. */
export function outputErrorOf(command: Command): (text: string, write: (text: string) => void) => void {
  return (text, write) => {
    const sentence = text
      .replace(/^error: /, 'touchstone: ')
      .trim()
      .replaceAll('\n', ' ')
    const wanted = wantedBy(command, sentence)
    write(wanted === null ? `${sentence}\n` : `${sentence.replace(/\.$/, '')}: ${wanted}.\n`)
  }
}

/** Returns what the missing argument or option is, or where to look. It returns null where the error says enough. */
function wantedBy(command: Command, sentence: string): string | null {
  const [, argument] = /missing required argument '(.*?)'/.exec(sentence) ?? []
  if (argument !== undefined)
    return command.registeredArguments.find((one) => one.name() === argument)?.description ?? null
  const [, option] = /required option '(.*?)' not specified/.exec(sentence) ?? []
  if (option !== undefined) return command.options.find(({ flags }) => flags === option)?.description ?? null
  if (sentence.includes('(Did you mean')) return null
  if (/unknown option/.test(sentence) && ['dev', 'serve'].includes(command.name()))
    return 'settings are variables, such as VERIFICATION_PORT, and touchstone serve --help lists them'
  if (/unknown command/.test(sentence) && command.parent === null)
    return 'touchstone dev starts a demonstration, touchstone serve a service, and touchstone --help lists all commands'
  return null
}
