/** `touchstone tag batch import`: takes over the keys of tags that another system personalised (spec §4.4). */
import { open } from 'node:fs/promises'
import { resolve } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import { parseHex } from '../../lib/bytes.ts'
import { type BatchRecord, importedBatch } from '../../tap/keys/batch.ts'
import { formatScheme, hasOwnMetaKey, parseScheme, type Scheme, schemeNames } from '../../tap/keys/derivations.ts'
import { proveKeys } from '../../tap/provisioning/key-proof.ts'
import { createAuthenticate } from '../../tap/sun/authenticate.ts'
import type { MacInput } from '../../tap/sun/sun.ts'
import { argument, defineCommand, inSession } from '../session/command.ts'
import { CommandError, type RunWork, type Session } from '../session/session.ts'
import { parseHexPair } from './verify.ts'

type Options = {
  readonly scheme: Scheme
  readonly masterFile: string
  readonly check?: string
  readonly macInput: MacInput
  readonly epoch: number
  readonly systemId: string
  readonly fileKeyNo: number
  readonly demo?: true
  readonly json?: true
}

export function importBatchCommand(run: RunWork): Command {
  return defineCommand(
    'import',
    'Takes over the keys of tags that exist: the master of another system, proved by a real tap, sealed under TAG_KEK.',
    {
      notes: `The file holds the master in hex on its first line: 32 digits, for the sdm-backend schemes also 64. The an10922 schemes
and direct need the metaRead key on a second line; the others derive it. --check holds the keys against the link of
one genuine tap, which is not used up: keys that do not fit are refused, and nothing is stored. Remove the file afterwards.

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
    },
  )
    .argument('<id>', 'name of the batch, such as 2024-cards', argument.batchId)
    .requiredOption('--scheme <name>', `derivation of the keys: ${schemeNames.join(', ')}`, schemeArgument)
    .requiredOption('--master-file <file>', 'file with the master, and the metaRead key where the scheme has one')
    .option('--check <url>', 'a link that a tag of the batch gave, in quotes', argument.tapUrl)
    .option('--mac-input <input>', 'what the MAC of a tap covers: empty, or picc', argument.macInput, 'empty')
    .option('--epoch <n>', 'version of its file keys', argument.epoch, 0)
    .option('--system-id <text>', 'system id of an10922 and an10922-systemid', 'touchstone')
    .option('--file-key-no <n>', 'slot of the fileRead key, 0 to 4', slotArgument, 2)
    .option('--demo', 'a batch for software tags: its tags can be emulated; refused in production')
    .option('--json', 'print a JSON object')
    .action(inSession(run, importBatch))
}

async function importBatch(session: Session, id: string, options: Options): Promise<void> {
  const { store, io, inTurn } = session
  const { scheme, check, json, masterFile, ...settings } = options
  if ((await store.tags.batches()).some((batch) => batch.id === id))
    throw new CommandError(`A batch named ${id} exists already.`)
  const keys = await readMasterFile(resolve(io.cwd, masterFile), scheme)
  const record = importedBatch({ ...settings, id, scheme, ...keys })
  if (record === null)
    throw new CommandError(
      'The system id is not legal: 1 to 16 ASCII characters; for an10922-systemid also 0x and up to 24 bytes in hex.',
    )
  const proof = check === undefined ? null : await proved(session, record, check)
  const made = await inTurn(() => store.tagKeys.add(record))
  if (!made.ok) throw new CommandError(made.error)
  const shown = { id, scheme: formatScheme(record), epoch: record.epoch, macInput: record.macInput }
  if (json === true) {
    const tap = proof === null ? null : { uid: proof.uid, counter: proof.counter }
    return io.out(JSON.stringify({ ...shown, proved: tap !== null, tap }, null, 2))
  }
  io.out(`Batch ${id} imported: scheme ${shown.scheme}, epoch ${shown.epoch}, MAC input ${shown.macInput}.`)
  if (proof === null) io.err('No tap has proved these keys: hold one against them with touchstone tag doctor <url>.')
  else io.out(`Proved by tag ${proof.uid}, tap ${proof.counter}, which is not used up.`)
  if (proof !== null && proof.note !== null) io.err(`${proof.note} A proxy must rename them.`)
}

/** Proves the keys by a tap. Throws `CommandError` for keys that do not fit, and for a tap that another batch explains already. */
async function proved({ store }: Pick<Session, 'store'>, record: BatchRecord, url: string) {
  const proof = await proveKeys(record, url)
  if (!proof.ok) throw new CommandError(`These keys did not make this tap, so that nothing is stored. ${proof.error}`)
  const pair = parseHexPair(url)
  const others = store.tagKeys.keys.candidates().filter(({ id }) => id !== record.id)
  const authenticate = createAuthenticate({ keys: { candidates: () => others, hit: () => {} }, fileKeys: null })
  const known = pair === null ? null : await authenticate(pair.picc, pair.cmac)
  // A tap that verifies in two batches of different epochs could be used twice.
  if (known?.genuine === true)
    throw new CommandError(`Tags of this batch verify in batch ${known.batch.id} already, so that nothing is stored.`)
  return proof
}

const mostFileBytes = 4_096

/** Reads the keys of a scheme from a file. Throws `CommandError` with a sentence that holds nothing of the file. */
async function readMasterFile(
  path: string,
  { derivation }: Scheme,
): Promise<{ master: Uint8Array; metaKey?: Uint8Array }> {
  const bytes = Buffer.alloc(mostFileBytes)
  const length = await readInto(bytes, path)
  const lines = bytes.toString('latin1', 0, length).trim().split(/\s+/)
  bytes.fill(0)
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

async function readInto(bytes: Buffer, path: string): Promise<number> {
  try {
    const file = await open(path, 'r')
    return await file
      .read(bytes, 0, bytes.length, 0)
      .then(({ bytesRead }) => bytesRead)
      .finally(() => file.close())
  } catch (error) {
    throw new CommandError(`${path} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown reason'}).`)
  }
}

function schemeArgument(text: string): Scheme {
  const scheme = parseScheme(text)
  if (scheme === null) throw new InvalidArgumentError(`It is one of ${schemeNames.join(', ')}.`)
  return scheme
}

function slotArgument(text: string): number {
  if (!/^[0-4]$/.test(text)) throw new InvalidArgumentError('A slot is 0, 1, 2, 3 or 4.')
  return Number(text)
}
