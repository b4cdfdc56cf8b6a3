/** `touchstone tag batch import` and `rekey`: existing keys, proved by a real tap before they are sealed (spec §4.4). */
import { resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { parseHex } from '../../lib/bytes.ts'
import { type BatchRecord, importedBatch, newBatch, type BatchKeyRecord } from '../../tap/keys/batch.ts'
import { formatScheme, hasOwnMetaKey, parseScheme, type Scheme, schemeNames } from '../../tap/keys/derivations.ts'
import { batchOfTap, proveKeys } from '../../tap/provisioning/key-proof.ts'
import type { MacInput } from '../../tap/sun/sun.ts'
import { argument, defineCommand, inSession, rejectArgument } from '../session/command.ts'
import { readBytes } from '../session/files.ts'
import type { RunWork, Session } from '../session/session.ts'
import { CommandError, formatJson } from '../session/output.ts'
import { getBatchHere, requireOthersHere } from './keys.ts'

type Options = {
  readonly scheme: Scheme
  readonly masterFile: string
  readonly check?: string
  readonly macInput: MacInput
  readonly epoch: number
  readonly systemId: string
  readonly fileKeyNo: number
  readonly demo?: true
  readonly brand?: readonly string[]
  readonly json?: true
}

/** Makes the option that says whose chips a batch has. */
export function brandOption(byDefault = ' (default: any brand)'): Option {
  const text = `brand of its chips, repeat it for several: API keys of other brands bind none of them${byDefault}`
  return new Option('--brand <brand>', text).argParser(argument.brands)
}

export function importBatchCommand(run: RunWork): Command {
  const description =
    'Takes over the keys of tags that exist: the master of another system, proved by a real tap, sealed under TAG_KEK.'
  return defineCommand('import', description, {
    notes: `The file holds the master in hex on its first line: 32 digits, for the sdm-backend schemes also 64. The an10922 schemes
and direct need the metaRead key on a second line; the others derive it. The option --check compares the keys with the link of
one genuine tap, which is not used up. Keys that do not fit are rejected, and nothing is stored. Remove the file afterwards.

Schemes, with the input M of AN10922 where it is used:
  an10922             UID, D2760000850101, slot, --system-id: chips of another Touchstone
  an10922-systemid    UID, --system-id: text, or bytes in hex after 0x
  an10922-uid         UID only
  sdm-backend         the derivation of icedevml/sdm-backend
  sdm-backend-legacy  its older derivation (PBKDF2)
  boltcard-v1, -v2 …  the deterministic keys of Bolt Card, with the version of the card keys
  tagit-sdm           CMAC over the label TAGIT-SDM and the UID; the master is metaRead too
  direct              one fileRead key for all tags`,
    examples: [
      `touchstone tag batch import 2024-cards --scheme boltcard-v1 --master-file issuer.key \\
    --check 'https://cards.example.com/api/verify?picc=…&cmac=…'`,
      'touchstone tag batch import 2023-bags --scheme an10922-systemid --system-id 0x3042F5 --master-file bags.key',
    ],
  })
    .argument('<id>', 'name of the batch, such as 2024-cards', argument.batchId)
    .requiredOption('--scheme <name>', `derivation of the keys: ${schemeNames.join(', ')}`, schemeArgument)
    .requiredOption('--master-file <file>', 'file with the master, and the metaRead key where the scheme has one')
    .option('--check <url>', 'a link that a tag of the batch gave, in quotes', argument.tapUrl)
    .option('--mac-input <input>', 'what the MAC of a tap covers: empty, or picc', argument.macInput, 'empty')
    .option('--epoch <n>', 'version of its file keys', argument.epoch, 0)
    .option('--system-id <text>', 'system id of an10922 and an10922-systemid', 'touchstone')
    .option('--file-key-no <n>', 'slot of the fileRead key, 0 to 4', slotArgument, 2)
    .option('--demo', 'a batch for software tags: its tags can be emulated; refused in production')
    .addOption(brandOption())
    .option('--json', 'print a JSON object')
    .action(inSession(run, importBatch))
}

async function importBatch(session: Session, id: string, options: Options): Promise<void> {
  const { store, io } = session
  const { scheme, check, json, masterFile, brand, ...settings } = options
  if ((await store.tags.batch(id)) !== undefined)
    throw new CommandError(`A batch named ${id} exists already: choose another name.`)
  const keys = await readMasterFile(resolve(io.cwd, masterFile), scheme)
  const record = importedBatch({ ...settings, id, scheme, ...keys })
  if (record === null) throw new CommandError(wrongSystemId)
  const proof = await prove(session, record, check)
  await requireOthersHere(session)
  const made = await store.tagKeys.add(record, brand)
  if (!made.ok) throw new CommandError(made.error)
  const shown = { id, scheme: formatScheme(record), epoch: record.epoch, macInput: record.macInput }
  if (json === true) return io.out(formatJson({ ...shown, ...toJson(proof) }))
  io.out(`Batch ${id} imported: scheme ${shown.scheme}, epoch ${shown.epoch}, MAC input ${shown.macInput}.`)
  if (proof === null) io.err(unproved)
  else io.out(formatProof(proof))
  if (proof?.note) io.err(`${proof.note} A proxy must rename them.`)
}

const wrongSystemId =
  'The system id is not legal: 1 to 16 ASCII characters; for an10922-systemid also 0x and up to 24 bytes in hex.'
const unproved = 'No tap has proved these keys: hold one against them with touchstone tag doctor <url>.'

type RekeyOptions = Pick<Options, 'check' | 'json'> & { readonly keep?: true } & Partial<
    Pick<Options, 'scheme' | 'masterFile' | 'systemId' | 'fileKeyNo' | 'macInput'>
  >

export function rekeyCommand(run: RunWork): Command {
  const description = 'Replaces the keys of a batch: taps of its former keys verify on no instance any more.'
  return defineCommand('rekey', description, {
    notes: `For chips that got other keys, and for an import with wrong ones. For keys that leaked use touchstone tag batch revoke,
which also takes back what former taps have verified. Instances with a key folder of their own
answer taps of the batch 503 until keys/tag-keys.json is copied there. With --keep the keys of this folder become those of the batch
again, as after a restore of the database. Id, epoch, counters and registered tags stay. Chips that
were switched to SDM again count from 1: they need a new batch with a higher epoch instead, because these counters stay used.
Without --master-file the batch gets new random keys, as long as none of its tags was registered or tapped.
The keys are as in touchstone tag batch import; what no option names stays as it is.`,
    examples: [
      "touchstone tag batch rekey 2024-cards --master-file issuer.key --check 'https://cards.example.com/api/verify?picc=…&cmac=…'",
    ],
  })
    .argument('<id>', 'name of the batch', argument.batchId)
    .option('--master-file <file>', 'file with the master, and the metaRead key where the scheme has one')
    .option('--scheme <name>', `derivation of the keys: ${schemeNames.join(', ')}`, schemeArgument)
    .option('--check <url>', 'a link that a tag gave under its new keys, in quotes', argument.tapUrl)
    .option('--mac-input <input>', 'what the MAC of a tap covers: empty, or picc', argument.macInput)
    .option('--system-id <text>', 'system id of an10922 and an10922-systemid')
    .option('--file-key-no <n>', 'slot of the fileRead key, 0 to 4', slotArgument)
    .option('--keep', 'keep the keys of this data folder, and make them the newest on every instance')
    .option('--json', 'print a JSON object')
    .action(inSession(run, rekeyBatch))
}

async function rekeyBatch(
  session: Session,
  id: string,
  { masterFile, check, keep, json, ...changes }: RekeyOptions,
): Promise<void> {
  const { store, io } = session
  const former = getBatchHere(store, id)
  if (keep === true && (masterFile !== undefined || Object.keys(changes).length > 0))
    throw new CommandError('With --keep the batch stays as it is here: leave the other options out.')
  const record =
    keep === true
      ? withKeysHere(former)
      : masterFile === undefined
        ? await withRandomKeys(session, former, changes)
        : await withKeysOf(resolve(io.cwd, masterFile), former, changes)
  const proof = await prove(session, record, check)
  const changed = await store.tagKeys.rekey(record)
  if (!changed.ok) throw new CommandError(changed.error)
  const { epoch, macInput } = record
  const scheme = formatScheme(record)
  if (json === true) return io.out(formatJson({ id, scheme, epoch, macInput, ...toJson(proof) }))
  io.out(
    `Batch ${id} has ${keep === true ? 'the keys of this folder' : 'other keys'}: scheme ${scheme}, epoch ${epoch}, MAC input ${macInput}.`,
  )
  if (proof !== null) io.out(formatProof(proof))
  else if (masterFile !== undefined) io.err(unproved)
}

function withKeysHere({ id, fileMaster, ...rest }: BatchKeyRecord): BatchRecord {
  if (fileMaster === null) throw new CommandError(`The keys of batch ${id} are in a token and stay there.`)
  return { ...rest, id, fileMaster }
}

async function withKeysOf(path: string, former: BatchKeyRecord, changes: RekeyOptions): Promise<BatchRecord> {
  const { metaKey: _meta, fileMaster: _master, derivation, derivationVersion, ...kept } = former
  const scheme = changes.scheme ?? { derivation, ...(derivationVersion !== undefined && { derivationVersion }) }
  const record = importedBatch({ ...kept, ...changes, scheme, ...(await readMasterFile(path, scheme)) })
  if (record === null) throw new CommandError(wrongSystemId)
  return record
}

/** Throws `CommandError` for a batch whose chips exist: no chip has keys that are made now. */
async function withRandomKeys(
  { store }: Session,
  { id, epoch, systemId, macInput, demo, status, derivation }: BatchKeyRecord,
  changes: RekeyOptions,
): Promise<BatchRecord> {
  if (Object.keys(changes).length > 0 || derivation !== 'an10922')
    throw new CommandError(
      `Give --master-file: only a batch of scheme an10922 gets random keys, without other changes.`,
    )
  if (await store.tags.hasTags(id))
    throw new CommandError(
      `Tags of batch ${id} exist, and random keys would make them counterfeit. Give --master-file with the keys that they have now, or make a new batch with a higher epoch.`,
    )
  const made = newBatch({ id, epoch, systemId, macInput, demo })
  if (made === null) throw new CommandError(wrongSystemId)
  return { ...made.record, status }
}

/** Proves the keys by a tap; null without one. Throws `CommandError` for keys that do not fit, and for a tap that another batch explains already. */
async function prove({ store }: Session, record: BatchRecord, url: string | undefined): Promise<Proof | null> {
  if (url === undefined) return null
  const proof = await proveKeys(record, url)
  if (!proof.ok) throw new CommandError(`These keys did not make this tap. Nothing is stored. ${proof.error}`)
  const others = store.tagKeys.keys.candidates().filter(({ id }) => id !== record.id)
  const known = await batchOfTap(url, others)
  // A tap that verifies in two batches of different epochs could be used twice.
  if (known !== null) throw new CommandError(`Tags of this batch verify in batch ${known} already. Nothing is stored.`)
  return proof
}

type Proof = Extract<Awaited<ReturnType<typeof proveKeys>>, { ok: true }>

function formatProof({ uid, counter }: Proof): string {
  return `Proved by tag ${uid}, tap ${counter}, which is not used up.`
}

function toJson(proof: Proof | null) {
  return { proved: proof !== null, tap: proof && { uid: proof.uid, counter: proof.counter } }
}

const mostFileBytes = 4_096

/** Reads the keys of a scheme from a file. Throws `CommandError` with a sentence that holds nothing of the file. */
async function readMasterFile(
  path: string,
  { derivation }: Scheme,
): Promise<{ master: Uint8Array; metaKey?: Uint8Array }> {
  const bytes = (await readBytes(path, mostFileBytes)) ?? new Uint8Array()
  const lines = Buffer.from(bytes).toString('latin1').trim().split(/\s+/)
  const [master, metaKey, ...more] = lines.map((line) => parseHex(line.replace(/^0x/, '')))
  const masterBytes = derivation.startsWith('sdm-backend') ? [16, 32] : [16]
  const isOwn = hasOwnMetaKey(derivation)
  const isMaster = master !== undefined && master !== null && masterBytes.includes(master.length)
  const isMeta = isOwn ? metaKey?.length === 16 : metaKey === undefined
  if (!isMaster || !isMeta || more.length > 0)
    throw new CommandError(
      `${path} must hold the master as ${masterBytes.map((count) => count * 2).join(' or ')} hex digits${isOwn ? ', and on a second line the metaRead key as 32 hex digits' : ', and nothing else'}.`,
    )
  return { master, ...(metaKey && { metaKey }) }
}

const schemeArgument = (text: string): Scheme =>
  parseScheme(text) ?? rejectArgument(`It is one of ${schemeNames.join(', ')}.`)

const slotArgument = (text: string): number =>
  /^[0-4]$/.test(text) ? Number(text) : rejectArgument('A slot is 0, 1, 2, 3 or 4.')
