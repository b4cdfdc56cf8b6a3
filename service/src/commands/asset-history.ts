/** `touchstone asset history`: what happened to an asset, from the index of the chain's events (spec §2.5, §3). */
import { Command } from 'commander'
import { checksumAddress, lifecycleStates, type Hex } from '@touchstone/verdict'
import { kinds, type IndexedEvent } from '../store/index-events.ts'
import { flagsText } from './asset-state.ts'
import { atTheHead } from './index-progress.ts'
import { argument } from './store-arguments.ts'
import { chainOf, CommandError, type RunWork, type Session } from './store-command.ts'

type Options = { accounts?: true }

export function historyCommand(run: RunWork): Command {
  return new Command('history')
    .description('Lists the events of an asset, newest first, from the index.')
    .argument('<id>', 'token id of the asset', argument.tokenId)
    .option('--accounts', 'with the addresses that took part, which are personal data')
    .addHelpText(
      'after',
      '\nThe list is complete up to the block that it names.\n\nExample:\n  touchstone asset history 7',
    )
    .action((id: bigint, options: Options) => run((session) => history(session, id, options)))
}

const mostEvents = 500

async function history(session: Session, tokenId: bigint, { accounts }: Options): Promise<void> {
  const { io } = session
  await atTheHead(session)
  const indexed = await chainOf(session).historyRows.of(tokenId, 100_000)
  if (indexed === null)
    throw new CommandError('Nothing is indexed yet. Start the service, or run: touchstone index verify')
  const { cursor, rows } = indexed
  if (rows.length === 0) throw new CommandError(`Asset ${tokenId} does not exist up to block ${cursor.number}.`)
  for (const event of rows.toReversed().slice(0, mostEvents)) {
    const time = new Date(Number(event.timestamp) * 1_000).toISOString()
    io.out(`${time}  block ${event.blockNumber}  ${textOf(event, accounts === true)}  ${event.transactionHash}`)
  }
  io.out(
    rows.length > mostEvents
      ? `The newest ${mostEvents} of ${rows.length} events up to block ${cursor.number}.`
      : `${rows.length} events up to block ${cursor.number}, back to the minting.`,
  )
}

const names: Readonly<Record<number, string>> = {
  [kinds.minted]: 'AssetMinted',
  [kinds.tagBound]: 'TagBound',
  [kinds.stateChanged]: 'StateChanged',
  [kinds.resold]: 'AssetResold',
  [kinds.flagsChanged]: 'FlagsChanged',
  [kinds.metadataHashSet]: 'MetadataHashSet',
  [kinds.transferInitiated]: 'TransferInitiated',
  [kinds.transferCancelled]: 'TransferCancelled',
  [kinds.moved]: 'Transfer',
}

const dataNames: Readonly<Record<number, string>> = {
  [kinds.minted]: 'metadata',
  [kinds.tagBound]: 'tagHash',
  [kinds.flagsChanged]: 'reasonHash',
  [kinds.metadataHashSet]: 'metadataHash',
  [kinds.transferInitiated]: 'messageHash',
}

function textOf(event: IndexedEvent, withAccounts: boolean): string {
  const { kind, fromState, toState, flags, nonce, expiry, data } = event
  const account = (name: string, address: Hex | null) =>
    withAccounts && address !== null && !isZero(address) ? [`${name}=${checksumAddress(address)}`] : []
  return [
    names[kind] ?? 'Event',
    ...(fromState === null ? [] : [`from=${lifecycleStates[fromState] ?? fromState}`]),
    ...(toState === null ? [] : [`to=${lifecycleStates[toState] ?? toState}`]),
    ...(flags === null ? [] : [`flags=${flagsText(flags) || 'none'}`]),
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
