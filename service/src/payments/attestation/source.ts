/**
 * The private half of attestation keys (spec §4.8). It is configured by the operator, or made in a key store or in the data folder. A key
 * made in the folder is one file, mode 0600, written once and whole, never overwritten, never removed.
 */
import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Hex } from '@touchstone/verdict'
import { bytesToHex, hexToBytes } from 'viem/utils'
import { parseJsonObject } from '../../lib/json.ts'
import { localEthereumKey, storedEthereumKey } from '../../keys/ethereum.ts'
import type { KeyStore, SigningKey } from '../../keys/key.ts'
import { makeFolder } from '../../lib/private-folder.ts'
import { createPrivateFile } from '../../lib/sealed/file.ts'
import { type AttestationKey, attestationKeyOf } from './attest.ts'
import { readKeystore } from './keystore.ts'

/**
 * At most one of `privateKey` (32 bytes), `keystore` (path of a V3 file) and `keyStore`, where keys are made. None: keys are made in
 * `folder`.
 */
export type KeySourceOptions = {
  readonly folder: string
  readonly privateKey?: Uint8Array | null
  readonly keystore?: string | null
  /** Path of a file whose first line is the password. */
  readonly keystorePasswordFile?: string | null
  readonly keyStore?: KeyStore | null
  /** Recognizes published keys, such as anvil's: accepted with `demo` only. */
  readonly isPublicKnowledge: (address: Hex) => boolean
  readonly demo?: boolean
}

/** `made` in unix seconds. */
export type MadeKey = { readonly key: AttestationKey; readonly made: number }

/** Lists a key that is being made. */
type Announce = (made: MadeKey) => Promise<unknown>

export type KeySource = {
  /** The keys that can sign here, oldest first; at least one where they are configured. */
  readonly own: () => readonly MadeKey[]
  /**
   * Makes another key in the folder; null where the key is configured. `announce` lists it before a file holds its private half. A token
   * makes both halves at once, and the key is listed after that.
   */
  readonly make: ((seconds: number, announce?: Announce) => Promise<MadeKey>) | null
  /** Reads the folder or the key store again: another process may have made a key there. */
  readonly reload: () => Promise<void>
  /** The place of made keys, for sentences. */
  readonly place: string
}

/** Throws one sentence that says what to do, without secrets. `seconds` is the current time. */
export async function openKeySource(options: KeySourceOptions, seconds: number): Promise<KeySource> {
  const { folder, keyStore = null } = options
  const configured = await configuredKey(options)
  if (configured === null) {
    const read = () => (keyStore === null ? readKeyFolder(folder) : readKeyStore(keyStore, seconds))
    let made = await read()
    return {
      own: () => made,
      make: async (at, announce) => {
        const key = await (keyStore === null ? makeKey(folder, at, announce) : storeKey(keyStore, at, announce))
        made = [...made, key]
        return key
      },
      reload: async () => void (made = await read()),
      place: keyStore === null ? folder : 'the PKCS#11 token',
    }
  }
  if (options.isPublicKnowledge(configured.address) && options.demo !== true)
    throw new Error(
      'The attestation key is publicly known (anvil’s): configure another one. Only a demonstration accepts it (DEMO=on).',
    )
  const own = [{ key: configured, made: seconds }]
  return { own: () => own, make: null, reload: () => Promise.resolve(), place: 'the settings' }
}

async function configuredKey(options: KeySourceOptions): Promise<AttestationKey | null> {
  const { privateKey = null, keystore = null, keystorePasswordFile = null, keyStore = null } = options
  const given = [privateKey, keystore, keyStore].filter((source) => source !== null)
  if (given.length > 1)
    throw new Error('Configure one attestation key: ATTESTATION_KEY, ATTESTATION_KEYSTORE or attestation in KEYS.')
  if (privateKey !== null) return usable(privateKey, 'ATTESTATION_KEY')
  if (keystore === null) return null
  if (keystorePasswordFile === null) throw new Error('ATTESTATION_KEYSTORE needs ATTESTATION_KEYSTORE_PASSWORD_FILE.')
  const [text, passwordText] = [await readText(keystore), await readText(keystorePasswordFile)]
  const found = await readKeystore(text, passwordText.split(/\r?\n/)[0] ?? '')
  if (!found.ok) throw new Error(`The keystore ${keystore} cannot be used: ${found.reason}.`)
  return usable(found.privateKey, `The keystore ${keystore}`)
}

