/** How every command that writes to the chain does it and tells it (spec §3, §4.9): simulated, or sent once under its idempotency key. */
import { randomUUID } from 'node:crypto'
import type { Command } from 'commander'
import type { Parts } from '../parts.ts'
import { stateText } from './asset-state.ts'
import { patiently } from './patience.ts'
import { argument } from './store-arguments.ts'
import { chainOf, CommandError, type Session } from './store-command.ts'

export type WriteOptions = { readonly dryRun?: true; readonly key?: string }
export type Request = Parameters<Parts['writer']['write']>[0]
type Confirmed = Extract<Awaited<ReturnType<Parts['writer']['write']>>, { status: 'CONFIRMED' }>

/** What came of it: on chain, or not (yet) and said so. */
export type Written = { readonly exit: number; readonly confirmed?: Confirmed }

export function addWriteOptions(command: Command): Command {
  return command
    .option('--dry-run', 'simulate only: says what it would cost and change')
    .option(
      '--key <key>',
      'idempotency key of your own: the same command under the same key is done once',
      argument.key,
    )
}

/** `change` says what the request does, as the end of "Would …". The tokens are shown with their new state. */
export async function write(
  session: Session,
  request: Request,
  { dryRun, key = `cli-${randomUUID()}` }: WriteOptions,
  { change, tokenId }: { readonly change: string; readonly tokenId?: bigint },
): Promise<Written> {
  const { io } = session
  const { writer, reader } = chainOf(session)
  if (dryRun === true) {
    const result = await patiently(io, () => writer.write(request, { dryRun: true }))
    if (!result.ok) throw new CommandError(result.message)
    io.out(
      `Dry run: would ${change}${result.status === 'SIMULATED' ? `, for at most ${result.gas} gas` : ''}. Nothing was sent.`,
    )
    return { exit: 0 }
  }
  const result = await writer.write(request, { idempotencyKey: key })
  if (!result.ok)
    throw new CommandError(result.message + (result.txHash === undefined ? '' : ` (transaction ${result.txHash})`))
  if (result.status === 'SIMULATED') return { exit: 1 } // only a dry run is
  io.out(`transaction  ${result.txHash}${result.repeated ? '  (done before under this key)' : ''}`)
  if (result.status !== 'CONFIRMED') {
    io.err(`touchstone: not mined yet. Repeat the command with --key ${key} to learn what became of it.`)
    return { exit: 1 }
  }
  io.out(`block        ${result.blockNumber} ${result.blockHash}`)
  for (const id of tokenId === undefined ? result.tokenIds.slice(0, 3) : [tokenId])
    io.out(`asset        ${id}  ${stateText((await patiently(io, () => reader.read(id))).asset.record)}`)
  return { exit: 0, confirmed: result }
}
