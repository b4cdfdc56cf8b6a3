/** `touchstone key …`: API keys of GraphQL (spec §5). A key is shown when it is made and never again. */
import { Command, InvalidArgumentError, Option } from 'commander'
import { newApiKey, scopes, type ListedApiKey, type Scope } from '../store/api-keys.ts'
import { CommandError, type RunWork, type Session } from './store-command.ts'
import { tableOf } from './table.ts'

export function keyCommand(run: RunWork): Command {
  const key = new Command('key').description('API keys of GraphQL: each has a name and scopes, and can be revoked.')
  key
    .command('create')
    .description('Makes a key and prints it, once: only its hash is kept.')
    .argument('<name>', 'what it is for, such as my-app', nameOf)
    .addOption(
      new Option('--scope <scopes>', 'read, write, or read,write').default(['read'], 'read').argParser(scopesOf),
    )
    .addHelpText('after', '\nExample:\n  touchstone key create my-app --scope read,write')
    .action((name: string, options: CreateOptions) => run((session) => create(session, name, options)))
  key
    .command('list')
    .description('Shows all keys by id and name, revoked ones too; never a key.')
    .option('--json', 'a JSON array')
    .addHelpText('after', '\nExample:\n  touchstone key list')
    .action((options: { json?: true }) => run((session) => list(session, options)))
  key
    .command('revoke')
    .description('Ends a key for ever: within a second no request passes with it, and its sockets are closed.')
    .argument('<id>', 'id of the key, as touchstone key list shows it', idOf)
    .addHelpText('after', '\nExample:\n  touchstone key revoke k3x9a0qz')
    .action((id: string) => run((session) => revoke(session, id)))
  return key
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
  for (const line of tableOf(['id', 'name', 'scope', 'made', 'last used', ''], keys.map(rowOf))) io.out(line)
}

function rowOf({ id, name, scopes: given, createdAt, lastUsedAt, revokedAt }: ListedApiKey): string[] {
  return [id, name, given.join(','), createdAt, lastUsedAt ?? 'never', revokedAt === null ? '' : `revoked ${revokedAt}`]
}

async function revoke({ store, io }: Session, id: string): Promise<void> {
  if (!(await store.apiKeys.revoke(id)))
    throw new CommandError(`There is no key ${id} in force; see touchstone key list.`)
  io.out(`Key ${id} is revoked.`)
}

function nameOf(text: string): string {
  if (/^(?! )[^\p{C}]{1,100}(?<! )$/u.test(text)) return text
  throw new InvalidArgumentError('A name has 1 to 100 characters.')
}

function idOf(text: string): string {
  if (/^[a-z0-9]{8}$/.test(text)) return text
  throw new InvalidArgumentError('An id has 8 letters and digits, such as k3x9a0qz.')
}

function scopesOf(text: string): Scope[] {
  const words = text.split(',').map((word) => word.trim())
  if (words.every((word) => scopes.some((known) => known === word)))
    return scopes.filter((known) => words.includes(known))
  throw new InvalidArgumentError('It is read, write, or read,write.')
}
