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
}

/** It throws one sentence for a file that is no key file. */
export async function openIssuer({
  folder,
  signing,
}: {
  readonly folder: string
  readonly signing: boolean
}): Promise<Issuer> {
  const path = join(folder, 'issuer.jwks.json')
  let text = await readText(path)
  if (text === null && signing) {
    await createOnce(path, folder, generateIssuerKeys())
    text = await readText(path)
  }
  let keys = text === null ? [] : keysOf(text, path)
  let signer: { readonly did: string; readonly keys: readonly IssuerKey[]; readonly made: Signer } | undefined
  let turn: Promise<unknown> = Promise.resolve()

  async function rotateNow(revokedAt: string | null): Promise<void> {
    const known = await readText(path)
    const next = known === null ? generateIssuerKeys() : rotateIssuerKeys(known, revokedAt)
    if (next === null) throw new Error(notReadable(path))
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await writePrivateFile(path, next)
    keys = keysOf(next, path)
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
  }
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

function notReadable(path: string): string {
  return `The issuer keys in ${path} cannot be read. Restore the file from a backup: what was signed with it is checked against it.`
}
