/** Writes to the chain for every command that does (spec §3, §4.9): simulated, or sent once under its idempotency key. */
import { randomUUID } from 'node:crypto'
import type { Command } from 'commander'
import type { Components } from '../../app/components.ts'
import { sentRequest, type WriteRequest } from '../../chain/transactions/calls.ts'
import { writeFailure } from '../../chain/transactions/failures.ts'
import { formatState } from './show.ts'
import { chainOf, retryChain, type Session } from '../session/session.ts'
import { CommandError, formatJson } from '../session/output.ts'
import { argument } from '../session/command.ts'
import { defaultKey } from '../session/control-client.ts'
import type { ItemKey } from '../../domain/gs1/serial.ts'

export type WriteFlags = { readonly dryRun?: true; readonly key?: string; readonly json?: true | undefined }
type Confirmed = Extract<Awaited<ReturnType<Components['writer']['write']>>, { status: 'CONFIRMED' }>

/** `confirmed` is missing when the transaction is not on chain (yet), which was printed. */
type Written = { readonly exit: number; readonly confirmed?: Confirmed }

/** Returns the item that two options name, or null without them. */
export function itemOption({ gtin, serial }: { gtin: string | undefined; serial: string | undefined }): ItemKey | null {
  if (gtin !== undefined && serial !== undefined) return { gtin, serial }
  if (gtin === undefined && serial === undefined) return null
  throw new CommandError('--gtin and --serial belong together.')
}

export function addWriteOptions(command: Command): Command {
  return command
    .option('--dry-run', 'simulate only: prints what it would cost and change')
    .option(
      '--key <key>',
      'idempotency key of your own: the same command under the same key is done once',
      argument.key,
    )
    .option('--json', 'print a JSON object')
}

/** Writes and prints the result with the new state of the tokens. `change` completes the sentence "Would …"; for `terms` see the writer. */
export async function write(
  session: Session,
  request: WriteRequest,
  { dryRun, key = defaultKey(session.io.id ?? randomUUID()), json }: WriteFlags,
  change: string,
  terms?: string,
): Promise<Written> {
  if (dryRun === true) return simulate(session, request, change, json)
  const { io } = session
  if (io.signal.aborted) throw new CommandError('The command was interrupted before it sent anything.')
  if ((await session.store.approvals.findByKey(key)) !== null)
    throw new CommandError(writeFailure('IDEMPOTENCY_CONFLICT').message)
  const explain = () =>
    io.err(`touchstone: the transaction may be sent. Wait for it, or repeat the command with --key ${key}.`)
  io.signal.addEventListener('abort', explain)
  const result = await chainOf(session)
    .writer.write(request, { idempotencyKey: key, terms })
    .finally(() => io.signal.removeEventListener('abort', explain))
  if (!result.ok)
    throw new CommandError(result.message + (result.txHash === undefined ? '' : ` (transaction ${result.txHash})`))
  const { status, txHash: transaction, repeated } = result
  if (json !== true) io.out(`transaction  ${transaction}${repeated ? '  (done before under this key)' : ''}`)
  if (result.status !== 'CONFIRMED') {
    if (json === true) io.out(formatJson({ status, transaction, repeated, key }))
    io.err(`touchstone: not mined yet. Repeat the command with --key ${key} to see its outcome.`)
    return { exit: 1 }
  }
  const ids = 'tokenId' in request ? [request.tokenId] : result.tokenIds
  const states = await Promise.all(ids.slice(0, 3).map((tokenId) => readState(session, tokenId)))
  const block = { number: result.blockNumber, hash: result.blockHash }
  if (json === true) io.out(formatJson({ status, transaction, repeated, block, tokenIds: ids, states }))
  else {
    io.out(`block        ${block.number} ${block.hash}`)
    for (const { tokenId, state } of states) io.out(`asset        ${tokenId}  ${state}`)
  }
  return { exit: 0, confirmed: result }
}

/** Returns what `sentRequest` returns for the caller's own key. A dry run repeats nothing. */
export async function previousRequest(
  session: Session,
  { key, dryRun }: WriteFlags,
): Promise<WriteRequest | null | undefined> {
  return key === undefined || dryRun === true ? undefined : sentRequest(chainOf(session).operations, key)
}

async function simulate(session: Session, request: WriteRequest, change: string, json?: true): Promise<Written> {
  const { io } = session
  const result = await retryChain(io, () => chainOf(session).writer.simulate(request))
  if (!result.ok) throw new CommandError(result.message)
  const { gas } = result
  io.out(
    json === true
      ? formatJson({ status: 'SIMULATED', change, gas })
      : `Dry run: would ${change}, for at most ${gas} gas. Nothing was sent.`,
  )
  return { exit: 0 }
}

async function readState(session: Session, tokenId: bigint) {
  const { asset } = await retryChain(session.io, () => chainOf(session).reader.read(tokenId))
  return { tokenId, state: formatState(asset.record) }
}
