/** `touchstone asset activate | flag | resolve | recycle`: steps of the lifecycle (spec §3). */
import type { Command } from 'commander'
import { assetFlags, reportFlags, type Hex } from '@touchstone/verdict'
import { keccak256, stringToHex, zeroHash } from 'viem'
import { formatFlags } from './show.ts'
import { addWriteOptions, write, type WriteOptions } from './write.ts'
import { argument, flagBits, flagNames } from '../session/arguments.ts'
import { defineCommand, inSession } from '../session/command.ts'
import { chainOf, CommandError, type RunWork, type Session } from '../session/session.ts'

type FlagOptions = WriteOptions & { reason: number | 'all'; note?: string }

export function activateCommand(run: RunWork): Command {
  return step('activate', 'Releases a bound asset after quality control: it may be claimed from now on.', run)
}

export function recycleCommand(run: RunWork): Command {
  const description =
    'Ends the life of an asset for ever. Only its owner can recycle a claimed one, and only the authority a flagged one.'
  return step('recycle', description, run)
}

function step(kind: 'activate' | 'recycle', description: string, run: RunWork): Command {
  const command = defineCommand(kind, description, { examples: [`touchstone asset ${kind} 7 --dry-run`] })
  return addWriteOptions(command.argument('<id>', 'token id of the asset', argument.tokenId)).action(
    inSession(run, async (session, tokenId: bigint, options: WriteOptions) => {
      return (await write(session, { kind, tokenId }, options, { change: `${kind} asset ${tokenId}`, tokenId })).exit
    }),
  )
}

export function flagCommand(run: RunWork): Command {
  const description = 'Flags an asset: every tap and every verdict says so from the next block on.'
  return flagStep('flag', description, run, "--reason stolen --note 'Police report 2026-1187'").requiredOption(
    '--reason <reasons>',
    `${flagNames.join(', ')}; several separated by commas`,
    flagBits,
  )
}

export function resolveCommand(run: RunWork): Command {
  const description = 'Takes flags back. With the last report the asset returns to the state it had.'
  return flagStep('resolve', description, run, '--reason stolen').requiredOption(
    '--reason <reasons>',
    `${flagNames.join(', ')}; or all`,
    (text) => (text === 'all' ? text : flagBits(text)),
  )
}

function flagStep(kind: 'flag' | 'resolve', description: string, run: RunWork, example: string): Command {
  const command = defineCommand(kind, description, { examples: [`touchstone asset ${kind} 7 ${example}`] })
    .argument('<id>', 'token id of the asset', argument.tokenId)
    .option('--note <text>', 'stored as its hash on chain: proves later that this note was the reason', argument.note)
  return addWriteOptions(command).action(
    inSession(run, (session, tokenId: bigint, options: FlagOptions) => changeFlags(session, kind, tokenId, options)),
  )
}

async function changeFlags(
  session: Session,
  kind: 'flag' | 'resolve',
  tokenId: bigint,
  options: FlagOptions,
): Promise<number> {
  const { reason, note } = options
  const bits = reason === 'all' ? await readReports(session, tokenId) : reason
  const hasTamper = (bits & assetFlags.TAMPER) !== 0
  if (hasTamper && bits !== assetFlags.TAMPER)
    throw new CommandError('Only the attester can report tamper: give tamper in a command of its own.')
  const reasonHash: Hex = note === undefined ? zeroHash : keccak256(stringToHex(note))
  const change = `${kind === 'flag' ? 'flag' : 'resolve the flags of'} asset ${tokenId}: ${formatFlags(bits)}`
  const written = await write(session, { kind, tokenId, bits, reasonHash }, options, { change, tokenId })
  if (written.confirmed !== undefined && note !== undefined)
    session.io.out(`note         ${reasonHash}  (keccak256 of the note; keep the text)`)
  return written.exit
}

async function readReports(session: Session, tokenId: bigint): Promise<number> {
  const { record } = (await chainOf(session).reader.read(tokenId)).asset
  const bits = record.flags & reportFlags
  if (bits === 0) throw new CommandError(`Asset ${tokenId} has no reports.`)
  return bits
}
