/**
 * The issuer's signing keys while the service runs (spec §9): one file of DATA_DIR, readable by its owner only. It is made when signing is
 * first switched on. With a key store it holds public halves only. Keys that ever signed stay published when signing is switched off again.
 */
import { join } from 'node:path'
import type { Sql } from '../../db/database.ts'
import { createQueue, type Queue } from '../../lib/async/concurrency.ts'
import type { KeyStore } from '../../keys/key.ts'
import { ServiceError } from '../../lib/errors.ts'
import { createPrivateFile, writePrivateFile } from '../../lib/sealed/file.ts'
import { formatSecond } from '../../domain/text.ts'
import { makeFolder, readOwnFile } from '../../lib/private-folder.ts'
import {
  changeIssuerKeys,
  generateIssuerKeys,
  parseIssuerKeys,
  storedIssuerKeys,
  type IssuerKey,
  type IssuerKeyChange,
} from './issuer-keys.ts'
import { createSigner, type Signer } from './signer.ts'

export type Issuer = Awaited<ReturnType<typeof openIssuer>>

export function issuerKeyFile(folder: string): string {
  return join(folder, 'issuer.jwks.json')
}

/** A public half: the coordinates of the JWK. `revokedAt` in Unix seconds. */
type Row = Readonly<{ id: string; publicKey: string; revokedAt: bigint | null }>
type IssuerKeyStore = ReturnType<typeof issuerKeyStore>

/** The public keys that all instances share (spec §9). The private halves are in the key file only. */
export function issuerKeyStore(sql: Sql) {
  return {
    list: () => sql.query<Row>('select id, public_key as "publicKey", revoked_at as "revokedAt" from issuer_key'),
    /**
     * Adds all keys in one statement, so that one of two instances is first with every key. A known id keeps its public half, and its first
     * revocation.
     */
    async add(keys: readonly Row[]): Promise<void> {
      await sql.query(addStatement, [
        keys.map(({ id }) => id),
        keys.map(({ publicKey }) => publicKey),
        keys.map(({ revokedAt }) => revokedAt),
      ])
    },
  }
}

const addStatement = `insert into issuer_key (id, public_key, revoked_at)
  select * from unnest($1::text[], $2::text[], $3::bigint[]) order by 1
  on conflict (id) do update set revoked_at = excluded.revoked_at
  where issuer_key.revoked_at is null and excluded.revoked_at is not null`

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
  if (text !== null) await assertPublished(await parseKeys(text, path, keyStore), published, path)
  else if (signing && (await published.list()).length > 0) throw new Error(foreignKeys(path))
}

