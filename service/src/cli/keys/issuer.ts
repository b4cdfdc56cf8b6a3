/** `touchstone issuer …`: the keys that sign passports and their status lists (spec §9), and what becomes of signatures when they change. */
import type { Command } from 'commander'
import { isIssuerKeyId, type IssuerKey, type IssuerKeyChange } from '../../passport/signing/issuer-keys.ts'
import { argument, defineCommand, defineGroup, inSession, textArgument } from '../session/command.ts'
import type { RunWork, Session } from '../session/session.ts'
import { CommandError, formatJson, printTable } from '../session/output.ts'
import { formatSecond } from '../../domain/text.ts'

export function issuerCommand(run: RunWork): Command {
  const commands = [
    defineCommand('list', 'Lists every key that ever signed a passport.', { examples: ['touchstone issuer list'] })
      .option('--json', 'print a JSON array')
      .action(inSession(run, list)),
    defineCommand('rotate', 'Signs with new keys from now on; what the former ones signed stays valid.', {
      examples: ['touchstone issuer rotate'],
    })
      .option('--json', 'print a JSON array of all keys')
      .action(inSession(run, (session, options: Options) => change(session, { kind: 'rotate' }, options))),
    defineCommand('retire', 'Ends one key without a successor; what it signed stays valid.', {
      notes:
        'The form of its algorithm is not offered any more. The key that signs certificates (ES256) and the last key are not retired: rotate instead.',
      examples: ['touchstone issuer retire key-2'],
    })
      .argument('<keyId>', 'as listed', parseKeyId)
      .option('--json', 'print a JSON array of all keys')
      .action(
        inSession(run, (session, id: string, options: Options) => change(session, { kind: 'retire', id }, options)),
      ),
    defineCommand('revoke', 'For a stolen key: nothing that it ever signed is valid any more. This cannot be undone.', {
      notes: 'A key that signed gets a successor of its algorithm at once.',
      examples: ['touchstone issuer revoke key-1', 'touchstone issuer revoke key-1 --at 2026-11-20T08:00:00Z'],
    })
      .argument('<keyId>', 'as listed', parseKeyId)
      .option('--at <time>', 'published time of the theft (default: now)', argument.pastTime)
      .option('--json', 'print a JSON array of all keys')
      .action(
        inSession(run, (session, id: string, { at = Date.now(), ...options }: Options & { readonly at?: number }) =>
          change(session, { kind: 'revoke', id, at: formatSecond(Math.floor(at / 1_000)) }, options),
        ),
      ),
  ]
  return defineGroup('issuer', 'The keys that sign passports: list, rotate, retire, revoke.', commands, effects)
}

const effects = `Effects, within two seconds in every process that shares the data folder, and within a minute for verifiers:
  rotate   new keys sign; former ones stay in /.well-known/did.json, and passports signed with them stay valid
  retire   a key signs no more; its signatures stay valid
  revoke   a key loses its assertionMethod in /.well-known/did.json: passports and lists that it signed are invalid at once
The keys are in DATA_DIR/keys/issuer.jwks.json. Copy it to instances with a folder of their own, and into your backup.`

type Options = { readonly json?: true }

async function list({ store, io }: Session, { json }: Options): Promise<void> {
  const issuer = await store.issuerKeys()
  await issuer.reload()
  const keys = issuer.keys()
  if (json === true) return io.out(formatJson(keys.map(toListed)))
  if (keys.length === 0)
    return io.out('There is no issuer key yet: set PASSPORT_SIGNING=on, or touchstone issuer rotate')
  const rows = keys.map(({ id, algorithm, status, revoked }) => [id, algorithm, status, revoked ?? ''])
  printTable(io.out, ['key', 'algorithm', 'status', 'revoked'], rows)
}

async function change(session: Session, wanted: IssuerKeyChange, options: Options): Promise<void> {
  const issuer = await session.store.issuerKeys()
  const before = new Set(issuer.keys().map(({ id }) => id))
  const refused = await issuer.change(wanted)
  if (refused !== null) throw new CommandError(refused)
  if (options.json === true) return list(session, options)
  const added = issuer.keys().filter(({ id }) => !before.has(id))
  if (wanted.kind === 'retire') session.io.out(`${wanted.id} signs no more. What it signed stays valid.`)
  if (wanted.kind === 'revoke') session.io.out(`${wanted.id} is revoked: nothing that it signed is valid.`)
  for (const { id, algorithm } of added) session.io.out(`${id} (${algorithm}) signs from now on.`)
  if (wanted.kind === 'revoke' && added.length > 0)
    session.io.out('Copy keys/issuer.jwks.json to every other data folder: nothing signs there until then.')
}

/** Leaves out the private half. */
function toListed({ id, algorithm, status, revoked, publicJwk }: IssuerKey) {
  return { id, algorithm, status, revoked, publicJwk }
}

const parseKeyId = textArgument(isIssuerKeyId, 'A key is named key- and a number; see touchstone issuer list.')
