/** `touchstone tag batch …`: batches of tags, each with keys of its own, an epoch and a status (spec §4.4). */
import { type Command, Option } from 'commander'
import { appendAudit, auditText, localActor } from '../../db/audit.ts'
import { argument, defineCommand, defineGroup, inSession } from '../session/command.ts'
import type { RunWork, Session } from '../session/session.ts'
import { CommandError, formatJson, printTable } from '../session/output.ts'
import { reasonOf } from '../../lib/errors.ts'
import type { BatchRecord, BatchStatus } from '../../tap/keys/batch.ts'
import { noStationKek } from '../../tap/keys/station.ts'
import { batchBrands, tagStore } from '../../tap/tag-registry.ts'
import type { MacInput } from '../../tap/sun/sun.ts'
import { askForApproval } from '../approval.ts'
import { brandOption, importBatchCommand, rekeyCommand } from './import-batch.ts'
import { requireOthersHere } from './keys.ts'

type CreateOptions = {
  demo?: true
  macInput: MacInput
  epoch: number
  systemId: string
  brand?: readonly string[]
  json?: true
}

export function batchCommand(run: RunWork): Command {
  const define = (name: string, description: string, words: string) =>
    defineCommand(name, description, { examples: [`touchstone tag batch ${words}`] })
  const changeTo = (status: keyof typeof verbs, description: string, ...options: readonly Option[]) => {
    const command = define(verbs[status], description, `${verbs[status]} 2026-watches`)
    for (const option of options) command.addOption(option)
    return command
      .argument('<id>', 'name of the batch', argument.batchId)
      .option('--json', 'print a JSON object')
      .action(inSession(run, (session, id: string, given: StatusOptions) => setStatus(session, id, status, given)))
  }
  return defineGroup('batch', 'Batches of tags: each has keys of its own, an epoch and a status.', [
    define(
      'create',
      'Makes a batch under new random keys, sealed in the data folder under TAG_KEK.',
      'create 2026-watches',
    )
      .argument('<id>', 'name of the batch, such as 2026-watches', argument.batchId)
      .option('--demo', 'a batch for software tags: its tags can be emulated; refused in production')
      .option('--mac-input <input>', 'what the MAC of a tap covers: empty, or picc', argument.macInput, 'empty')
      .option('--epoch <n>', 'version of its file keys: higher than before when chips get new keys', argument.epoch, 0)
      .option('--system-id <text>', 'part of the key derivation (AN10922), 1 to 16 ASCII characters', 'touchstone')
      .addOption(brandOption())
      .option('--json', 'print a JSON object')
      .action(inSession(run, create)),
    importBatchCommand(run),
    rekeyCommand(run),
    define(
      'brands',
      'Says of which brands a batch has chips: API keys that are limited to other brands bind none of them.',
      "brands 2026-watches --brand 'Calder & Wick'",
    )
      .argument('<id>', 'name of the batch', argument.batchId)
      .addOption(brandOption(''))
      .option('--any', 'of any brand: every key with the right may bind its chips')
      .option('--json', 'print a JSON object')
      .action(inSession(run, setBrands)),
    define('list', 'Shows all batches, without any key.', 'list')
      .option('--json', 'print a JSON array')
      .action(inSession(run, list)),
    changeTo(
      'retired',
      'Marks a batch as complete: its tags go on verifying, no new one should be made.',
      new Option('--lift-revocation', 'retire a revoked batch too: its tags verify again'),
    ),
    changeTo(
      'revoked',
      'Makes every tag of a batch counterfeit, on all instances from the next tap on: for keys that leaked.',
    ),
  ])
}

async function create(session: Session, id: string, options: CreateOptions): Promise<void> {
  const { store, io, inService } = session
  const { demo = false, macInput, epoch, systemId, brand, json } = options
  if ((await store.tags.batch(id)) !== undefined)
    throw new CommandError(`A batch named ${id} exists already: choose another name.`)
  await requireOthersHere(session)
  const made = await store.tagKeys.create({ id, demo, macInput, epoch, systemId }, brand)
  if (!made.ok) throw new CommandError(inService && made.error === noStationKek ? noStationKekInService : made.error)
  if (json === true) return io.out(formatJson({ id, epoch, status: 'active', demo, macInput, systemId }))
  io.out(`Batch ${id} made: epoch ${epoch}, MAC input ${macInput}${demo ? ', for software tags' : ''}.`)
  const { record, appMaster } = store.tagKeys
  if (record(id)?.fileMaster === null)
    return io.out(
      'Its masters are in the PKCS#11 token and cannot leave it. Keep TAG_KEK and the folder keys/ besides.',
    )
  io.out('Keep TAG_KEK and the folder keys/ of the data folder: without both no tag of this batch verifies.')
  if ((await appMaster(id)) !== undefined)
    io.out(
      'Keep STATION_KEK and station/station.keys where chips are written: without both none of its chips can be changed.',
    )
}

