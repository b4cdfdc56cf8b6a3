/** `touchstone asset history`: the events of an asset, from the index of the chain (spec §2.5, §3). */
import type { Command } from 'commander'
import { checksumAddress, lifecycleStates, type Hex } from '@touchstone/verdict'
import { eventKinds, type AssetEvent } from '../../domain/registry-event.ts'
import { formatFlags } from './show.ts'
import { catchUpWithHead } from '../chain-index.ts'
import { argument } from '../session/arguments.ts'
import { defineCommand, inSession } from '../session/command.ts'
import { chainOf, CommandError, type RunWork, type Session } from '../session/session.ts'

type Options = { accounts?: true }

export function historyCommand(run: RunWork): Command {
  return defineCommand('history', 'Lists the events of an asset, newest first, from the index.', {
    notes: 'The list is complete up to the block that it names.',
    examples: ['touchstone asset history 7'],
  })
    .argument('<id>', 'token id of the asset', argument.tokenId)
    .option('--accounts', 'include the addresses that took part, which are personal data')
    .action(inSession(run, history))
}

const maxEvents = 500

async function history(session: Session, tokenId: bigint, { accounts }: Options): Promise<void> {
  const { io } = session
  await catchUpWithHead(session)
  const indexed = await chainOf(session).historyRows.of(tokenId, 100_000)
  if (indexed === null)
    throw new CommandError('Nothing is indexed yet. Start the service, or run: touchstone index verify')
  const { cursor, rows } = indexed
  if (rows.length === 0) throw new CommandError(`Asset ${tokenId} does not exist up to block ${cursor.number}.`)
  for (const event of rows.toReversed().slice(0, maxEvents)) {
    const time = new Date(Number(event.timestamp) * 1_000).toISOString()
    io.out(`${time}  block ${event.blockNumber}  ${format(event, accounts === true)}  ${event.transactionHash}`)
  }
  io.out(
    rows.length > maxEvents
      ? `The newest ${maxEvents} of ${rows.length} events up to block ${cursor.number}.`
      : `${rows.length} events up to block ${cursor.number}, back to the minting.`,
  )
}

const names = new Map<number, string>(Object.entries(eventKinds).map(([name, kind]) => [kind, name]))

const dataNames: Readonly<Record<number, string>> = {
  [eventKinds.AssetMinted]: 'metadata',
  [eventKinds.TagBound]: 'tagHash',
  [eventKinds.FlagsChanged]: 'reasonHash',
  [eventKinds.MetadataHashSet]: 'metadataHash',
  [eventKinds.TransferInitiated]: 'messageHash',
}

function format(event: AssetEvent, withAccounts: boolean): string {
  const { kind, fromState, toState, flags, nonce, expiry, data } = event
  const account = (name: string, address: Hex | null) =>
    withAccounts && address !== null && !isZero(address) ? [`${name}=${checksumAddress(address)}`] : []
  return [
    names.get(kind) ?? 'Event',
    ...(fromState === null ? [] : [`from=${lifecycleStates[fromState] ?? fromState}`]),
    ...(toState === null ? [] : [`to=${lifecycleStates[toState] ?? toState}`]),
    ...(flags === null ? [] : [`flags=${formatFlags(flags) || 'none'}`]),
    ...account('actor', event.actor),
    ...account('from', event.from),
    ...account('to', event.to),
    ...(nonce === null ? [] : [`nonce=${nonce}`]),
    ...(expiry === null ? [] : [`expiry=${expiry}`]),
    ...(data === null || isZero(data) ? [] : [`${dataNames[kind] ?? 'data'}=${data}`]),
  ].join(' ')
}

function isZero(hex: Hex): boolean {
  return /^0x0*$/.test(hex)
}
