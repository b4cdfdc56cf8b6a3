/** `touchstone index …`: status, verification and rebuild of the index of the chain (spec §4.9). */
import type { Command } from 'commander'
import { verifyIndex } from '../chain/indexer/verify.ts'
import { tokenPages } from '../index/snapshot.ts'
import { rebuildIndex } from '../index/store.ts'
import { argument, defineCommand, defineGroup, inSession } from './session/command.ts'
import { chainOf, retryChain, type RunWork, type Session } from './session/session.ts'
import { CommandError, formatJson } from './session/output.ts'

export function indexCommand(run: RunWork): Command {
  return defineGroup('index', 'The index of the chain: status, verification, rebuild.', [
    defineCommand('status', 'Shows up to which block the index is complete, and which process leads it.', {
      examples: ['touchstone index status'],
    })
      .option('--json', 'print a JSON object')
      .action(inSession(run, status)),
    defineCommand(
      'verify',
      'Compares the index with the chain: every token at the block that the index is complete to, every stored event with the logs.',
      {
        notes: 'Exit code 0: all agree. 1: some differ; touchstone index rebuild makes them right.',
        examples: ['touchstone index verify --sample 1000'],
      },
    )
      .option('--sample <n>', 'compare about this many tokens only, without the logs', argument.count(1_000_000))
      .option('--json', 'print a JSON object')
      .action(inSession(run, verify)),
    defineCommand(
      'rebuild',
      'Deletes all that was read from the chain and reads it again. Registrations, taps and API keys stay.',
      { examples: ['touchstone index rebuild --yes'] },
    )
      .option('--yes', 'confirm that lists and history are incomplete until it is done')
      .option('--json', 'print a JSON object')
      .action(inSession(run, rebuild)),
  ])
}

async function status(session: Session, { json }: { json?: true }): Promise<void> {
  const { source, indexer } = chainOf(session)
  const { role, indexed, rewound, fault } = await indexer.status()
  const head = await source.head().catch(() => null)
  if (json === true) return session.io.out(formatJson({ role, indexed, head: head?.number ?? null, rewound, fault }))
  const out = (name: string, value: string) => session.io.out(`${name.padEnd(9)} ${value}`)
  out('role', role === 'leader' ? 'this process leads' : 'another process leads, or none')
  out('indexed', indexed === null || indexed.number < 0n ? 'nothing yet' : `block ${indexed.number} ${indexed.hash}`)
  out('head', head === null ? 'unknown: the chain does not answer' : `block ${head.number}`)
  if (head !== null && indexed !== null) out('behind', `${head.number - indexed.number} blocks`)
  if (rewound !== null) out('rewound', `${rewound.depth} blocks, to block ${rewound.to}`)
  if (fault !== null) out('fault', fault)
}

async function verify(session: Session, { sample, json }: { sample?: number; json?: true }): Promise<number> {
  const { io } = session
  const { indexSource, contract, database, chainInterface, startBlock } = chainOf(session)
  await catchUpWithHead(session)
  const verified = await verifyIndex({
    source: indexSource,
    contract,
    interface: chainInterface,
    pages: tokenPages(database),
    startBlock,
    ...(sample !== undefined && { sample }),
    onProgress: (compared) => io.err(`  ${compared} assets compared`),
    signal: io.signal,
  }).catch((error: unknown) => {
    throw io.signal.aborted ? new CommandError('The comparison was interrupted.') : error
  })
  if (verified === null) throw new CommandError('Nothing is indexed yet.')
  const { at, compared, differences, products, supply } = verified
  const isCountRight = supply === null || supply === products
  const agrees = differences.length === 0 && isCountRight
  const exit = agrees ? 0 : 1
  if (json === true) {
    io.out(formatJson({ agrees, block: at, compared, products, supply, differences }))
    return exit
  }
  for (const { tokenId, fields } of differences) io.out(`asset ${tokenId}: ${fields.join(', ')}`)
  if (!isCountRight) io.out(`The index has ${products} assets, the chain ${supply}.`)
  const differ = differences.length === 1 ? '1 differs' : `${differences.length} differ`
  io.out(
    agrees
      ? `${compared} of ${products} assets compared at block ${at}: all agree with the chain.`
      : `${compared} of ${products} assets compared up to block ${at}: ${differ} from the chain. Run: touchstone index rebuild`,
  )
  return exit
}

async function rebuild(session: Session, { yes, json }: { yes?: true; json?: true }): Promise<void> {
  if (yes !== true)
    throw new CommandError(
      'Lists of GraphQL and histories are not available while the index is rebuilt. Repeat the command with --yes.',
    )
  await rebuildIndex(chainOf(session).database)
  const block = await catchUpWithHead(session)
  session.io.out(json === true ? formatJson({ block }) : `The index is complete to block ${block}.`)
}

const progressMs = 2_000
/** A process that leads the index without progress for so long is behind. */
const standstillMs = 10_000

/**
 * Brings the index to the head of the chain and returns its block. It waits for the process that leads the index, else works in this
 * process with visible progress. Throws one sentence when it does not get there.
 */
export async function catchUpWithHead(session: Session): Promise<bigint> {
  const { io } = session
  const { source, indexer } = chainOf(session)
  const head = await retryChain(io, () => source.head())
  let printedAt = performance.now()
  const print = (block: bigint, to: bigint) => {
    if (performance.now() - printedAt < progressMs) return
    printedAt = performance.now()
    const percent = to === 0n ? 100 : Number((block * 1000n) / to) / 10
    io.err(`  index: block ${block} of ${to} (${percent} %)`)
  }
  for (let last = -1n, movedAt = performance.now(); !io.signal.aborted;) {
    if (await indexer.until(head.number, progressMs, { stored: true })) return head.number
    const { led, indexed } = await indexer.catchUp(print, io.signal)
    if (indexed >= head.number) return head.number
    if (led && !io.signal.aborted)
      throw new CommandError(`The index came to block ${indexed} only; the head is ${head.number}. Try again.`)
    if (indexed >= 0n) print(indexed, head.number)
    if (indexed !== last) [last, movedAt] = [indexed, performance.now()]
    else if (performance.now() - movedAt > standstillMs)
      throw new CommandError(
        `The index is at block ${indexed}, the head is ${head.number}: the process that leads it is behind. See: touchstone index status`,
      )
  }
  throw new CommandError('The command was interrupted before the index was complete.')
}
