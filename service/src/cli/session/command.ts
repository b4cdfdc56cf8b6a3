/** Definition of commands: description, help with examples, and the work that runs in a session. */
import { assetFlags, type Hex, parseTokenId, untrustedOf } from '@touchstone/verdict'
import { Command, InvalidArgumentError } from 'commander'
import { appendAudit, type AuditBody, auditText, localActor } from '../../db/audit.ts'
import { reasonOf } from '../../lib/errors.ts'
import { type CommandRight, commandRights } from './command-rights.ts'
import type { RunWork, Session } from './session.ts'
import { parseAddress } from '../../domain/address.ts'
import { parseGtin } from '../../domain/gs1/gtin.ts'
import { isRegistrableSerial } from '../../domain/gs1/serial.ts'
import { parseTagUid } from '../../domain/tag-uid.ts'
import { isIdempotencyKey } from '../../domain/idempotency-key.ts'
import { batchIdPattern } from '../../tap/keys/batch.ts'
import { type MacInput, macInputs } from '../../tap/sun/sun.ts'

export type Help = { readonly notes?: string; readonly examples: readonly string[] }

/** Defines a command whose help ends with notes, exit codes and examples. Notes of a command with other exit codes name them. */
export function defineCommand(name: string, description: string, { notes = '', examples }: Help): Command {
  const parts = [
    ...(notes === '' ? [] : [notes]),
    ...(/exit code/i.test(notes) ? [] : ['Exit code 0: done; 1: not done, and one sentence on stderr says why.']),
    `${examples.length === 1 ? 'Example' : 'Examples'}:\n${examples.map((line) => `  ${line}`).join('\n')}`,
  ]
  return new Command(name).description(description).addHelpText('after', `\n${parts.join('\n\n')}`)
}

export function defineGroup(name: string, description: string, commands: readonly Command[], notes?: string): Command {
  const group = new Command(name).description(description)
  for (const command of commands) group.addCommand(command)
  return notes === undefined ? group : group.addHelpText('after', `\n${notes}`)
}

/**
 * Makes the action of a command: `work` with a session, then the command's arguments and options. What the command did, or failed to do,
 * is noted in the audit trail as its right says. Throws for a command that is in no list of `command-rights.ts`.
 */
export function inSession<Args extends unknown[]>(
  run: RunWork,
  work: (session: Session, ...args: Args) => Promise<number | void>,
): (...args: Args) => Promise<void> {
  return async (...args) => {
    const [name, right] = rightOf(args.at(-1))
    await run(async (session) => {
      if (right === 'reads') return work(session, ...args)
      const isDryRun = args.some((arg) => (arg as { dryRun?: unknown } | null)?.dryRun === true)
      const entry = { act: `command ${name}`, subject: subjectOf(args[0]) } as const
      const note = (body: Omit<AuditBody, 'who'>) => appendAudit(session.store.database, auditText(localActor(), body))
      let exit: number | void
      try {
        exit = await work(session, ...args)
      } catch (error) {
        // The error of the command is what its user must see, whatever becomes of the entry.
        if (!isDryRun) await note({ ...entry, outcome: 'REFUSED', because: reasonOf(error) }).catch(() => {})
        throw error
      }
      if (right === 'noted' && !isDryRun)
        await note({
          ...entry,
          ...(exit ? { outcome: 'FAILED', because: 'Not all of it was done.' } : { outcome: 'DONE' }),
        })
      return exit
    })
  }
}

/** Returns what a command is about: an id or a file's name. An address of a tap has a cryptogram, which no entry may keep. */
export function subjectOf(argument: unknown): string {
  if (typeof argument === 'bigint') return String(argument)
  return typeof argument === 'string' && /^[\w.-]{1,100}$/.test(argument) ? argument : ''
}

/** Returns the words of a command after the program's name, and its right. */
function rightOf(command: unknown): readonly [name: string, right: CommandRight] {
  const words: string[] = []
  for (let at = command instanceof Command ? command : null; at?.parent; at = at.parent) words.unshift(at.name())
  const name = words.join(' ')
  const right = commandRights[name]
  if (right === undefined) throw new Error(`touchstone ${name} is in no list of commands.`)
  return [name, right]
}

/** Parses a UID, or returns null. There may be `:` or `-` between bytes. */
export function parseUid(text: string): Uint8Array | null {
  return text.length > 20 ? null : parseTagUid(text.replaceAll(/[:-]/g, ''))
}

/** Parses a GTIN of 8, 12, 13 or 14 digits to 14 digits, or returns null when it is wrong. */
export function parseAnyGtin(text: string): string | null {
  const parsed = /^(?:\d{8}|\d{12,14})$/.test(text) ? parseGtin(text.padStart(14, '0')) : null
  return parsed?.ok === true ? parsed.gtin : null
}

export const uidSentence = 'A UID has 14 hex digits and begins with 04, such as 04DE5F1EACC040.'
export const gtinSentence = 'A GTIN has 8, 12, 13 or 14 digits and a right check digit.'
export const serialSentence = 'A serial has 1 to 20 letters, digits or signs of GS1’s set, such as M41-002208.'

