/** `touchstone hsm …`: keys in the PKCS#11 token that KEYS names (spec §5). It opens no session: the token is all that it needs. */
import type { Command } from 'commander'
import { readConfig } from '../../app/config/config.ts'
import { storedEthereumKey } from '../../keys/ethereum.ts'
import type { KeyStore, SigningKey } from '../../keys/key.ts'
import { openToken } from '../../keys/pkcs11/token.ts'
import { defineCommand, defineGroup, repeated, textArgument } from '../session/command.ts'
import { CommandError, formatJson, printTable } from '../session/output.ts'

type Print = (line: string) => void
type Options = { readonly json?: true }

export function hsmCommand(print: Print): Command {
  return defineGroup('hsm', 'Keys in a PKCS#11 token (HSM), which the setting KEYS names.', [
    defineCommand('generate', 'Makes key pairs in the token and prints their addresses; they can never leave it.', {
      notes: `The names are operator, attester, facilitator, and facilitator-2 and so on for keys that take turns. The names operator-issuer,
-binder, -qa, -guardian, -recycler and -relayer are keys of one role; operator fills the roles without one. Give the addresses their
roles and ether before the service starts (touchstone chain roles). Attestation keys, issuer keys and masters of tag batches are made
when they are needed.`,
      examples: ['touchstone hsm generate operator attester facilitator'],
    })
      .argument('<names...>', 'names of the keys', repeated(parseName))
      .option('--json', 'print a JSON array')
      .action((names: readonly string[], options: Options) =>
        inToken((store) => generate(store, names, options, print)),
      ),
    defineCommand('list', 'Shows the signing keys of the token by name, curve and address.', {
      examples: ['touchstone hsm list'],
    })
      .option('--json', 'print a JSON array')
      .action((options: Options) => inToken((store) => list(store, options, print))),
  ])
}

async function inToken(work: (store: KeyStore) => Promise<void>): Promise<void> {
  const { keys } = readConfig(process.env)
  if (keys === null)
    throw new CommandError('KEYS names no token: set it to pkcs11:module=<library>;token=<label>;pin-file=<file>.')
  await using store = await openToken(keys.token)
  await work(store)
}

async function generate(store: KeyStore, names: readonly string[], { json }: Options, print: Print): Promise<void> {
  const made: SigningKey[] = []
  for (const name of names) {
    const key = await store.generateSigningKey(name, 'secp256k1')
    made.push(key)
    if (json !== true) print(rowOf(key).join('  '))
  }
  if (json === true) print(formatJson(made.map(toListed)))
}

async function list(store: KeyStore, { json }: Options, print: Print): Promise<void> {
  const keys = await store.signingKeys('')
  if (json === true) return print(formatJson(keys.map(toListed)))
  if (keys.length === 0) return print('The token has no signing key yet: touchstone hsm generate operator')
  printTable(print, ['key', 'curve', 'address'], keys.map(rowOf))
}

function toListed(key: SigningKey) {
  const [name, curve, address] = rowOf(key)
  return { name, curve, address: address === '' ? null : address }
}

function rowOf(key: SigningKey): string[] {
  return [key.name, key.curve, key.curve === 'secp256k1' ? storedEthereumKey(key).address : '']
}

const keyName =
  /^(?:operator(?:-(?:issuer|binder|qa|guardian|recycler|relayer))?|attester|facilitator(?:-[1-9]\d{0,2})?)$/

const parseName = textArgument(
  (text) => keyName.test(text),
  'A name is operator, operator-issuer and so on, attester, facilitator, or facilitator-2 and so on.',
)
