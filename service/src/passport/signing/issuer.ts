/**
 * The issuer's signing keys while the service runs (spec §9): one file of DATA_DIR, readable by its owner only. It is made when signing is
 * first switched on. With a key store it holds public halves only. Keys that ever signed stay published when signing is switched off again.
 */
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Sql } from '../../db/database.ts'
import { createQueue, type Queue } from '../../lib/async/concurrency.ts'
import type { KeyStore } from '../../keys/key.ts'
import { createPrivateFile, writePrivateFile } from '../../lib/sealed/file.ts'
import {
  changeIssuerKeys,
  generateIssuerKeys,
  parseIssuerKeys,
  storedIssuerKeys,
  type IssuerKey,
  type IssuerKeyChange,
  type StoredKeys,
} from './issuer-keys.ts'
import { createSigner, type Signer } from './signer.ts'

export type Issuer = {
  /** Every key that a signature may name; the same object until the keys change. */
  readonly keys: () => readonly IssuerKey[]
  /** Signs passports with the active keys; offers nothing while signing is off. */
  readonly signerFor: (did: string) => Signer
  /** Signs status lists with the active keys, also while signing is off: passports that were issued before may still live. */
  readonly listSignerFor: (did: string) => Signer
  /**
   * Changes the keys and returns null, or one sentence why nothing was changed. Processes that share the folder use them within seconds; to
   * other folders the file is copied.
   */
  readonly change: (change: IssuerKeyChange) => Promise<string | null>
  /** Reads the key file again: another process may have written it. */
  readonly reload: () => Promise<void>
}

/** Returns the path of the key file in a folder of keys. */
export function issuerKeyFile(folder: string): string {
  return join(folder, 'issuer.jwks.json')
}

/** A public half: the coordinates of the JWK. */
type Row = Readonly<{ id: string; publicKey: string }>
type IssuerKeyStore = ReturnType<typeof issuerKeyStore>

/** The public keys that all instances share (spec §9). The private halves are in the key file only. */
export function issuerKeyStore(sql: Sql) {
  return {
    list: () => sql.query<Row>('select id, public_key as "publicKey" from issuer_key'),
    /** Adds all keys in one statement, so that one of two instances is first with every key. A known id keeps its public half. */
    async add(keys: readonly Row[]): Promise<void> {
      await sql.query(addStatement, [keys.map(({ id }) => id), keys.map(({ publicKey }) => publicKey)])
    },
  }
}

const addStatement =
  'insert into issuer_key (id, public_key) select * from unnest($1::text[], $2::text[]) order by 1 on conflict do nothing'

const noStore: IssuerKeyStore = { list: () => Promise.resolve([]), add: () => Promise.resolve() }

type IssuerOptions = Readonly<{
  folder: string
  signing: boolean
  published?: IssuerKeyStore
  /** The private halves are there; null: in the file. */
  keyStore?: KeyStore | null
}>

/** Throws what `openIssuer` would throw for the key file, and changes nothing. */
export async function assertIssuerKeys(options: IssuerOptions): Promise<void> {
  const { folder, signing, published = noStore, keyStore = null } = options
  const path = issuerKeyFile(folder)
  const text = await readText(path)
  if (text !== null)
    await assertPublished(halvesOf(parseKeys(text, path, await storedIssuerKeys(keyStore))), published, path)
  else if (signing && (await published.list()).length > 0) throw new Error(foreignKeys(path))
}

/** Opens the key file. It throws one sentence for a broken file, and for one without the keys that other instances published. */
export async function openIssuer({
  folder,
  signing,
  published = noStore,
  keyStore = null,
  alone = createQueue(),
}: IssuerOptions & {
  /** Keeps every process that shares the folder from changing the file meanwhile. Default: within this issuer only. */
  readonly alone?: Queue
}): Promise<Issuer> {
  const path = issuerKeyFile(folder)
  const publish = async (text: string) =>
    publishKeys(parseKeys(text, path, await storedIssuerKeys(keyStore)), published, path)
  let text = await readText(path)
  if (text === null && signing) {
    if ((await published.list()).length > 0) throw new Error(foreignKeys(path))
    await createOnce(path, folder, await generateIssuerKeys(keyStore)).catch((cause: unknown) => {
      throw new Error(
        `PASSPORT_SIGNING=on needs issuer keys, and ${path} cannot be written: make the file with a folder that can, and copy it there.`,
        { cause },
      )
    })
    text = await readText(path)
  }
  let keys = text === null ? [] : await publish(text)
  const signers = new Map<string, { readonly keys: readonly IssuerKey[]; readonly signer: Signer }>()

  /** Returns the signer of the present keys, the same object until they change. */
  function signerOf(did: string, maySign: boolean): Signer {
    const known = signers.get(`${maySign} ${did}`)
    if (known?.keys === keys) return known.signer
    const signer = createSigner({ did, keys: maySign ? keys : [] })
    signers.set(`${maySign} ${did}`, { keys, signer })
    return signer
  }

  return {
    keys: () => keys,
    signerFor: (did) => signerOf(did, signing),
    listSignerFor: (did) => signerOf(did, true),
    change: (change) =>
      alone(async () => {
        const known = await readText(path)
        if (known === null && (change.kind !== 'rotate' || (await published.list()).length > 0))
          return change.kind === 'rotate' ? foreignKeys(path) : 'There are no issuer keys yet.'
        const next =
          known === null ? await generateIssuerKeys(keyStore) : await changeIssuerKeys(known, change, keyStore)
        if (typeof next !== 'string') return next.refused
        await mkdir(folder, { recursive: true, mode: 0o700 })
        await writePrivateFile(path, next)
        keys = await publish(next)
        text = next
        return null
      }),
    async reload() {
      const known = await readText(path)
      if (known === null || known === text) return
      keys = await publish(known)
      text = known
    },
  }
}

/** Publishes the keys of the file, and checks that every instance publishes the same keys under the same ids. */
async function publishKeys(
  keys: readonly IssuerKey[],
  published: IssuerKeyStore,
  path: string,
): Promise<readonly IssuerKey[]> {
  const halves = halvesOf(keys)
  await assertPublished(halves, published, path)
  await published.add([...halves].map(([id, publicKey]) => ({ id, publicKey })))
  await assertPublished(halves, published, path) // another instance may have been first
  return keys
}

/** Returns the public halves by id. */
function halvesOf(keys: readonly IssuerKey[]): ReadonlyMap<string, string> {
  return new Map(keys.map(({ id, publicJwk: { x, y } }) => [id, y === undefined ? x : `${x}.${y}`]))
}

async function assertPublished(
  halves: ReadonlyMap<string, string>,
  published: IssuerKeyStore,
  path: string,
): Promise<void> {
  for (const { id, publicKey } of await published.list())
    if (halves.get(id) !== publicKey) throw new Error(foreignKeys(path))
}

async function readText(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw new Error(unreadable(path), { cause: error })
  }
}

/** Creates the key file. Of two processes that start together one creates it, and both read its keys. */
async function createOnce(path: string, folder: string, text: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await createPrivateFile(path, text).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
}

function parseKeys(text: string, path: string, stored: StoredKeys): readonly IssuerKey[] {
  const parsed = parseIssuerKeys(text, stored)
  if (!parsed.ok) throw new Error(`${parsed.reason} (${path})`)
  return parsed.keys
}

function foreignKeys(path: string): string {
  return `The passports of this database are signed with issuer keys that are not in ${path}. Copy that file from the instance that has them, then start again.`
}

function unreadable(path: string): string {
  return `The issuer keys in ${path} cannot be read. Restore the file from a backup: what was signed with it is checked against it.`
}
