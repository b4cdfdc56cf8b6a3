/** `touchstone asset …`: the lifecycle of an asset on chain, from minting to recycling (spec §3). Steps with one command each are here. */
import { assetFlags, type Hex, reportFlags } from '@touchstone/verdict'
import type { Command } from 'commander'
import { keccak256, stringToHex } from 'viem/utils'
import { zeroHash } from '../../domain/chain.ts'
import { localActor } from '../../db/audit.ts'
import { toHex } from '../../tap/bytes.ts'
import { bindingTerms, mayBind, registerBound } from '../../tap/binding.ts'
import { argument, defineCommand, defineGroup, flagBits, flagNames, inSession } from '../session/command.ts'
import { operationKeyOf } from '../../access/approvals/store.ts'
import { askForApproval } from '../approval.ts'
import { chainOf, retryChain, tagHashOf, type RunWork, type Session } from '../session/session.ts'
import { CommandError } from '../session/output.ts'
import { claimCommand } from './claim.ts'
import { metadataCommand } from './metadata.ts'
import { mintCommand } from './mint.ts'
import { formatFlags, historyCommand, showCommand } from './show.ts'
import { addWriteOptions, itemOption, previousRequest, write, type WriteFlags } from './write.ts'

export function assetCommand(run: RunWork): Command {
  return defineGroup(
    'asset',
    'Assets on chain: mint, correct, bind, activate, claim, flag, resolve, recycle, show.',
    [
      mintCommand(run),
      metadataCommand(run),
      bindCommand(run),
      stepCommand(run, 'activate', 'Releases a bound asset after quality control: it may be claimed from now on.'),
      claimCommand(run),
      flagCommand(run, 'flag', {
        description:
          'Flags an asset: every tap and every verdict says so from the next block on. Tamper is on its page only.',
        example: "--reason stolen --note 'Police report 2026-1187'",
        reasons: `${flagNames.join(', ')}; several separated by commas`,
      }),
      flagCommand(run, 'resolve', {
        description: 'Takes flags back. With the last report the asset returns to the state it had.',
        example: '--reason stolen',
        reasons: `${flagNames.join(', ')}; or all`,
      }),
      stepCommand(
        run,
        'recycle',
        'Ends the life of an asset for ever. Only its owner can recycle a claimed one, and only the authority a flagged one.',
      ),
      stepCommand(
        run,
        'announceRecycle',
        'Announces that a flagged asset which was claimed will be recycled: recycle works 30 days later.',
      ),
      showCommand(run),
      historyCommand(run),
    ],
    `NONE → MINTED → BOUND → ACTIVATED → CLAIMED; FLAGGED from any of the last three and back; RECYCLED is the end.
Every command that writes has --dry-run, prints transaction, block and new state, and takes an idempotency --key.`,
  )
}

type BindOptions = WriteFlags & { uid: Uint8Array; batch: string; gtin?: string; serial?: string }

function bindCommand(run: RunWork): Command {
  const command = defineCommand('bind', 'Binds a tag to a minted asset. A tag serves one asset for ever.', {
    examples: [
      'touchstone asset bind 7 --uid 04DE5F1EACC040 --batch 2026-watches --gtin 09520001000010 --serial M41-002209',
    ],
  })
    .argument('<id>', 'token id of the asset', argument.tokenId)
    .requiredOption('--uid <uid>', 'UID of the tag', argument.uid)
    .requiredOption('--batch <id>', 'batch of the tag', argument.batchId)
    .option('--gtin <gtin>', 'GTIN of the item, together with --serial', argument.gtin)
    .option('--serial <serial>', 'serial number of the item', argument.serial)
  return addWriteOptions(command).action(inSession(run, bind))
}

async function bind(session: Session, tokenId: bigint, options: BindOptions): Promise<number> {
  const { tags } = session.store
  const { uid, batch: batchId, gtin, serial } = options
  const item = itemOption({ gtin, serial })
  const tagHash = tagHashOf(session)
  const allowed = await mayBind(tags, chainOf(session).formerBinding, { tokenId, uid, batchId, item })
  if (!allowed.ok) {
    const hint = allowed.about === 'batch' ? ' See touchstone tag batch list.' : ''
    throw new CommandError(allowed.message + hint)
  }

  const change = `bind tag ${toHex(uid)} to asset ${tokenId} and register it`
  const request = { kind: 'bindTag', tokenId, tagHash: tagHash(uid) } as const
  const written = await write(session, request, options, change, bindingTerms({ batchId, item }))
  if (written.confirmed === undefined) return written.exit
  const binding = { tokenId, uid, batchId, item, epoch: allowed.epoch }
  const registered = await registerBound(tags, binding, localActor())
  if (typeof registered === 'object') throw new CommandError(registered.refusal)
  if (options.json === true) return written.exit
  session.io.out(
    `tag          ${toHex(uid)}, batch ${batchId}${item === null ? '' : `, item ${item.gtin} ${item.serial}`}`,
  )
  return written.exit
}

