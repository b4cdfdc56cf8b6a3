/** Where the private half of the attestation key is (spec §4.8): configured by the operator, or made in the data folder. */
import { readFile } from 'node:fs/promises'
import type { Hex } from '@touchstone/verdict'
import type { AttestationKey } from './attest.ts'
import { localKey } from './attestation-key.ts'
import { makeKey, readKeyFolder, type MadeKey } from './keys-folder.ts'
import { readKeystore } from './keys-keystore.ts'

/** At most one of `privateKey` (32 bytes), `keystore` (path of a V3 file) and `kms`; none: a key made in `folder`. */
export type KeySourceOptions = {
  readonly folder: string
  readonly privateKey?: Uint8Array | null
  readonly keystore?: string | null
  /** Path of a file whose first line is the password. */
  readonly keystorePasswordFile?: string | null
  readonly kms?: AttestationKey | null
  /** Keys that everybody has, such as anvil's: taken with `demo` only. */
  readonly isPublicKnowledge: (address: Hex) => boolean
  readonly demo?: boolean
}

export type KeySource = {
  /** The keys that can sign here, oldest first; at least one where they are configured. */
  readonly own: () => readonly MadeKey[]
  /** Makes another one in the folder; null where the key is configured. */
  readonly make: ((seconds: number) => Promise<MadeKey>) | null
  /** Reads the folder again: another process may have made a key there. */
  readonly reload: () => Promise<void>
}

/** `seconds`: now. Whatever prevents it is an Error of one sentence that says what to do, without secrets. */
export async function openKeySource(options: KeySourceOptions, seconds: number): Promise<KeySource> {
  const configured = await configuredKey(options)
  if (configured === null) {
    let made = await readKeyFolder(options.folder)
    return {
      own: () => made,
      make: async (at) => {
        const key = await makeKey(options.folder, at)
        made = [...made, key]
        return key
      },
      reload: async () => void (made = await readKeyFolder(options.folder)),
    }
  }
  if (options.isPublicKnowledge(configured.address) && options.demo !== true)
    throw new Error(
      'The attestation key is one that everybody has (anvil’s): configure another one. Only a demonstration takes it (DEMO=on).',
    )
  const own = [{ key: configured, made: seconds }]
  return { own: () => own, make: null, reload: () => Promise.resolve() }
}

async function configuredKey(options: KeySourceOptions): Promise<AttestationKey | null> {
  const { privateKey = null, keystore = null, keystorePasswordFile = null, kms = null } = options
  const given = [privateKey, keystore, kms].filter((source) => source !== null)
  if (given.length > 1)
    throw new Error('Configure one attestation key: ATTESTATION_KEY, ATTESTATION_KEYSTORE or a KMS.')
  if (kms !== null) return kms
  if (privateKey !== null) return usable(localKey(privateKey), 'ATTESTATION_KEY')
  if (keystore === null) return null
  if (keystorePasswordFile === null) throw new Error('ATTESTATION_KEYSTORE needs ATTESTATION_KEYSTORE_PASSWORD_FILE.')
  const [text, passwordText] = [await read(keystore), await read(keystorePasswordFile)]
  const found = await readKeystore(text, passwordText.split(/\r?\n/)[0] ?? '')
  if (!found.ok) throw new Error(`The keystore ${keystore} cannot be used: ${found.reason}.`)
  return usable(localKey(found.privateKey), `The keystore ${keystore}`)
}

function usable(key: AttestationKey | null, name: string): AttestationKey {
  if (key === null) throw new Error(`${name} holds no private key of secp256k1.`)
  return key
}

async function read(path: string): Promise<string> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Error(`${path} cannot be read (${error.code ?? 'unknown reason'}).`)
  })
}
