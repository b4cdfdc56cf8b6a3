/** `touchstone index …`: the index of the chain, how far it is, whether it is right, and how to make it anew (spec §4.9). */
import { Command } from 'commander'
import { verifyIndex, type Difference } from '../chain/indexer-verify.ts'
import { tokenPages } from '../store/index-rows.ts'
import { rebuildIndex } from '../store/index-sink.ts'
import { atTheHead } from './index-progress.ts'
import { argument } from './store-arguments.ts'
import { chainOf, CommandError, type RunWork, type Session } from './store-command.ts'

export function indexCommand(run: RunWork): Command {
  const index = new Command('index').description('The index of the chain: how far it is, whether it is right.')
  index
    .command('status')
    .description('Says up to which block the index is complete, and who leads it.')
    .addHelpText('after', '\nExample:\n  touchstone index status')
    .action(() => run(status))
  index
    .command('verify')
    .description('Compares the index with the chain, token by token, at the block that the index is complete to.')
    .option('--sample <n>', 'look at about so many tokens only', argument.count(1_000_000))
    .addHelpText(
      'after',
      '\nExit code 0: all agree. 1: some differ; touchstone index rebuild makes them right.\n\nExample:\n  touchstone index verify --sample 1000',
    )
    .action(({ sample }: { sample?: number }) => run((session) => verify(session, sample)))
  index
    .command('rebuild')
    .description('Forgets all that was read from the chain and reads it again. Registrations, taps and API keys stay.')
    .option('--yes', 'lists and history are incomplete until it is done')
    .addHelpText('after', '\nExample:\n  touchstone index rebuild --yes')
    .action(({ yes }: { yes?: true }) => run((session) => rebuild(session, yes === true)))
  return index
}

async function status(session: Session): Promise<void> {
  const { source, indexer } = chainOf(session)
  const { role, indexed, rewound, fault } = await indexer.status()
  const head = await source.head().catch(() => null)
  const out = (name: string, value: string) => session.io.out(`${name.padEnd(9)} ${value}`)
  out('role', role === 'leader' ? 'this process leads' : 'another process leads, or none')
  out('indexed', indexed === null || indexed.number < 0n ? 'nothing yet' : `block ${indexed.number} ${indexed.hash}`)
  out('head', head === null ? 'unknown: the chain does not answer' : `block ${head.number}`)
  if (head !== null && indexed !== null) out('behind', `${head.number - indexed.number} blocks`)
  if (rewound !== null) out('rewound', `${rewound.depth} blocks, to block ${rewound.to}`)
  if (fault !== null) out('fault', fault)
}

async function verify(session: Session, sample: number | undefined): Promise<number> {
  const { io } = session
  const { indexSource, contract, database, chainInterface } = chainOf(session)
  await atTheHead(session)
  const verified = await verifyIndex({
    source: indexSource,
    contract,
    interface: chainInterface,
    pages: tokenPages(database),
    ...(sample !== undefined && { sample }),
    onProgress: (compared) => io.err(`  ${compared} assets compared`),
  })
  if (verified === null) throw new CommandError('Nothing is indexed yet.')
  const { at, compared, differences, products, supply } = verified
  for (const { tokenId, fields } of differences) io.out(`asset ${tokenId}: ${fields.join(', ')}`)
  const isCountRight = supply === null || supply === products
  if (!isCountRight) io.out(`The index has ${products} assets, the chain ${supply}.`)
  if (differences.length === 0 && isCountRight) {
    io.out(`${compared} of ${products} assets compared at block ${at}: all agree with the chain.`)
    return 0
  }
  io.out(
    `${compared} of ${products} assets compared up to block ${at}: ${wrongOnes(differences)}. Run: touchstone index rebuild`,
  )
  return 1
}

function wrongOnes({ length }: readonly Difference[]): string {
  return length === 1 ? '1 differs from the chain' : `${length} differ from the chain`
}

async function rebuild(session: Session, isSure: boolean): Promise<void> {
  if (!isSure)
    throw new CommandError(
      'Lists and history are incomplete while the index is rebuilt. Repeat the command with --yes.',
    )
  await rebuildIndex(chainOf(session).database)
  session.io.out(`The index is complete to block ${await atTheHead(session)}.`)
}
