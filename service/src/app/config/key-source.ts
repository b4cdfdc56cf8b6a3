/** KEYS: the place of the private keys (spec §5), by default files and settings of this service, or a PKCS#11 token. */
import type { Pkcs11Options } from '../../keys/pkcs11/session.ts'
import { decodePercent } from '../../lib/bytes.ts'
import { type Parser, someOf } from './parsers.ts'

const keyNames = ['operator', 'attester', 'facilitator', 'attestation', 'issuer', 'tags'] as const
export type KeyName = (typeof keyNames)[number]

/** The settings of the keys of single roles. The operator key fills a role without a key of its own. */
export const operatorSettings = [
  ['issuer', 'ISSUER_KEY'],
  ['binder', 'BINDER_KEY'],
  ['qa', 'QA_KEY'],
  ['guardian', 'GUARDIAN_KEY'],
  ['recycler', 'RECYCLER_KEY'],
  ['relayer', 'RELAYER_KEY'],
] as const

/** `names` are the keys that are in the token; all others stay in files and settings. */
type TokenSource = Readonly<{ token: Pkcs11Options; names: ReadonlySet<KeyName> }>

/** Accepts `file`, which is null, or `pkcs11:` and attributes. A value writes `;` as %3B and % as %25, as in RFC 7512. */
export const keySource: Parser<TokenSource | null> = {
  fallback: 'file',
  want: `file, or pkcs11:module=<library>;token=<label>;pin-file=<file> and perhaps ;keys=<some of ${keyNames.join(', ')}> or ;package=<folder of pkcs11js>`,
  parse: (text) => (text === 'file' ? null : text.startsWith('pkcs11:') ? parseToken(text.slice(7)) : undefined),
}

function parseToken(text: string): TokenSource | undefined {
  const attributes = new Map<string, string>()
  for (const part of text.split(';')) {
    const [, name = '', encoded = ''] = /^(module|token|pin-file|keys|package)=(.+)$/.exec(part) ?? []
    const value = decodePercent(encoded)
    if (value === null || value.trim() === '' || attributes.has(name)) return undefined
    attributes.set(name, value)
  }
  const names = someOf(keyNames).parse(attributes.get('keys') ?? '')
  const [module, token, pinFile] = ['module', 'token', 'pin-file'].map((name) => attributes.get(name))
  if (module === undefined || token === undefined || pinFile === undefined || names === undefined) return undefined
  return { token: { module, token, pinFile, packageFolder: attributes.get('package') ?? null }, names: new Set(names) }
}