const stepNames = { activate: 'activate', recycle: 'recycle', announceRecycle: 'announce-recycle' } as const
const changes = { activate: 'activate', recycle: 'recycle', announceRecycle: 'announce the recycling of' } as const

function stepCommand(run: RunWork, kind: keyof typeof stepNames, description: string): Command {
  const name = stepNames[kind]
  const command = defineCommand(name, description, { examples: [`touchstone asset ${name} 7 --dry-run`] })
  return addWriteOptions(command.argument('<id>', 'token id of the asset', argument.tokenId)).action(
    inSession(run, async (session, tokenId: bigint, options: WriteFlags) => {
      const change = `${changes[kind]} asset ${tokenId}`
      const isApproved = kind !== 'recycle' || !session.store.approvals.isRequired('recycle') || options.dryRun === true
      if (isApproved) return (await write(session, { kind, tokenId }, options, change)).exit
      return recycleByTwo(session, tokenId, options, change)
    }),
  )
}

/** Asks for the approval of a second key, or shows what became of the request under this key. */
async function recycleByTwo(
  session: Session,
  tokenId: bigint,
  { key, json }: WriteFlags,
  change: string,
): Promise<number> {
  const { writer, operations } = chainOf(session)
  const request = { kind: 'recycle', tokenId } as const
  const isDone = key !== undefined && (await operations.find(key)) !== undefined
  if (isDone) return (await write(session, request, { key, json }, change)).exit // from before APPROVALS named recycle
  const subject = tokenId.toString()
  const known = key === undefined ? null : await session.store.approvals.findByKey(key)
  if (known?.subject === subject && known.txHash !== null)
    return (await write(session, request, { key: operationKeyOf(known.id), json }, change)).exit
  const simulated = known === null ? await retryChain(session.io, () => writer.simulate(request)) : null
  if (simulated?.ok === false) throw new CommandError(simulated.message)
  return askForApproval(session, { act: 'recycle', subject, requestKey: key ?? null }, json)
}

type FlagOptions = WriteFlags & { reason: number | 'all'; note?: string }

function flagCommand(
  run: RunWork,
  kind: 'flag' | 'resolve',
  { description, example, reasons }: Readonly<Record<'description' | 'example' | 'reasons', string>>,
): Command {
  const command = defineCommand(kind, description, { examples: [`touchstone asset ${kind} 7 ${example}`] })
    .argument('<id>', 'token id of the asset', argument.tokenId)
    .option('--note <text>', 'stored as its hash on chain: proves later that this note was the reason', argument.note)
  return addWriteOptions(command)
    .requiredOption('--reason <reasons>', reasons, (text) =>
      kind === 'resolve' && text === 'all' ? text : flagBits(text),
    )
    .action(
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
  const bits = reason === 'all' ? await readReports(session, tokenId, options) : reason
  const hasTamper = (bits & assetFlags.TAMPER) !== 0
  if (hasTamper && bits !== assetFlags.TAMPER)
    throw new CommandError('Only the attester can report tamper: give tamper in a command of its own.')
  const reasonHash: Hex = note === undefined ? zeroHash : keccak256(stringToHex(note))
  const change = `${kind === 'flag' ? 'flag' : 'resolve the flags of'} asset ${tokenId}: ${formatFlags(bits)}`
  const written = await write(session, { kind, tokenId, bits, reasonHash }, options, change)
  if (written.confirmed !== undefined && note !== undefined && options.json !== true)
    session.io.out(`note         ${reasonHash}  (keccak256 of the note; keep the text)`)
  return written.exit
}

/** Returns all reports of an asset. Under a key that was used before these are the reports that were resolved then. */
async function readReports(session: Session, tokenId: bigint, options: WriteFlags): Promise<number> {
  const sent = await previousRequest(session, options)
  if (sent?.kind === 'resolve' && sent.tokenId === tokenId) return sent.bits
  const { record } = (await chainOf(session).reader.read(tokenId)).asset
  const bits = record.flags & reportFlags
  if (bits === 0) throw new CommandError(`Asset ${tokenId} has no reports.`)
  return bits
}
