/** Pictures of products in the database, under the SHA-256 of their bytes, and in memory before it. */
import { hash as digest } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { hexToBytes } from '../../db/columns.ts'
import type { Sql } from '../../db/database.ts'
import { type EncodedPicture, type PictureForm, pictureTypes } from './limits.ts'

export type PictureStore = ReturnType<typeof pictureStore>

/** Names a picture in product details: SHA-256 of its forms in hex, and its size. */
export type StoredPicture = {
  readonly width: number
  readonly height: number
  readonly avif?: string
  readonly webp: string
  readonly jpeg?: string
}

export function pictureStore(sql: Sql) {
  return {
    /** Stores the forms of a picture; storing them again is no change. */
    async put({ width, height, forms }: EncodedPicture): Promise<StoredPicture> {
      const hashes: Partial<Record<'avif' | 'webp' | 'jpeg', string>> = {}
      for (const { type, body } of forms) {
        const hash = digest('sha256', body)
        await sql.query('insert into picture (hash, type, body) values ($1, $2, $3) on conflict do nothing', [
          hexToBytes(`0x${hash}`),
          type,
          body,
        ])
        hashes[type.slice('image/'.length) as keyof typeof hashes] = hash
      }
      const { webp } = hashes
      if (webp === undefined) throw new Error('A picture has a form in WebP.')
      return { ...hashes, webp, width, height }
    },
    /** Returns a form; null without one. It recomputes the hash: a row altered in the database counts as missing. */
    async get(hash: string): Promise<PictureForm | null> {
      const [row] = await sql.query<{ type: string; body: Uint8Array }>(
        'select type, body from picture where hash = $1',
        [hexToBytes(`0x${hash}`)],
      )
      const type = pictureTypes.find((one) => one === row?.type)
      return row === undefined || type === undefined || digest('sha256', row.body) !== hash
        ? null
        : { type, body: row.body }
    },
    /** Returns those of the hashes under which a form is stored. */
    async known(hashes: readonly string[]): Promise<ReadonlySet<string>> {
      const rows = await sql.query<{ hash: string }>(
        `select encode(hash, 'hex') as hash from picture where hash = any($1::text[]::bytea[])`,
        [hashes.map((hash) => `\\x${hash}`)],
      )
      return new Set(rows.map(({ hash }) => hash))
    },
  }
}

export type CachedPictures = ReturnType<typeof cachedPictures>

/** Keeps forms of at most 24 MB in memory, and which hashes are stored. A form under its hash never changes; a miss is not kept. */
export function cachedPictures(source: Pick<PictureStore, 'get' | 'known'>) {
  const forms = new LRUCache<string, PictureForm>({
    maxSize: 24_000_000,
    sizeCalculation: ({ body }) => body.length || 1,
  })
  const stored = new LRUCache<string, true>({ max: 20_000 })
  return {
    /** Returns a form that is in memory. */
    ready: (hash: string): PictureForm | undefined => forms.get(hash),
    async get(hash: string): Promise<PictureForm | null> {
      const form = forms.get(hash) ?? (await source.get(hash))
      if (form !== null) forms.set(hash, form)
      return form
    },
    async known(hashes: readonly string[]): Promise<ReadonlySet<string>> {
      const unknown = hashes.filter((hash) => stored.get(hash) === undefined)
      const found = unknown.length === 0 ? new Set<string>() : await source.known(unknown)
      for (const hash of found) stored.set(hash, true)
      return new Set(hashes.filter((hash) => found.has(hash) || stored.get(hash) === true))
    },
  }
}
