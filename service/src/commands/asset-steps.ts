/** `touchstone asset activate | flag | resolve | recycle`: steps of the lifecycle (spec §3). */
import { Command } from 'commander'
import { assetFlags, reportFlags, type Hex } from '@touchstone/verdict'
import { keccak256, stringToHex, zeroHash } from 'viem'
import { flagsText } from './asset-state.ts'
import { addWriteOptions, write, type WriteOptions } from './asset-write.ts'
import { argument, flagBits, flagNames } from './store-arguments.ts'
import { chainOf, CommandError, type RunWork, type Session } from './store-command.ts'

type FlagOptions = WriteOptions & { reason: number | 'all'; note?: string }

export function activateCommand(run: RunWork): Command {
  return step('activate', 'Releases a bound asset after quality control: it may be claimed from now on.', run)
}

export function recycleCommand(run: RunWork): Command {
  const sentence =
    'Ends the life of an asset for ever. A claimed one can only be recycled by its owner, a flagged one by the authority.'
  return step('recycle', sentence, run)
}

function step(kind: 'activate' | 'recycle', description: string, run: RunWork): Command {
  const command = new Command(kind)
    .description(description)
    .argument('<id>', 'token id of the asset', argument.tokenId)
    .addHelpText('after', `\nExample:\n  touchstone asset ${kind} 7 --dry-run`)
  return addWriteOptions(command).action((tokenId: bigint, options: WriteOptions) =>
    run(
      async (session) =>
        (await write(session, { kind, tokenId }, options, { change: `${kind} asset ${tokenId}`, tokenId })).exit,
    ),
  )
}

export function flagCommand(run: RunWork): Command {
  return flagLike('flag', 'Flags an asset: every tap and every verdict says so from the next block on.', run)
    .requiredOption('--reason <reasons>', `${flagNames.join(', ')}; several separated by commas`, flagBits)
    .addHelpText('after', "\nExample:\n  touchstone asset flag 7 --reason stolen --note 'Police report 2026-1187'")
}

export function resolveCommand(run: RunWork): Command {
  return flagLike('resolve', 'Takes flags back. With the last report the asset returns to the state it had.', run)
    .requiredOption('--reason <reasons>', `${flagNames.join(', ')}; or all`, (text) =>
      text === 'all' ? text : flagBits(text),
    )
    .addHelpText('after', '\nExample:\n  touchstone asset resolve 7 --reason stolen')
}

function flagLike(kind: 'flag' | 'resolve', description: string, run: RunWork): Command {
  const command = new Command(kind)
    .description(description)
    .argument('<id>', 'token id of the asset', argument.tokenId)
    .option('--note <text>', 'kept as its hash on chain: shows later that this note was the reason', argument.note)
  return addWriteOptions(command).action((tokenId: bigint, options: FlagOptions) =>
    run((session) => changeFlags(session, kind, tokenId, options)),
  )
}

async function changeFlags(
  session: Session,
  kind: 'flag' | 'resolve',
  tokenId: bigint,
  options: FlagOptions,
): Promise<number> {
  const { reason, note } = options
  const bits = reason === 'all' ? await reportsOf(session, tokenId) : reason
  const hasTamper = (bits & assetFlags.TAMPER) !== 0
  if (hasTamper && bits !== assetFlags.TAMPER)
    throw new CommandError(
      'tamper is the attester’s word, the others are reports: give tamper in a command of its own.',
    )
  const reasonHash: Hex = note === undefined ? zeroHash : keccak256(stringToHex(note))
  const change = `${kind === 'flag' ? 'flag' : 'resolve the flags of'} asset ${tokenId}: ${flagsText(bits)}`
  const written = await write(session, { kind, tokenId, bits, reasonHash }, options, { change, tokenId })
  if (written.confirmed !== undefined && note !== undefined)
    session.io.out(`note         ${reasonHash}  (keccak256 of the note; keep the text)`)
  return written.exit
}

async function reportsOf(session: Session, tokenId: bigint): Promise<number> {
  const { record } = (await chainOf(session).reader.read(tokenId)).asset
  const bits = record.flags & reportFlags
  if (bits === 0) throw new CommandError(`Asset ${tokenId} has no reports.`)
  return bits
}