/** Opens the key file. It throws one sentence for a broken file, and for one without the keys that other instances published. */
export async function openIssuer({
  folder,
  signing,
  published = noStore,
  keyStore = null,
  alone = createQueue(),
  onRevoked = () => {},
}: IssuerOptions & {
  /** Keeps every process that shares the folder from changing the file meanwhile. Default: within this issuer only. */
  readonly alone?: Queue
  /** Called with the ids of keys that another instance revoked and the file does not. */
  readonly onRevoked?: (ids: readonly string[]) => void
}) {
  const path = issuerKeyFile(folder)
  let keys: readonly IssuerKey[] = []
  let text = await readText(path)
  if (text === null && signing) {
    await alone(create)
    text = await readText(path)
  }
  if (text !== null) await use(text)
  const signers = new Map<string, { readonly keys: readonly IssuerKey[]; readonly signer: Signer }>()

  /** Creates the key file unless another process did so meanwhile. Two at once would make keys of one name in a token. */
  async function create(): Promise<void> {
    if ((await readText(path)) !== null) return
    if ((await published.list()).length > 0) throw new Error(foreignKeys(path))
    await createOnce(path, folder, await generateIssuerKeys(keyStore)).catch((cause: unknown) => {
      throw new Error(
        `PASSPORT_SIGNING=on needs issuer keys, and ${path} cannot be written: make the file with a folder that can, and copy it there.`,
        { cause },
      )
    })
  }

  /** Publishes and uses the keys of a file. Every instance publishes the same keys under the same ids. */
  async function use(next: string): Promise<void> {
    const own = await parseKeys(next, path, keyStore)
    await assertPublished(own, published, path)
    await published.add(own.map(rowOf))
    apply(own, await assertPublished(own, published, path)) // another instance may have been first
    text = next
  }

  /** Uses keys, but for those that are revoked in the database. */
  function apply(own: readonly IssuerKey[], rows: readonly Row[]): void {
    const times = new Map(rows.flatMap(({ id, revokedAt }) => (revokedAt === null ? [] : [[id, revokedAt] as const])))
    const revoked = own.filter(({ id, status }) => status !== 'revoked' && times.has(id))
    keys = revoked.length === 0 ? own : own.map((key) => (revoked.includes(key) ? revokedKey(key, times) : key))
    if (revoked.length > 0) onRevoked(revoked.map(({ id }) => id))
  }

  /** Returns the signer of the present keys, the same object until they change. */
  function signerOf(did: string, maySign: boolean): Signer {
    const known = signers.get(`${maySign} ${did}`)
    if (known?.keys === keys) return known.signer
    const signer = createSigner({ did, keys: maySign ? keys : [] })
    signers.set(`${maySign} ${did}`, { keys, signer })
    return signer
  }

  return {
    /** Every key that a signature may name; the same object until the keys change. */
    keys: () => keys,
    /** Signs passports with the active keys; offers nothing while signing is off. */
    signerFor: (did: string) => signerOf(did, signing),
    /** Signs status lists with the active keys, also while signing is off: passports that were issued before may still live. */
    listSignerFor: (did: string) => signerOf(did, true),
    /**
     * Changes the keys and returns null, or one sentence why nothing was changed. Processes that share the folder use them within seconds; to
     * other folders the file is copied. A revocation is in force there at their next `reload`.
     */
    change: (change: IssuerKeyChange): Promise<string | null> =>
      alone(async () => {
        const known = await readText(path)
        if (known === null && (change.kind !== 'rotate' || (await published.list()).length > 0))
          return change.kind === 'rotate' ? foreignKeys(path) : 'There are no issuer keys yet.'
        // An old copy of the file is not changed. A new key in it would have the name of a published one.
        if (known !== null) await assertPublished(await parseKeys(known, path, keyStore), published, path)
        const next =
          known === null ? await generateIssuerKeys(keyStore) : await changeIssuerKeys(known, change, keyStore)
        if (typeof next !== 'string') return next.refused
        await makeFolder(folder)
        await writePrivateFile(path, next)
        await use(next)
        return null
      }),
    /** Reads the key file and the revocations again: another process may have written them. */
    async reload(): Promise<void> {
      const known = await readText(path)
      try {
        if (known !== null && known !== text) await use(known)
      } finally {
        // Also where the file is wrong. It is read first, because a process that shares the folder has the revocation from there.
        const rows = await published.list()
        apply(keys, rows)
      }
    },
  }
}

function revokedKey(key: IssuerKey, times: ReadonlyMap<string, bigint>): IssuerKey {
  return { ...key, status: 'revoked', revoked: formatSecond(Number(times.get(key.id))) }
}

/** Returns what is published. Throws one sentence where a published key is not among the keys. */
async function assertPublished(
  keys: readonly IssuerKey[],
  published: IssuerKeyStore,
  path: string,
): Promise<readonly Row[]> {
  const halves = new Map(keys.map(rowOf).map(({ id, publicKey }) => [id, publicKey]))
  const rows = await published.list()
  if (rows.some(({ id, publicKey }) => halves.get(id) !== publicKey)) throw new Error(foreignKeys(path))
  return rows
}

/** A key that is revoked without a time is so from the beginning. */
function rowOf({ id, publicJwk: { x, y }, status, revoked }: IssuerKey): Row {
  const seconds = Math.floor(Date.parse(revoked ?? '1970-01-01T00:00:00Z') / 1_000)
  return { id, publicKey: y === undefined ? x : `${x}.${y}`, revokedAt: status === 'revoked' ? BigInt(seconds) : null }
}

async function readText(path: string): Promise<string | null> {
  try {
    return await readOwnFile(path)
  } catch (error) {
    if (error instanceof ServiceError) throw error
    throw new Error(
      `The issuer keys in ${path} cannot be read. Restore the file from a backup: what was signed with it is checked against it.`,
      { cause: error },
    )
  }
}

/** Creates the key file. Of two processes that start together one creates it, and both read its keys. */
async function createOnce(path: string, folder: string, text: string): Promise<void> {
  await makeFolder(folder)
  await createPrivateFile(path, text).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
}

async function parseKeys(text: string, path: string, keyStore: KeyStore | null): Promise<readonly IssuerKey[]> {
  const parsed = parseIssuerKeys(text, await storedIssuerKeys(keyStore))
  if (!parsed.ok) throw new Error(`${parsed.reason} (${path})`)
  return parsed.keys
}

function foreignKeys(path: string): string {
  return `The passports of this database are signed with issuer keys that are not in ${path}. Copy that file from the instance that has them, then start again.`
}
