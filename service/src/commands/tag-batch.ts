/** `touchstone tag batch …`: sets of tags under keys of their own, and whether they verify (spec §4.4, §5). */
import { Command } from 'commander'
import type { BatchRecord } from '../tap/batch.ts'
import type { BatchStatus } from '../tap/keys.ts'
import type { MacInput } from '../tap/sun.ts'
import { argument } from './store-arguments.ts'
import { CommandError, type RunWork, type Session } from './store-command.ts'
import { tableOf } from './table.ts'

type CreateOptions = { demo?: true; macInput: MacInput; epoch: number; systemId: string }

export function batchCommand(run: RunWork): Command {
  const batch = new Command('batch').description('Batches of tags: each has keys of its own, an epoch and a status.')
  batch
    .command('create')
    .description('Makes a batch under new random keys, sealed in the data folder under TAG_KEK.')
    .argument('<id>', 'name of the batch, such as 2026-watches', argument.batchId)
    .option('--demo', 'a batch for software tags: its tags can be emulated; refused in production')
    .option('--mac-input <input>', 'what the MAC of a tap covers: empty, or picc', argument.macInput, 'empty')
    .option('--epoch <n>', 'life of its chips: higher than before where chips get new keys', argument.epoch, 0)
    .option('--system-id <text>', 'part of the key derivation (AN10922), 1 to 16 ASCII characters', 'touchstone')
    .addHelpText('after', '\nExample:\n  touchstone tag batch create 2026-watches')
    .action((id: string, options: CreateOptions) => run((session) => create(session, id, options)))
  batch
    .command('list')
    .description('Shows all batches; never a key.')
    .option('--json', 'a JSON array')
    .addHelpText('after', '\nExample:\n  touchstone tag batch list')
    .action((options: { json?: true }) => run((session) => list(session, options)))
  batch
    .command('retire')
    .description('Marks a batch as complete: its tags go on verifying, no new one should be made.')
    .argument('<id>', 'name of the batch', argument.batchId)
    .option('--lift-revocation', 'also when the batch is revoked: its tags verify again')
    .addHelpText('after', '\nExample:\n  touchstone tag batch retire 2026-watches')
    .action((id: string, options: { liftRevocation?: true }) =>
      run((session) => change(session, id, 'retired', options.liftRevocation === true)),
    )
  batch
    .command('revoke')
    .description('Makes every tag of a batch counterfeit, on all instances from the next tap on: for keys that leaked.')
    .argument('<id>', 'name of the batch', argument.batchId)
    .addHelpText('after', '\nExample:\n  touchstone tag batch revoke 2026-watches')
    .action((id: string) => run((session) => change(session, id, 'revoked', true)))
  return batch
}

async function create({ store, io, inTurn }: Session, id: string, options: CreateOptions): Promise<void> {
  const { demo = false, macInput, epoch, systemId } = options
  const known = (await store.tags.batches()).some((batch) => batch.id === id)
  if (known) throw new CommandError(`A batch named ${id} exists already.`)
  const made = await inTurn(() => store.fleet.create({ id, demo, macInput, epoch, systemId }))
  if (!made.ok) throw new CommandError(made.error)
  io.out(`Batch ${id} made: epoch ${epoch}, MAC input ${macInput}${demo ? ', for software tags' : ''}.`)
  io.out(
    'Keep TAG_KEK and the folder keys/ of the data folder: without both no tag of this batch verifies or can be changed.',
  )
}

async function list({ store, io }: Session, { json }: { json?: true }): Promise<void> {
  const batches = (await store.tags.batches()).map(({ id, epoch, status, settings, createdAt }) => {
    const { demo, macInput, derivation, systemId } = settings as Partial<BatchRecord>
    const keys = store.fleet.record(id) !== undefined
    return { id, epoch, status, demo: demo === true, macInput, derivation, systemId, keys, createdAt }
  })
  if (json === true) return io.out(JSON.stringify(batches, null, 2))
  if (batches.length === 0) return io.out('There is no batch yet: touchstone tag batch create <id>')
  const rows = batches.map((batch) => [
    batch.id,
    String(batch.epoch),
    batch.status,
    batch.macInput ?? '?',
    batch.derivation ?? '?',
    batch.keys ? 'here' : 'not here',
    batch.demo ? 'demo' : '',
  ])
  for (const line of tableOf(['batch', 'epoch', 'status', 'mac input', 'derivation', 'keys', ''], rows)) io.out(line)
}

async function change(
  { store, io, inTurn }: Session,
  id: string,
  status: BatchStatus,
  mayLift: boolean,
): Promise<void> {
  const known = (await store.tags.batches()).find((batch) => batch.id === id)
  if (known === undefined) throw new CommandError(`There is no batch named ${id}; see touchstone tag batch list.`)
  if (known.status === status) return io.out(`Batch ${id} is ${status} already.`)
  if (known.status === 'revoked' && !mayLift)
    throw new CommandError(`Batch ${id} is revoked; with --lift-revocation its tags verify again.`)
  await inTurn(() => store.fleet.setStatus(id, status))
  io.out(`Batch ${id} is ${status}. ${consequences[status]}`)
}

const consequences: Readonly<Record<BatchStatus, string>> = {
  active: 'Its tags verify.',
  retired: 'Its tags go on verifying.',
  revoked: 'From now on its tags are answered as counterfeit.',
}
