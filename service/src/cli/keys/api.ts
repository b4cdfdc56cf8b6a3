/** `touchstone key …`: the key that seals tag keys, and API keys of GraphQL (spec §5). They are printed or written into a file once. */
import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { Option, type Command } from 'commander'
import { type Scope, scopes, verbs, verbsOf } from '../../access/rights.ts'
import { newApiKey, type ListedApiKey } from '../../access/api-keys.ts'
import { isRange } from '../../app/config/parsers.ts'
import { formerStationFile, stationFile } from '../../tap/keys/station.ts'
import { tagKeyFile } from '../../tap/keys/store.ts'
import { askForApproval } from '../approval.ts'
import { argument, defineCommand, defineGroup, inSession, rejectArgument, textArgument } from '../session/command.ts'
import { writeNew } from '../session/files.ts'
import type { RunWork, Session } from '../session/session.ts'
import { CommandError, formatJson, printTable } from '../session/output.ts'

export function keyCommand(run: RunWork): Command {
  const scope = new Option('--scope <scopes>', 'verbs and their aliases, separated by commas').default(['read'], 'read')
  return defineGroup(
    'key',
    'API keys of GraphQL: each has a name and scopes, and can be revoked. And the keys that seal tag keys.',
    [
      defineCommand('create', 'Makes a key and prints it or writes it into a file, once: only its hash is stored.', {
        notes: scopeNotes,
        examples: [
          'touchstone key create my-app --scope read,write --out my-app-key.txt',
          'touchstone key create back-office --scope read,taps',
          'touchstone key create till --scope claim,read:products --brand "Calder & Wick"',
          'touchstone key create partner --network 10.0.0.0/8,192.0.2.7 --expires 2030-01-31',
        ],
      })
        .argument('<name>', 'its purpose, such as my-app', parseName)
        .addOption(scope.argParser(parseScopes))
        .option(
          '--brand <brand>',
          'reads and changes products of this brand only; repeat it for several',
          argument.brands,
        )
        .option(
          '--network <ranges>',
          'usable from these addresses and CIDR ranges only, separated by commas',
          parseNetworks,
        )
        .option('--expires <time>', 'ends at this day or time in UTC, such as 2030-01-31', parseExpiry)
        .option('--out <file>', 'new file for the key, instead of printing it (mode 0600)')
        .option('--json', 'print a JSON object')
        .action(inSession(run, create)),
      defineCommand('list', 'Shows all keys by id and name, revoked ones too; never a key.', {
        examples: ['touchstone key list'],
      })
        .option('--json', 'print a JSON array')
        .action(inSession(run, list)),
      defineCommand('show', 'Shows one key with all that it may do; never the key itself.', {
        examples: ['touchstone key show k3x9a0qz'],
      })
        .argument('<id>', 'id of the key, as touchstone key list shows it', parseId)
        .option('--json', 'print a JSON object')
        .action(inSession(run, show)),
      defineCommand('revoke', 'Ends a key for ever: within a second its requests fail and its sockets are closed.', {
        examples: ['touchstone key revoke k3x9a0qz'],
      })
        .argument('<id>', 'id of the key, as touchstone key list shows it', parseId)
        .option('--json', 'print a JSON object')
        .action(inSession(run, revoke)),
      defineCommand('rotate-kek', 'Seals the key files of tags under a new TAG_KEK, or a new STATION_KEK.', {
        notes: `Give every instance the new key as TAG_KEK and the former one as TAG_KEK_PREVIOUS first, one after another. Then each opens key
files under either, and no tap fails. Run this once. It may be repeated after an interruption.
Remove TAG_KEK_PREVIOUS an hour after the last restart or later: forms that were made before end by then.
On the machine that writes chips give the new STATION_KEK, and the former one as STATION_KEK_PREVIOUS, to this command alone.
Backups hold files as they were sealed: keep the former key as long as such a backup.`,
        examples: ['touchstone key rotate-kek'],
      })
        .option('--json', 'print a JSON object')
        .action(inSession(run, rotateKek)),
    ],
  )
}

const scopeNotes = `Scopes: ${verbs.join(', ')}.
The scope read is read:products and read:owners, taps is read:taps and read:owners. The scope write is every verb that changes something except approve.
The scope approve lets a key approve what another one asked for (APPROVALS).`

type CreateOptions = {
  readonly scope: readonly Scope[]
  readonly brand?: readonly string[]
  readonly network?: readonly string[]
  readonly expires?: number
  readonly out?: string
  readonly json?: true
}

async function create({ store, io }: Session, name: string, options: CreateOptions): Promise<void> {
  const { scope, brand, network: networks = null, expires: expiresAt = null } = options
  const { text, hash } = newApiKey()
  const file = options.out === undefined ? null : resolve(io.cwd, options.out)
  // The file comes first: where it cannot be written, no key is made.
  if (file !== null) await writeNew(file, `${text}\n`)
  const id = await store.apiKeys
    .create({ hash, name, scopes: scope, brands: brand ?? null, networks, expiresAt })
    .catch(async (error: unknown) => {
      if (file !== null) await rm(file, { force: true })
      throw error
    })
  const key = file === null ? { key: text } : { file }
  const limits = brand === undefined ? '' : `, for products of ${brand.join(', ')} only`
  io.err(
    `Key ${id} (${name}) with scope ${scope.join(', ')}${limits}. It is not shown again; keep it out of browsers and repositories.`,
  )
  // The id comes first: by it a key is revoked whose text could not be written.
  if (options.json === true) io.out(formatJson({ id, name, ...key, scopes: scope }))
  else if (file === null) io.out(text)
}