/** Makes the parser of an argument that is legal as it is. `sentence` says what is. */
export const textArgument =
  (isLegal: (text: string) => boolean, sentence: string) =>
  (text: string): string =>
    isLegal(text) ? text : rejectArgument(sentence)

/** Makes the parser of an argument that may be repeated. */
export const repeated =
  <T>(parse: (text: string) => T) =>
  (text: string, before: readonly T[] = []): readonly T[] => [...before, parse(text)]

export const argument = {
  tokenId: (text: string): bigint => parseTokenId(text) ?? rejectArgument('A token id is a decimal number, such as 7.'),
  batchId: textArgument((text) => batchIdPattern.test(text), 'A batch id has 1 to 64 of A-Z a-z 0-9 . _ and -.'),
  epoch: (text: string): number =>
    /^\d{1,10}$/.test(text) && Number(text) <= 0x7fffffff ? Number(text) : rejectArgument('An epoch is 0, 1, 2 …'),
  count:
    (max: number, sentence = `It is a number from 1 to ${max}.`) =>
    (text: string): number =>
      /^\d{1,9}$/.test(text) && Number(text) >= 1 && Number(text) <= max ? Number(text) : rejectArgument(sentence),
  /** Adds a brand. Brands are compared with those of products, which are stored cleaned (spec §2.3). */
  brands: (text: string, before: readonly string[] = []): string[] => {
    const brands = [...new Set([...before, text])]
    if (untrustedOf({ brand: text }).brand !== text)
      return rejectArgument('A brand has 1 to 200 characters that can be seen, without spaces at its ends.')
    return brands.length > 20 ? rejectArgument('There are 20 brands at most.') : brands
  },
  uid: (text: string): Uint8Array => parseUid(text) ?? rejectArgument(uidSentence),
  /** Parses up to 1000, separated by commas, without duplicates. */
  uids: (text: string): Uint8Array[] => {
    const words = [...new Set(text.split(',').map((word) => word.trim().toUpperCase().replaceAll(/[:-]/g, '')))]
    return words.length > 1_000 ? rejectArgument('At most 1000 UIDs fit into one call.') : words.map(argument.uid)
  },
  address: (text: string): Hex =>
    parseAddress(text) ?? rejectArgument('An address is 0x and 40 hex digits, its checksum right.'),
  hash: (text: string): Hex =>
    /^0x[0-9a-fA-F]{64}$/.test(text) ? (text.toLowerCase() as Hex) : rejectArgument('A hash is 0x and 64 hex digits.'),
  slot: (text: string): bigint =>
    parseTokenId(text) ?? rejectArgument('A storage slot is a decimal number, such as 3.'),
  signature: (text: string): Hex =>
    /^0x(?:[0-9a-fA-F]{2}){1,4096}$/.test(text) ? (text as Hex) : rejectArgument('A signature is 0x and hex digits.'),
  macInput: (text: string): MacInput =>
    macInputs.find((known) => known === text) ?? rejectArgument(`It is one of ${macInputs.join(', ')}.`),
  gtin: (text: string): string => parseAnyGtin(text) ?? rejectArgument(gtinSentence),
  serial: textArgument(isRegistrableSerial, serialSentence),
  key: textArgument(isIdempotencyKey, 'A key has 1 to 100 printable ASCII characters.'),
  unixTime: (text: string): bigint =>
    /^\d{9,11}$/.test(text) ? BigInt(text) : rejectArgument('A deadline is in unix seconds, such as 1893456000.'),
  /** Parses a day or a moment of UTC to unix milliseconds. */
  time: (text: string): number => {
    const isTime = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?Z)?$/.test(text)
    const ms = isTime ? Date.parse(text) : NaN
    const isReal = !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text.slice(0, 10))
    return !isReal ? rejectArgument('A time is a day such as 2026-01-31, or 2026-01-31T12:00:00Z, in UTC.') : ms
  },
  /** Parses as `time` does, and takes no time in the future. */
  pastTime: (text: string): number => {
    const ms = argument.time(text)
    return ms >= 0 && ms <= Date.now() ? ms : rejectArgument('Give a time in the past, such as 2026-11-20T08:00:00Z.')
  },
  note: textArgument((text) => text.length <= 1_000 && text.isWellFormed(), 'A note has at most 1000 characters.'),
  tapUrl: textArgument((text) => URL.canParse(text), 'It is a URL, in quotes.'),
} as const

export const toFlagArgument = (name: string): string => name.toLowerCase().replace('_', '-')

export const flagNames = Object.keys(assetFlags).map(toFlagArgument)

/** Parses one or several reasons, separated by commas, to flag bits. */
export function flagBits(text: string): number {
  const bits = text.split(',').map((word) => {
    const name = word.trim().toUpperCase().replace('-', '_')
    return Object.hasOwn(assetFlags, name) ? assetFlags[name as keyof typeof assetFlags] : rejectArgument(flagSentence)
  })
  return bits.reduce((all, bit) => all | bit, 0)
}

const flagSentence = `A reason is one of ${flagNames.join(', ')}.`

/** Throws the error of an argument; commander puts the name of the argument before the sentence. */
export function rejectArgument(sentence: string): never {
  throw new InvalidArgumentError(sentence)
}
