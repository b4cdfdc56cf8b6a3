/** An empty PGlite in a second instead of in seven: its files are made once for this machine and loaded from then on. */
import { createHash, randomBytes } from 'node:crypto'
import { openAsBlob, readFileSync } from 'node:fs'
import { access, rename, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import { pg_trgm } from '@electric-sql/pglite/contrib/pg_trgm'
import { openDatabase, type Database } from '../src/store/database.ts'

let made: Promise<Blob> | undefined

/** `memory://` keeps nothing. */
export async function openEmptyPglite(dataDir = 'memory://'): Promise<Database> {
  return openDatabase({ dataDir, dump: await (made ??= emptyDump()) })
}

async function emptyDump(): Promise<Blob> {
  const lock = readFileSync(new URL('../package.json', import.meta.url))
  const version = createHash('sha256').update(lock).digest('hex').slice(0, 12)
  const path = join(tmpdir(), `touchstone-empty-pglite-${version}.tar`)
  const isThere = await access(path).then(
    () => true,
    () => false,
  )
  if (!isThere) {
    const database = await PGlite.create('memory://', { extensions: { pg_trgm } })
    const dump = await database.dumpDataDir('none')
    await database.close()
    const own = `${path}.${randomBytes(4).toString('hex')}`
    await writeFile(own, Buffer.from(await dump.arrayBuffer()))
    await rename(own, path) // whoever is there first, the files are the same
  }
  return openAsBlob(path)
}
