/**
 * Attestation keys that this service made for itself: one file each in the data folder, mode 0600, written once and whole,
 * never overwritten, never removed.
 */
import { randomBytes } from 'node:crypto'
import { link, mkdir, open, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { bytesToHex, hexToBytes } from 'viem'
import type { AttestationKey } from './attest.ts'
import { localKey } from './attestation-key.ts'

/** `made` in unix seconds. */
export type MadeKey = { readonly key: AttestationKey; readonly made: number }

const fileName = /^attest-[0-9a-f]{16}\.json$/

/** All keys of a folder, oldest first. A damaged file is an Error of one sentence: what the key signed may still be needed. */
export async function readKeyFolder(folder: string): Promise<readonly MadeKey[]> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw new Error(`${folder} cannot be read (${error.code ?? 'unknown reason'}).`)
  })
  const keys: MadeKey[] = []
  for (const name of names.filter((each) => fileName.test(each))) keys.push(await readKeyFile(join(folder, name)))
  return keys.toSorted((a, b) => a.made - b.made)
}

export async function makeKey(folder: string, made: number): Promise<MadeKey> {
  const privateKey = newPrivateKey()
  const key = localKey(privateKey)
  if (key === null) throw new Error('no private key of secp256k1') // newPrivateKey makes none such
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const file = { touchstone: 'attestation-key', version: 1, address: key.address, made, key: bytesToHex(privateKey) }
  await writeOnce(join(folder, `${key.keyId}.json`), `${JSON.stringify(file, null, 2)}\n`)
  return { key, made }
}

/** One draw in 2^128 is no key. */
function newPrivateKey(): Uint8Array {
  const bytes = Uint8Array.from(randomBytes(32))
  return localKey(bytes) === null ? newPrivateKey() : bytes
}

async function readKeyFile(path: string): Promise<MadeKey> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Error(`${path} cannot be read (${error.code ?? 'unknown reason'}).`)
  })
  const found = madeKeyOf(text)
  if (found === null) throw new Error(`${path} is damaged: restore it from a backup, or move it away for good.`)
  return found
}

function madeKeyOf(text: string): MadeKey | null {
  try {
    const { touchstone, version, address, made, key: hex } = JSON.parse(text) as Record<string, unknown>
    if (touchstone !== 'attestation-key' || version !== 1 || !Number.isSafeInteger(made)) return null
    if (typeof hex !== 'string' || !/^0x[0-9a-f]{64}$/.test(hex)) return null
    const key = localKey(hexToBytes(hex as `0x${string}`))
    return key !== null && key.address === address ? { key, made: Number(made) } : null
  } catch {
    return null
  }
}

/** A link fails where a file stands already, which a rename would replace. */
async function writeOnce(path: string, text: string): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString('hex')}.tmp`
  try {
    const file = await open(draft, 'wx', 0o600)
    try {
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    await link(draft, path)
  } finally {
    await rm(draft, { force: true })
  }
  // The new name is durable only once its folder is.
  const folder = await open(join(path, '..'), 'r')
  await folder.sync().finally(() => folder.close())
}
