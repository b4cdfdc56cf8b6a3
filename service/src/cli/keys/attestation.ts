/** `touchstone attest key …`: the keys that sign attestations, and their rotation (spec §4.8). */
import type { Command } from 'commander'
import type { Hex, PublishedKey } from '@touchstone/verdict'
import { formatSecond } from '../../domain/text.ts'
import { argument, defineCommand, defineGroup, inSession, textArgument } from '../session/command.ts'
import type { AttestationKeys } from '../../payments/attestation/keys.ts'
import type { RunWork, Session } from '../session/session.ts'
import { CommandError, formatJson, printTable } from '../session/output.ts'

/** The keys are those of the running gateway, so that it signs with the key that a command chose. */
export function attestCommand(run: RunWork): Command {
  const changing = (act: Act) =>
    inSession(run, (session, id: string, options: Options) => change(session, act, id, options))
  const define = (name: string, description: string, words = '') =>
    defineCommand(name, description, { examples: [`touchstone attest key ${name}${words}`] }).option(
      '--json',
      'print a JSON array of all keys',
    )

  const commands = [
    define('list', 'Lists every key that ever signed, or is announced.').action(inSession(run, list)),
    define('add', 'Announces the next key: a new one of the data folder, or one that you will configure.')
      .option('--address <address>', 'address of the key that you will configure', argument.address)
      .action(inSession(run, (session, options: Options) => change(session, add, '', options))),
    define(
      'switch',
      'Signs with an announced key of the data folder from now on, and retires the one before.',
      ' attest-99783a8ae14acdfe',
    )
      .argument('<keyId>', 'as listed', parseKeyId)
      .action(changing(switchTo)),
    define('retire', 'Retires a key that signs no more; what it signed stays valid.', ' attest-99783a8ae14acdfe')
      .argument('<keyId>', 'as listed', parseKeyId)
      .action(changing(retire)),
    define(
      'revoke',
      'For a stolen key: nothing that it ever signed is valid any more. This cannot be undone.',
      ' attest-99783a8ae14acdfe --at 2026-11-20T08:00:00Z',
    )
      .argument('<keyId>', 'as listed', parseKeyId)
      .option('--at <time>', 'published time of the theft, ISO 8601 (default: now)', argument.pastTime)
      .action(changing(revoke)),
  ]
  const key = defineGroup('key', 'Keys that sign attestations: list, add, switch, retire, revoke.', commands, rotation)
  return defineGroup('attest', 'The keys of the paid gateway.', [key])
}

const rotation = `A rotation, without a gap:
  1. touchstone attest key add        announces the next key in /.well-known/attestation.json
  2. touchstone attest key switch …   some days later: it signs, the one before is retired
With a configured key (ATTESTATION_KEY, ATTESTATION_KEYSTORE), add --address and configure the key. Restart, then retire the one before.`

type Options = { readonly json?: true; readonly address?: Hex; readonly at?: number }
/** Changes a key, and returns what to print. */
type Act = (keys: AttestationKeys, id: string, options: Options) => Promise<readonly string[]>

async function list({ store, io }: Session, { json }: Options): Promise<void> {
  const keys = await store.attestationKeys()
  if (json === true) return io.out(formatJson(await keys.published()))
  const signing = keys.signing()?.keyId
  const rows = (await keys.published()).map(({ keyId, address, status, validFrom, validUntil }) => {
    const until = validUntil === null ? '' : formatSecond(validUntil)
    return [keyId, address, status, formatSecond(validFrom), until, keyId === signing ? 'signs' : '']
  })
  printTable(io.out, ['key', 'address', 'status', 'from', 'until', ''], rows)
}

async function change(session: Session, act: Act, id: string, options: Options): Promise<void> {
  const lines = await act(await session.store.attestationKeys(), id, options)
  if (options.json === true) return list(session, options)
  for (const line of lines) session.io.out(line)
}

const add: Act = async (keys, _id, { address }) => {
  const { keyId } = assertChanged(await keys.add(address))
  return [
    `${keyId} is announced. Copies of the published keys should have it before it signs.`,
    address === undefined
      ? `Then: touchstone attest key switch ${keyId}`
      : 'Then configure it, restart every process of the gateway, and retire the one before.',
  ]
}

const switchTo: Act = async (keys, id) => {
  const before = keys.signing()?.keyId
  assertChanged(await keys.switchTo(id))
  const signs = `${id} signs from now on.`
  return [before === undefined ? signs : `${signs} What ${before} signed stays valid.`]
}

const retire: Act = async (keys, id) => {
  assertChanged(await keys.retire(id))
  return [`${id} is retired.`]
}

const revoke: Act = async (keys, id, { at }) => {
  assertChanged(await keys.revoke(id, at && Math.floor(at / 1_000)))
  return [`${id} is revoked: every attestation it signed is void.`, await successor(keys)]
}

async function successor(keys: AttestationKeys): Promise<string> {
  const here = keys.signing()?.keyId
  if (here !== undefined) return `${here} signs from now on.`
  const other = (await keys.published()).findLast(({ status }) => status === 'active')?.keyId
  return other === undefined
    ? 'The gateway sells nothing until another key is configured and it was restarted.'
    : `${other} is active: it signs where its private half is.`
}

function assertChanged(changed: PublishedKey | { readonly refused: string }): PublishedKey {
  if ('refused' in changed) throw new CommandError(changed.refused)
  return changed
}

const parseKeyId = textArgument(
  (text) => /^attest-[0-9a-f]{16}$/.test(text),
  'A key is named attest- and 16 hex digits; see touchstone attest key list.',
)
