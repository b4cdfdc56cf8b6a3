/**
 * Secrets at rest: one versioned JSON envelope, AES-256-GCM under a key encryption key that lives elsewhere (spec §5).
 * Files are written whole or not at all, readable by their owner only.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { link, lstat, open, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { ServiceError } from '../errors.ts'
import type { JsonObject } from '../json.ts'
import { pathsBelow } from '../private-folder.ts'

/** The kind is part of the seal, so that one kind cannot be passed off as the other. */
export type SealedKind = 'tag-keys' | 'tag-app-keys' | 'backup'

/** Seals a JSON value under a key of 32 bytes. */
export function seal(kind: SealedKind, value: unknown, kek: Uint8Array): string {
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', kek, nonce).setAAD(associated(kind))
  const sealed = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()])
  const envelope = {
    touchstone: kind,
    version: 1,
    algorithm: 'A256GCM',
    nonce: nonce.toString('base64url'),
    tag: cipher.getAuthTag().toString('base64url'),
    sealed: sealed.toString('base64url'),
  }
  return `${JSON.stringify(envelope, null, 2)}\n`
}

/** Opens an envelope; `null` for another kind or version, a wrong key, or any altered byte. */
export function unseal(kind: SealedKind, text: string, kek: Uint8Array): { value: unknown } | null {
  try {
    const envelope = JSON.parse(text) as JsonObject
    if (envelope['touchstone'] !== kind || envelope['version'] !== 1 || envelope['algorithm'] !== 'A256GCM') return null
    const [nonce, tag, sealed] = ['nonce', 'tag', 'sealed'].map((part) =>
      Buffer.from(String(envelope[part]), 'base64url'),
    )
    if (nonce?.length !== 12 || tag?.length !== 16 || sealed === undefined) return null
    const decipher = createDecipheriv('aes-256-gcm', kek, nonce, { authTagLength: 16 }).setAAD(associated(kind))
    const plain = Buffer.concat([decipher.setAuthTag(tag).update(sealed), decipher.final()])
    const value: unknown = JSON.parse(plain.toString('utf8'))
    plain.fill(0)
    return { value }
  } catch {
    return null
  }
}

/** Replaces a file atomically: a crash leaves the old one or the new one. Mode 0600. */
export function writePrivateFile(path: string, text: string): Promise<void> {
  return placePrivateFile(path, text, rename)
}

/** Creates a file atomically. Throws EEXIST where there is one, which a rename would replace. Mode 0600. */
export function createPrivateFile(path: string, text: string): Promise<void> {
  return placePrivateFile(path, text, link)
}

async function placePrivateFile(
  path: string,
  text: string,
  place: (draft: string, path: string) => Promise<void>,
): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString('hex')}.tmp`
  try {
    await writeFile(draft, text, { flag: 'wx', mode: 0o600, flush: true })
    await place(draft, path)
  } catch (error) {
    throw fileFault(path, error)
  } finally {
    await rm(draft, { force: true })
  }
  await syncFolder(path)
}

/** Makes the new name of a file durable: it is so only once its folder is. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(dirname(path), 'r')
  await folder.sync().finally(() => folder.close())
}

/** Milliseconds after which a draft belongs to no process that still writes it. */
const draftMs = 3_600_000

/** Returns whether a file has the name of a draft: its content is not whole, or not in force yet. */
export function isDraft(path: string): boolean {
  return /\.[0-9a-f]{12}\.tmp$/.test(path)
}

/** Removes drafts below a folder that killed processes left there. `failed` is the fault of one that is still there, or null. */
export async function removeDrafts(folder: string): Promise<{ removed: number; failed: unknown }> {
  const paths = await pathsBelow(folder).catch(() => [])
  let removed = 0
  let failed: unknown = null
  for (const path of paths.filter(isDraft)) {
    const found = await lstat(path).catch(() => null)
    if (found === null || !found.isFile() || Date.now() - found.mtimeMs < draftMs) continue
    try {
      await rm(path, { force: true })
      removed += 1
    } catch (error) {
      failed = error
    }
  }
  return { removed, failed }
}

function associated(kind: SealedKind): Buffer {
  return Buffer.from(`touchstone ${kind} v1`)
}

/** Returns a fault as INTERNAL with its remedy. An error without one, such as a taken name, is returned as it is. */
export function fileFault(path: string, error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException | null | undefined)?.code ?? ''
  const remedy = Object.hasOwn(remedies, code) ? remedies[code] : undefined
  if (remedy === undefined) return error
  return new ServiceError('INTERNAL', `${path} cannot be written: ${remedy(dirname(path))}`, { cause: error })
}

const remedies: Readonly<Record<string, (folder: string) => string>> = {
  ENOSPC: (folder) =>
    `the disk of ${folder} is full. Free space on it, then run this again; what was there before is intact.`,
  EDQUOT: (folder) =>
    `the quota of this user on the disk of ${folder} is used up. Raise it or remove files, then run this again.`,
  EROFS: (folder) => `${folder} is on a read-only file system. Mount it writable, or name another folder.`,
  EACCES: (folder) => `this user may not write to ${folder}. Run the command as the user who owns it.`,
  EPERM: (folder) => `this user may not write to ${folder}. Run the command as the user who owns it.`,
  EIO: (folder) => `the disk of ${folder} reports an error. Check it before anything else is written there.`,
}
