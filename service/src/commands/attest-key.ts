/** `touchstone attest key …`: the keys that sign attestations, and how one follows another (spec §4.8). */
import { Command, InvalidArgumentError } from 'commander'
import type { Hex, PublishedKey } from '@touchstone/verdict'
import { argument } from './store-arguments.ts'
import { CommandError, type RunWork, type Session } from './store-command.ts'
import { tableOf } from './table.ts'

type Change = PublishedKey | { readonly refused: string }

/** The keys of the service that a command is for. */
export type SessionKeys = {
  readonly active: () => { readonly keyId: string }
  readonly published: () => readonly PublishedKey[]
  readonly add: (address?: Hex) => Promise<Change>
  readonly switchTo: (keyId: string) => Promise<Change>
  readonly retire: (keyId: string) => Promise<Change>
  readonly revoke: (keyId: string, at?: number) => Promise<Change>
}

/** `keysOf` opens the keys: the gateway's own where it runs, so that it signs with what a command chose from then on. */
export function attestCommand(run: RunWork, keysOf: (session: Session) => Promise<SessionKeys>): Command {
  const key = new Command('key').description('Keys that sign attestations: list, add, switch, retire, revoke.')
  const withKeys = (work: (keys: SessionKeys, print: (line: string) => void) => Promise<void>) =>
    run(async (session) => work(await keysOf(session), session.io.out))

  key
    .command('list')
    .description('Lists every key that ever signed, or is announced to.')
    .addHelpText('after', '\nExample:\n  touchstone attest key list')
    .action(() => withKeys(async (keys, print) => printKeys(keys, print)))
  key
    .command('add')
    .description('Announces the next key: a new one of the data folder, or one that you will configure.')
    .option('--address <address>', 'address of the key that you will configure', argument.address)
    .addHelpText('after', '\nExample:\n  touchstone attest key add')
    .action((options: { address?: Hex }) =>
      withKeys(async (keys, print) => {
        const { keyId } = changed(await keys.add(options.address))
        print(`${keyId} is announced. Whoever keeps a copy of the published keys should have it before it signs.`)
        print(
          options.address === undefined
            ? `Then: touchstone attest key switch ${keyId}`
            : 'Then configure it, restart every process of the gateway, and retire the one before.',
        )
      }),
    )
  key
    .command('switch')
    .description('Signs with an announced key of the data folder from now on, and retires the one before.')
    .argument('<keyId>', 'as listed', keyId)
    .addHelpText('after', '\nExample:\n  touchstone attest key switch attest-99783a8ae14acdfe')
    .action((id: string) =>
      withKeys(async (keys, print) => {
        const before = keys.active().keyId
        changed(await keys.switchTo(id))
        print(`${id} signs from now on. What ${before} signed stays valid.`)
      }),
    )
  key
    .command('retire')
    .description('Ends the time of a key that signs no more; what it signed stays valid.')
    .argument('<keyId>', 'as listed', keyId)
    .addHelpText('after', '\nExample:\n  touchstone attest key retire attest-99783a8ae14acdfe')
    .action((id: string) =>
      withKeys(async (keys, print) => {
        changed(await keys.retire(id))
        print(`${id} is retired.`)
      }),
    )
  key
    .command('revoke')
    .description('For a stolen key: nothing that it ever signed is valid any more. There is no way back.')
    .argument('<keyId>', 'as listed', keyId)
    .option('--at <time>', 'when it was stolen, ISO 8601, for people to know (default: now)', seconds)
    .addHelpText(
      'after',
      '\nExample:\n  touchstone attest key revoke attest-99783a8ae14acdfe --at 2026-11-20T08:00:00Z',
    )
    .action((id: string, { at }: { at?: number }) =>
      withKeys(async (keys, print) => {
        changed(await keys.revoke(id, at))
        const { keyId: now } = keys.active()
        print(`${id} is revoked: every attestation it signed is void.`)
        print(
          now === id
            ? 'The gateway sells nothing until another key is configured and it was restarted.'
            : `${now} signs from now on.`,
        )
      }),
    )
  key.addHelpText('after', help)
  return new Command('attest').description('What the paid gateway signs with.').addCommand(key)
}

const help = `
A rotation, without a gap:
  1. touchstone attest key add        announces the next key in /.well-known/attestation.json
  2. touchstone attest key switch …   some days later: it signs, the one before is retired
With a configured key (ATTESTATION_KEY, ATTESTATION_KEYSTORE): add --address, configure it and restart, then retire the one before.`

function printKeys(keys: SessionKeys, print: (line: string) => void): void {
  const active = keys.active().keyId
  const rows = keys
    .published()
    .map((key) => [
      key.keyId,
      key.address,
      key.status,
      timeOf(key.validFrom),
      key.validUntil === null ? '' : timeOf(key.validUntil),
      key.keyId === active && key.status === 'active' ? 'signs' : '',
    ])
  for (const line of tableOf(['key', 'address', 'status', 'from', 'until', ''], rows)) print(line)
}

function changed(change: Change): PublishedKey {
  if ('refused' in change) throw new CommandError(change.refused)
  return change
}

function keyId(text: string): string {
  if (!/^attest-[0-9a-f]{16}$/.test(text))
    throw new InvalidArgumentError('A key is named attest- and 16 hex digits; see touchstone attest key list.')
  return text
}

function seconds(text: string): number {
  const time = Date.parse(text)
  if (Number.isNaN(time) || time < 0 || time > Date.now())
    throw new InvalidArgumentError('Give a time that is past, such as 2026-11-20T08:00:00Z.')
  return Math.floor(time / 1000)
}

function timeOf(unixSeconds: number): string {
  return new Date(unixSeconds * 1000).toISOString().replace('.000Z', 'Z')
}
