/**
 * The issuer's signing keys while the service runs (spec §9): one file of DATA_DIR, readable by its owner only. Made when signing is
 * switched on and there is none; keys that ever signed stay published when it is switched off again.
 */
import { randomUUID } from 'node:crypto'
import { link, mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { generateIssuerKeys, readIssuerKeys, rotateIssuerKeys, type IssuerKey } from '../passport/issuer-keys.ts'
import { createSigner, type Signer } from '../passport/signing.ts'
import { writePrivateFile } from '../tap/sealed-file.ts'

export type Issuer = {
  /** Every key that may be named by a signature; the same object until they change. */
  readonly keys: () => readonly IssuerKey[]
  /** Signs with the keys of now; offers nothing while signing is off. */
  readonly signerFor: (did: string) => Signer
  /**
   * New keys sign from now on, the former ones only verify; with `revokedAt` (ISO 8601) what they signed verifies no more.
   * Other instances learn of it when the file is copied to them and they are started again.
   */
  readonly rotate: (revokedAt?: string) => Promise<void>
  /** Reads the key file again: another process may have written it. */
  readonly reload: () => Promise<void>
}

type Published = { readonly id: string; readonly publicKey: string }
/** What all instances know of the keys; a public half is the coordinates of the JWK. */
type PublishedIssuerKeys = {
  readonly list: () => Promise<readonly Published[]>
  /** Does nothing for an id that is known. */
  readonly add: (keys: readonly Published[]) => Promise<void>
}

/** It throws one sentence for a file that is no key file, and for one that has not the keys of the other instances. */
export async function openIssuer({
  folder,
  signing,
  published = nobodyElse,
}: {
  readonly folder: string
  readonly signing: boolean
  readonly published?: PublishedIssuerKeys
}): Promise<Issuer> {
  const path = join(folder, 'issuer.jwks.json')
  let text = await readText(path)
  if (text === null && signing) {
    if ((await published.list()).length > 0) throw new Error(notOurs(path))
    await createOnce(path, folder, generateIssuerKeys()).catch((cause: unknown) => {
      throw new Error(
        `PASSPORT_SIGNING=on needs issuer keys, and ${path} cannot be written: make the file with a folder that can, and copy it there.`,
        { cause },
      )
    })
    text = await readText(path)
  }
  let keys = text === null ? [] : await agreed(keysOf(text, path), published, path)
  let signer: { readonly did: string; readonly keys: readonly IssuerKey[]; readonly made: Signer } | undefined
  let turn: Promise<unknown> = Promise.resolve()

  async function rotateNow(revokedAt: string | null): Promise<void> {
    const known = await readText(path)
    const next = known === null ? generateIssuerKeys() : rotateIssuerKeys(known, revokedAt)
    if (next === null) throw new Error(notReadable(path))
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await writePrivateFile(path, next)
    keys = await agreed(keysOf(next, path), published, path)
  }

  async function reload(): Promise<void> {
    const known = await readText(path)
    if (known === null || known === text) return
    keys = await agreed(keysOf(known, path), published, path)
    text = known
  }

  return {
    keys: () => keys,
    signerFor(did) {
      if (signer?.did !== did || signer.keys !== keys)
        signer = { did, keys, made: createSigner({ did, keys: signing ? keys : [] }) }
      return signer.made
    },
    rotate(revokedAt) {
      const done = turn.then(() => rotateNow(revokedAt ?? null))
      turn = done.catch(() => {})
      return done
    },
    reload,
  }
}

const nobodyElse: PublishedIssuerKeys = { list: () => Promise.resolve([]), add: () => Promise.resolve() }

/** The keys of this file, once it is sure that every instance publishes the same ones under the same ids. */
async function agreed(
  keys: readonly IssuerKey[],
  published: PublishedIssuerKeys,
  path: string,
): Promise<readonly IssuerKey[]> {
  const halves = new Map(keys.map(({ id, publicJwk: { x, y } }) => [id, y === undefined ? x : `${x}.${y}`]))
  const check = async () => {
    for (const { id, publicKey } of await published.list())
      if (halves.get(id) !== publicKey) throw new Error(notOurs(path))
  }
  await check()
  await published.add([...halves].map(([id, publicKey]) => ({ id, publicKey })))
  await check() // another instance may have been first
  return keys
}

async function readText(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw new Error(notReadable(path), { cause: error })
  }
}

/** Of two processes that start together one makes the file, and both take its keys. */
async function createOnce(path: string, folder: string, text: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const draft = `${path}.${randomUUID()}`
  await writePrivateFile(draft, text)
  try {
    await link(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    await rm(draft, { force: true })
  }
}

function keysOf(text: string, path: string): readonly IssuerKey[] {
  const read = readIssuerKeys(text)
  if (!read.ok) throw new Error(`${read.reason} (${path})`)
  return read.keys
}

function notOurs(path: string): string {
  return `The passports of this database are signed with issuer keys that are not in ${path}: copy that file from the instance that has them, then start again.`
}

function notReadable(path: string): string {
  return `The issuer keys in ${path} cannot be read. Restore the file from a backup: what was signed with it is checked against it.`
}