async function show({ store, io }: Session, id: string, { json }: { json?: true }): Promise<void> {
  const key = (await store.apiKeys.list()).find((one) => one.id === id)
  if (key === undefined) throw new CommandError(`There is no key ${id}; see touchstone key list.`)
  if (json === true) return io.out(formatJson({ ...key, verbs: verbsOf(key.scopes) }))
  const { name, scopes: given, brands, networks, createdAt, expiresAt, lastUsedAt, revokedAt } = key
  const rows = {
    name,
    scope: given.join(', '),
    verbs: verbsOf(given).join(', '),
    brands: brands?.join(', ') ?? 'all products',
    networks: networks?.join(', ') ?? 'all',
    made: createdAt,
    expires: expiresAt ?? 'never',
    'last used': lastUsedAt ?? 'never',
    revoked: revokedAt ?? 'no',
  }
  for (const [label, value] of Object.entries(rows)) io.out(`${label.padEnd(10)} ${value}`)
}

async function list({ store, io }: Session, { json }: { json?: true }): Promise<void> {
  const keys = await store.apiKeys.list()
  if (json === true) return io.out(formatJson(keys))
  if (keys.length === 0) return io.out('There is no key yet: touchstone key create <name>')
  printTable(io.out, ['id', 'name', 'scope', 'brands', 'made', 'last used', ''], keys.map(toRow))
}

function toRow(key: ListedApiKey): string[] {
  const { id, name, scopes: given, brands, createdAt, lastUsedAt, expiresAt, revokedAt } = key
  const end = revokedAt === null ? expiresAt && `expires ${expiresAt}` : `revoked ${revokedAt}`
  return [id, name, given.join(','), brands?.join(', ') ?? 'all', createdAt, lastUsedAt ?? 'never', end ?? '']
}

async function revoke(session: Session, id: string, { json }: { json?: true }): Promise<number | void> {
  const { store, io } = session
  if (store.approvals.isRequired('key-deletion'))
    return askForApproval(session, { act: 'key-deletion', subject: id }, json)
  if (!(await store.apiKeys.revoke(id)))
    throw new CommandError(`There is no active key ${id}; see touchstone key list.`)
  io.out(json === true ? formatJson({ id, revoked: true }) : `Key ${id} is revoked.`)
}

async function rotateKek({ store, io, config }: Session, { json }: { json?: true }): Promise<void> {
  const { kek, previousKek, stationKek, previousStationKek } = config.tap
  if (previousKek === null && previousStationKek === null)
    throw new CommandError(
      'TAG_KEK_PREVIOUS is not set: give every instance a new TAG_KEK and its former one as TAG_KEK_PREVIOUS, then run this again. For the file of the station set STATION_KEK and STATION_KEK_PREVIOUS.',
    )
  assertNewKey('TAG_KEK', kek, previousKek)
  assertNewKey('STATION_KEK', stationKek, previousStationKek)
  // The files are looked for before anything is sealed. A former key that still opens one elsewhere must not be said to go.
  const folder = join(config.dataDir, 'keys')
  const file = tagKeyFile(folder)
  const isHere = existsSync(file) || existsSync(formerStationFile(folder))
  if (previousKek !== null && !isHere && (await store.tags.batches()).length > 0)
    throw new CommandError(
      `Nothing was sealed: ${file} does not exist, and the database has batches of tags. Name the data folder of the service in DATA_DIR.`,
    )
  const masters = stationFile(config.dataDir)
  if (previousStationKek !== null && !existsSync(masters))
    throw new CommandError(
      `Nothing was sealed: ${masters} does not exist. Name the data folder of the station in DATA_DIR, or leave STATION_KEK_PREVIOUS out.`,
    )
  const files = await store.tagKeys.reseal()
  if (json === true) return io.out(formatJson({ sealed: files }))
  for (const one of files) io.out(`Sealed again: ${one}`)
  if (files.length === 0) io.out('Every key file is sealed under its new key already.')
  // Forms and cookies under the former key end within an hour.
  if (previousKek !== null)
    io.out('Remove TAG_KEK_PREVIOUS from the instances, an hour after their last restart or later.')
  if (previousStationKek !== null) io.out('Remove STATION_KEK_PREVIOUS.')
}

/** Throws where only the former key is given: it would be said to go, while it still opens the file. */
function assertNewKey(name: string, key: Uint8Array | null, former: Uint8Array | null): void {
  if (former !== null && key === null)
    throw new CommandError(`${name} is not set: give it the new key, and ${name}_PREVIOUS the former one.`)
}

const parseName = textArgument((text) => /^(?! )[^\p{C}]{1,100}(?<! )$/u.test(text), 'A name has 1 to 100 characters.')

const parseId = textArgument((text) => /^[a-z0-9]{8}$/.test(text), 'An id has 8 letters and digits, such as k3x9a0qz.')

function parseScopes(text: string): Scope[] {
  const words = text.split(',').map((word) => word.trim())
  return words.every((word) => scopes.some((known) => known === word))
    ? scopes.filter((known) => words.includes(known))
    : rejectArgument(`It is some of these, separated by commas: ${scopes.join(', ')}.`)
}

function parseNetworks(text: string): string[] {
  const ranges = text.split(',', mostNetworks + 1).map((range) => range.trim())
  if (ranges.length > mostNetworks) rejectArgument(`A key has ${mostNetworks} networks at most.`)
  return ranges.every(isRange)
    ? ranges
    : rejectArgument('It is addresses and CIDR ranges, such as 10.0.0.0/8,192.0.2.7.')
}

function parseExpiry(text: string): number {
  const time = argument.time(text)
  return time > Date.now() ? time : rejectArgument('The end of a key must be in the future, such as 2030-01-31.')
}

const mostNetworks = 20
