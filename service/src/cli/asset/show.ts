/** `touchstone asset show` and `asset history`: verdict, record on chain, registration and indexed events (spec §2.1, §2.5, §3). */
import { type AssetRecord, checksumAddress, type Hex, lifecycleStates } from '@touchstone/verdict'
import type { Command } from 'commander'
import type { ContractFunctionReturnType } from 'viem'
import { decodeFunctionResult, encodeFunctionData } from 'viem/utils'
import { zeroHash } from '../../domain/chain.ts'
import type { Components } from '../../app/components.ts'
import type { Block } from '../../chain/rpc/block.ts'
import { nonCanonical } from '../../chain/rpc/answer.ts'
import { catchUpWithHead } from '../chain-index.ts'
import { argument, defineCommand, inSession, toFlagArgument } from '../session/command.ts'
import { chainOf, retryChain, type RunWork, type Session } from '../session/session.ts'
import { CommandError, formatJson } from '../session/output.ts'
import { assetRegistryAbi as abi } from '../../domain/registry-abi.ts'
import { type AssetEvent, eventKinds, eventNames, flagNamesOf } from '../../domain/registry-event.ts'
import { formatInstant } from '../../domain/text.ts'
import { toHex } from '../../tap/bytes.ts'

type ShowOptions = { json?: true; owner?: true }

export function showCommand(run: RunWork): Command {
  const description = 'Shows the verdict on an asset, its record on chain, and the tag that is registered for it.'
  return defineCommand('show', description, { examples: ['touchstone asset show 7'] })
    .argument('<id>', 'token id of the asset', argument.tokenId)
    .option('--owner', 'include the address of the owner, which is personal data')
    .option('--json', 'print the verdict as GET /api/asset/<id> answers it')
    .action(inSession(run, show))
}

async function show(session: Session, tokenId: bigint, options: ShowOptions): Promise<void> {
  const lines = await retryChain(session.io, () => formatAsset(session, tokenId, options))
  for (const line of lines) session.io.out(line)
}

async function formatAsset(session: Session, tokenId: bigint, { json, owner }: ShowOptions): Promise<string[]> {
  const { verdicts, reader, source, contract } = chainOf(session)
  const { store } = session
  const answer = await verdicts.answer(tokenId)
  if (answer === null) throw new CommandError(`Asset ${tokenId} does not exist.`)
  const { verdict, body } = answer
  if (json === true) return [body]
  const { asset } = await reader.read(tokenId)
  const head = await source.head()
  const [pending, tag] = await Promise.all([
    readRegistry({ source, contract }, head, 'pendingTransfer', tokenId),
    readRegistry({ source, contract }, head, 'getTagByToken', tokenId),
  ])
  const registered = await store.tags.tagOfToken(tokenId)
  const { _warning: _, ...text } = verdict.untrusted ?? {}
  const lines: readonly (readonly [string, string])[] = [
    ['asset', `${tokenId} of ${verdict.chainRef.contract} on chain ${verdict.chainRef.chain_id}`],
    ['state', formatState(asset.record)],
    ['authentic', String(verdict.authentic)],
    ['flagged', String(verdict.flagged)],
    ['since', formatInstant(asset.record.timestamp)],
    ['owner', owner === true ? asset.record.owner : `${verdict.owner_commitment} (commitment)`],
    ['tag on chain', tag === zeroHash ? 'none' : tag],
    [
      'tag here',
      registered === undefined
        ? 'not registered'
        : `${toHex(registered.uid)}, batch ${registered.batchId}, epoch ${registered.epoch}, last tap ${registered.lastCounter}`,
    ],
    ...(registered === undefined || registered.gtin === null
      ? []
      : [['item', `${registered.gtin} ${registered.serial}`] as const]),
    ['transfer', pending[1] === 0n ? 'none pending' : `pending until ${formatInstant(pending[1])}`],
    ['metadata', asset.metadataHash ?? 'none'],
    ...Object.entries(text).map(([name, value]) => [`  ${name}`, `${value}`.replaceAll('\n', ' ')] as const),
    ['block', `${verdict.chainRef.block_number} ${verdict.chainRef.block_hash}`],
  ]
  return lines.map(([name, value]) => `${name.padEnd(13)} ${value}`)
}