/** The service has the settings of its own start, whatever the shell of the command has. */
const noStationKekInService =
  'The running service, which executes this command, has no STATION_KEK. Make the batch in a process of its own, with STATION_KEK and another DATA_DIR: docs/deployment.md shows the command for each deployment. With the embedded database stop the service first, and keep its DATA_DIR.'

type BrandsOptions = { readonly brand?: readonly string[]; readonly any?: true; readonly json?: true }

async function setBrands({ store, io }: Session, id: string, { brand, any, json }: BrandsOptions): Promise<void> {
  if ((brand === undefined) !== (any === true)) throw new CommandError('Give --brand, once or several times, or --any.')
  const brands = brand ?? null
  if (!(await store.tags.setBatchBrands(id, brands)))
    throw new CommandError(`There is no batch named ${id}; see touchstone tag batch list.`)
  await store.tagKeys.writeBrands(id).catch((error: unknown) => io.err(`touchstone: ${reasonOf(error)}`))
  if (json === true) io.out(formatJson({ id, brands }))
  else io.out(`Batch ${id} has chips of ${brands?.join(', ') ?? 'any brand'}.`)
}

async function list({ store, io }: Session, { json }: { json?: true }): Promise<void> {
  const missing = await store.tagKeys.missing()
  const batches = (await store.tags.batches()).map(({ id, epoch, status, settings, createdAt }) => {
    const { demo, macInput, derivation, systemId } = settings as Partial<BatchRecord>
    const keys = store.tagKeys.record(id) !== undefined && !missing.includes(id)
    const brands = batchBrands(settings)
    return { id, epoch, status, demo: demo === true, macInput, derivation, systemId, brands, keys, createdAt }
  })
  if (json === true) return io.out(formatJson(batches))
  if (batches.length === 0) return io.out('There is no batch yet: touchstone tag batch create <id>')
  const rows = batches.map(({ id, epoch, status, macInput, derivation, keys, demo, brands }) => {
    const more = [...(demo ? ['demo'] : []), ...(brands ?? [])].join(', ')
    const here = keys ? 'here' : store.tagKeys.record(id) ? 'others here' : 'not here'
    return [id, `${epoch}`, status, macInput ?? '?', derivation ?? '?', here, more]
  })
  printTable(io.out, ['batch', 'epoch', 'status', 'mac input', 'derivation', 'keys', ''], rows)
}

type StatusOptions = { readonly liftRevocation?: boolean; readonly json?: true | undefined }

async function setStatus(
  session: Session,
  id: string,
  status: keyof typeof verbs,
  { liftRevocation = false, json }: StatusOptions,
): Promise<number | void> {
  const { store, io } = session
  const known = await store.tags.batch(id)
  if (known === undefined) throw new CommandError(`There is no batch named ${id}; see touchstone tag batch list.`)
  const isChanged = known.status !== status
  if (isChanged && known.status === 'revoked' && !liftRevocation)
    throw new CommandError(`Batch ${id} is revoked; with --lift-revocation its tags verify again.`)
  const act = status === 'revoked' ? 'batch-revoke' : known.status === 'revoked' ? 'batch-restore' : null
  if (isChanged && act !== null && store.approvals.isRequired(act))
    return askForApproval(session, { act, subject: id }, json)
  if (isChanged) {
    const entry = { act: `command tag batch ${verbs[status]}`, subject: id, outcome: 'DONE' } as const
    const isDone = await store.database.transaction(async (sql) => {
      if (!(await tagStore(sql).setBatchStatus(id, status, known.status))) return false
      await appendAudit(sql, auditText(localActor(), entry))
      return true
    })
    // Another operator was faster. What was checked above does not hold for the status that they gave it.
    if (!isDone) return setStatus(session, id, status, { liftRevocation, json })
  }
  // The status is in force already. A repeat writes the file that could not be written.
  await store.tagKeys.writeStatus(id).catch((error: unknown) => io.err(`touchstone: ${reasonOf(error)}`))
  if (json === true) io.out(formatJson({ id, epoch: known.epoch, status, changed: isChanged }))
  else io.out(isChanged ? `Batch ${id} is ${status}. ${consequences[status]}` : `Batch ${id} is ${status} already.`)
  if (status === 'revoked')
    await store.revokedTaps
      .takeBack(io.signal)
      .catch((error: unknown) => io.err(`touchstone: The service takes its taps back later. ${reasonOf(error)}`))
}

const verbs = { retired: 'retire', revoked: 'revoke' } as const

const consequences: Readonly<Record<BatchStatus, string>> = {
  active: 'Its tags verify.',
  retired: 'Its tags go on verifying.',
  revoked: 'From now on its tags are answered as counterfeit.',
}