function usable(privateKey: Uint8Array, name: string): AttestationKey {
  const key = localEthereumKey(privateKey)
  if (key === null) throw new Error(`${name} holds no private key of secp256k1.`)
  return attestationKeyOf(key)
}

const storedName = /^attestation-([1-9]\d{0,5})$/
const numberOf = ({ name }: SigningKey): number => Number(storedName.exec(name)?.[1] ?? 0)

/** Reads `attestation-1` and up of a key store, which records no times: `made` is `seconds`. */
async function readKeyStore(keyStore: KeyStore, seconds: number): Promise<readonly MadeKey[]> {
  const keys = (await keyStore.signingKeys('attestation-')).filter((key) => numberOf(key) > 0)
  return keys
    .toSorted((a, b) => numberOf(a) - numberOf(b))
    .map((key) => ({ key: attestationKeyOf(storedEthereumKey(key)), made: seconds }))
}

async function storeKey(keyStore: KeyStore, made: number, announce?: Announce): Promise<MadeKey> {
  const last = Math.max(0, ...(await keyStore.signingKeys('attestation-')).map(numberOf))
  const key = await keyStore.generateSigningKey(`attestation-${last + 1}`, 'secp256k1')
  const stored = { key: attestationKeyOf(storedEthereumKey(key)), made }
  await announce?.(stored)
  return stored
}

const fileName = /^attest-[0-9a-f]{16}\.json$/

/** Reads all keys of a folder, oldest first. Throws one sentence for a damaged file, because its key may still be needed. */
export async function readKeyFolder(folder: string): Promise<readonly MadeKey[]> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw unreadable(folder, error)
  })
  const keys: MadeKey[] = []
  for (const name of names.filter((each) => fileName.test(each))) {
    const path = join(folder, name)
    const key = parseMadeKey(await readText(path))
    if (key === null) throw new Error(`${path} is damaged: restore it from a backup, or move it away for good.`)
    keys.push(key)
  }
  return keys.toSorted((a, b) => a.made - b.made)
}

function parseMadeKey(text: string): MadeKey | null {
  const { touchstone, version, address, made, key: hex } = parseJsonObject(text) ?? {}
  if (touchstone !== 'attestation-key' || version !== 1 || !Number.isSafeInteger(made)) return null
  if (typeof hex !== 'string' || !/^0x[0-9a-f]{64}$/.test(hex)) return null
  const key = localEthereumKey(hexToBytes(hex as Hex))
  return key !== null && key.address === address ? { key: attestationKeyOf(key), made: Number(made) } : null
}

export async function makeKey(folder: string, made: number, announce?: Announce): Promise<MadeKey> {
  const privateKey = Uint8Array.from(randomBytes(32))
  const local = localEthereumKey(privateKey)
  if (local === null) return makeKey(folder, made, announce) // one value in 2^128 is not a key
  const key = attestationKeyOf(local)
  await makeFolder(folder)
  await announce?.({ key, made })
  const file = { touchstone: 'attestation-key', version: 1, address: key.address, made, key: bytesToHex(privateKey) }
  await createPrivateFile(join(folder, `${key.keyId}.json`), `${JSON.stringify(file, null, 2)}\n`)
  return { key, made }
}

async function readText(path: string): Promise<string> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw unreadable(path, error)
  })
}

function unreadable(path: string, { code }: NodeJS.ErrnoException): Error {
  return new Error(`${path} cannot be read (${code ?? 'unknown reason'}).`)
}
