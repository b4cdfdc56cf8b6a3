/** `touchstone key …`: API keys of GraphQL (spec §5), printed when they are made and never again; and the key that seals tag keys. */
import { InvalidArgumentError, Option, type Command } from 'commander'
import { newApiKey, scopes, type ListedApiKey, type Scope } from '../../graphql/api-keys.ts'
import { defineCommand, defineGroup, inSession, formatTable } from '../session/command.ts'
import { CommandError, type RunWork, type Session } from '../session/session.ts'

export function keyCommand(run: RunWork): Command {
  const scope = new Option('--scope <scopes>', 'read, write, taps, separated by commas').default(['read'], 'read')
  return defineGroup(
    'key',
    'API keys of GraphQL: each has a name and scopes, and can be revoked. And the key that seals tag keys.',
    [
      defineCommand('create', 'Makes a key and prints it, once: only its hash is stored.', {
        examples: [
          'touchstone key create my-app --scope read,write',
          'touchstone key create back-office --scope read,taps',
        ],
      })
        .argument('<name>', 'its purpose, such as my-app', parseName)
        .addOption(scope.argParser(parseScopes))
        .action(inSession(run, create)),
      defineCommand('list', 'Shows all keys by id and name, revoked ones too; never a key.', {
        examples: ['touchstone key list'],
      })
        .option('--json', 'print a JSON array')
        .action(inSession(run, list)),
      defineCommand('revoke', 'Ends a key for ever: within a second its requests fail and its sockets are closed.', {
        examples: ['touchstone key revoke k3x9a0qz'],
      })
        .argument('<id>', 'id of the key, as touchstone key list shows it', parseId)
        .action(inSession(run, revoke)),
      defineCommand('rotate-kek', 'Seals the tag keys of the data folder under a new TAG_KEK.', {
        notes: `Give every instance the new key as TAG_KEK and the former one as TAG_KEK_PREVIOUS first, one after another: then each opens
key files under either, and no tap fails. Run this once, then remove TAG_KEK_PREVIOUS. It may be repeated after an interruption.
Backups hold files as they were sealed: keep the former key as long as such a backup.`,
        examples: ['touchstone key rotate-kek'],
      }).action(inSession(run, rotateKek)),
    ],
  )
}

type CreateOptions = { readonly scope: readonly Scope[] }

async function create({ store, io }: Session, name: string, { scope }: CreateOptions): Promise<void> {
  const { text, hash } = newApiKey()
  const id = await store.apiKeys.create({ hash, name, scopes: scope })
  io.out(text)
  io.err(
    `Key ${id} (${name}) with scope ${scope.join(', ')}. It is not shown again; keep it out of browsers and repositories.`,
  )
}

async function list({ store, io }: Session, { json }: { json?: true }): Promise<void> {
  const keys = await store.apiKeys.list()
  if (json === true) return io.out(JSON.stringify(keys, null, 2))
  if (keys.length === 0) return io.out('There is no key yet: touchstone key create <name>')
  for (const line of formatTable(['id', 'name', 'scope', 'made', 'last used', ''], keys.map(toRow))) io.out(line)
}

function toRow({ id, name, scopes: given, createdAt, lastUsedAt, revokedAt }: ListedApiKey): string[] {
  return [id, name, given.join(','), createdAt, lastUsedAt ?? 'never', revokedAt === null ? '' : `revoked ${revokedAt}`]
}

async function revoke({ store, io }: Session, id: string): Promise<void> {
  if (!(await store.apiKeys.revoke(id)))
    throw new CommandError(`There is no active key ${id}; see touchstone key list.`)
  io.out(`Key ${id} is revoked.`)
}

async function rotateKek({ store, io, inTurn, hasPreviousKek }: Session): Promise<void> {
  const files = await inTurn(() => store.tagKeys.reseal())
  for (const file of files) io.out(`Sealed under TAG_KEK: ${file}`)
  if (files.length > 0) return io.out('Remove TAG_KEK_PREVIOUS from every instance now.')
  if (hasPreviousKek)
    return io.out('Every key file is sealed under TAG_KEK already: remove TAG_KEK_PREVIOUS from every instance.')
  throw new CommandError(
    'TAG_KEK_PREVIOUS is not set: give every instance a new TAG_KEK and its former one as TAG_KEK_PREVIOUS, then run this again.',
  )
}

function parseName(text: string): string {
  if (/^(?! )[^\p{C}]{1,100}(?<! )$/u.test(text)) return text
  throw new InvalidArgumentError('A name has 1 to 100 characters.')
}

function parseId(text: string): string {
  if (/^[a-z0-9]{8}$/.test(text)) return text
  throw new InvalidArgumentError('An id has 8 letters and digits, such as k3x9a0qz.')
}

function parseScopes(text: string): Scope[] {
  const words = text.split(',').map((word) => word.trim())
  if (words.every((word) => scopes.some((known) => known === word)))
    return scopes.filter((known) => words.includes(known))
  throw new InvalidArgumentError('It is some of read, write and taps, separated by commas.')
}