type Read = 'pendingTransfer' | 'getTagByToken'

export async function readRegistry<Name extends Read>(
  { source, contract }: Pick<Components, 'source' | 'contract'>,
  block: Block,
  functionName: Name,
  tokenId: bigint,
): Promise<ContractFunctionReturnType<typeof abi, 'view', Name>> {
  const data = encodeFunctionData({ abi, functionName: functionName as Read, args: [tokenId] })
  const result = await source.call(contract.toLowerCase() as Hex, data, block)
  if (result === nonCanonical) throw new CommandError('The chain changed while it was read; repeat the command.')
  return decodeFunctionResult({ abi, functionName: functionName as Read, data: result }) as ContractFunctionReturnType<
    typeof abi,
    'view',
    Name
  >
}

export function formatState({ state, flags }: Pick<AssetRecord, 'state' | 'flags'>): string {
  const names = formatFlags(flags)
  return names === '' ? lifecycleStates[state] : `${lifecycleStates[state]} (${names})`
}

/** Formats flag bits as `asset flag --reason` takes them. */
export function formatFlags(flags: number): string {
  return flagNamesOf(flags).map(toFlagArgument).join(', ')
}

export function historyCommand(run: RunWork): Command {
  return defineCommand('history', 'Lists the events of an asset, newest first, from the index.', {
    notes: 'The list is complete up to the block that it names.',
    examples: ['touchstone asset history 7'],
  })
    .argument('<id>', 'token id of the asset', argument.tokenId)
    .option('--accounts', 'include the addresses that took part, which are personal data')
    .option('--json', 'print a JSON object')
    .action(inSession(run, history))
}

const maxEvents = 500

async function history(
  session: Session,
  tokenId: bigint,
  { accounts, json }: { accounts?: true; json?: true },
): Promise<void> {
  const { io } = session
  await catchUpWithHead(session)
  const indexed = await chainOf(session).historyRows.of(tokenId, 100_000)
  if (indexed === null)
    throw new CommandError('Nothing is indexed yet. Start the service, or run: touchstone index verify')
  const { cursor, rows } = indexed
  if (rows.length === 0) throw new CommandError(`Asset ${tokenId} does not exist up to block ${cursor.number}.`)
  const newest = rows.toReversed().slice(0, maxEvents)
  if (json === true) {
    const events = newest.map((event) => toListed(event, accounts === true))
    return io.out(formatJson({ block: cursor, total: rows.length, events }))
  }
  for (const event of newest) {
    const { timestamp, blockNumber, transactionHash } = event
    io.out(`${formatInstant(timestamp)}  block ${blockNumber}  ${format(event, accounts === true)}  ${transactionHash}`)
  }
  io.out(
    rows.length > maxEvents
      ? `The newest ${maxEvents} of ${rows.length} events up to block ${cursor.number}.`
      : `${rows.length} events up to block ${cursor.number}, back to the minting.`,
  )
}

/** Returns an event for a program; accounts are left out unless they are asked for. */
function toListed(event: AssetEvent, withAccounts: boolean) {
  const { kind, timestamp, actor, from, to, fromState, toState, flags, ...rest } = event
  const listed = {
    event: eventNames.get(kind) ?? 'Event',
    time: formatInstant(timestamp),
    fromState: fromState === null ? null : lifecycleStates[fromState],
    toState: toState === null ? null : lifecycleStates[toState],
    flags: flags === null ? null : formatFlags(flags),
    ...rest,
    ...(withAccounts && { actor, from, to }),
  }
  return Object.fromEntries(Object.entries(listed).filter(([, value]) => value !== null))
}

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
    eventNames.get(kind) ?? 'Event',
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
