/**
 * Per-tag file keys, ready to use, least recently used out first. Overwritten when they leave, because each one
 * signs for one tag (spec §5): a process image should hold few of them.
 */
import type { AesKey } from './aes.ts'
import type { TagBatch } from './keys.ts'

export type FileKeyCache = Readonly<{
  get: (batch: TagBatch, uid: Uint8Array) => AesKey | undefined
  /** Call it only for a tag whose MAC held, so that forged taps cannot push real tags out. */
  put: (batch: TagBatch, uid: Uint8Array, key: AesKey) => void
  size: () => number
  clear: () => void
}>

/** Keeps at most `maxKeys` keys (about 1 kB each); 0 keeps none. */
export function createFileKeyCache(maxKeys = 10_000): FileKeyCache {
  const keys = new Map<string, AesKey>()
  return {
    get: (batch, uid) => {
      const name = nameOf(batch, uid)
      const key = keys.get(name)
      if (key !== undefined && keys.size > 1) {
        keys.delete(name)
        keys.set(name, key)
      }
      return key
    },
    put: (batch, uid, key) => {
      const name = nameOf(batch, uid)
      const before = keys.get(name)
      if (before !== key) before?.destroy()
      keys.delete(name)
      keys.set(name, key)
      for (const [oldest, secret] of keys) {
        if (keys.size <= maxKeys) break
        keys.delete(oldest)
        secret.destroy()
      }
    },
    size: () => keys.size,
    clear: () => {
      for (const key of keys.values()) key.destroy()
      keys.clear()
    },
  }
}

function nameOf({ id }: TagBatch, uid: Uint8Array): string {
  return `${id} ${String.fromCharCode(...uid)}`
}
