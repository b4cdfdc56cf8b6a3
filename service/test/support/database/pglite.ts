/**
 * A PGlite with the present tables and no rows, without the seconds of `initdb` and migrations. A data folder is made once for this machine
 * and copied from then on. This process copies it: another program would first cost a copy of this process, which takes as long.
 */
import { createHash } from 'node:crypto'
import { chmodSync, cpSync, readdirSync, readFileSync } from 'node:fs'
import { access, appendFile, mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openDatabase, type Database } from '../../../src/db/database.ts'
import { checksumOf, migrate, readMigrations } from '../../../src/db/migrate.ts'

/** With the tables of today's migrations, or with nothing at all. */
export type Tables = 'migrated' | 'none'

/** The folder stands beside the compile cache, because one run of the suite has a temporary folder of its own. */
const templateFolder = fileURLToPath(new URL('../../../../node_modules/.cache/pglite/', import.meta.url))

/** The two databases that `create database` copies are half of the files. */
const dropTemplates = [
  'update pg_database set datistemplate = false',
  'drop database template0',
  'drop database template1',
]

/** The default is 128 MB, which PGlite writes through at each start. */
const smallBuffers = 'shared_buffers = 16MB\n'

/** `folders` are those within `path`. */
type Template = { readonly path: string; readonly folders: readonly string[] }
const templates: Partial<Record<Tables, Promise<Template>>> = {}

/** Opens a copy in a folder of its own, which closing removes. */
export async function openEmptyPglite(tables: Tables = 'migrated'): Promise<Database> {
  const folder = await mkdtemp(join(tmpdir(), 'touchstone-pglite-'))
  const dataDir = join(folder, 'store')
  await copyEmptyPglite(dataDir, tables)
  const database = await openDatabase({ dataDir })
  const close = async () => {
    await database.close()
    await rm(folder, { recursive: true, force: true })
  }
  return { ...database, close, [Symbol.asyncDispose]: close }
}

/** Puts the files of an empty database where a service will open it. `dataDir` must not exist. */
export async function copyEmptyPglite(dataDir: string, tables: Tables = 'migrated'): Promise<void> {
  const { path, folders } = await (templates[tables] ??= templateOf(tables))
  cpSync(path, dataDir, { recursive: true })
  // The copies of files have their modes, those of folders have not.
  for (const folder of ['', ...folders]) chmodSync(join(dataDir, folder), 0o700)
}

async function templateOf(tables: Tables): Promise<Template> {
  const path = `${templateFolder}${tables}-${versionOf(tables)}`
  if (!(await exists(path))) await fillTemplate(path, tables)
  const entries = readdirSync(path, { recursive: true, withFileTypes: true })
  const folders = entries.flatMap((entry) =>
    entry.isDirectory() ? [relative(path, join(entry.parentPath, entry.name))] : [],
  )
  return { path, folders }
}

async function fillTemplate(path: string, tables: Tables): Promise<void> {
  await mkdir(templateFolder, { recursive: true })
  const own = await mkdtemp(`${path}-`)
  const dataDir = join(own, 'store')
  if (tables === 'migrated') await copyEmptyPglite(dataDir, 'none')
  const database = await openDatabase({ dataDir })
  if (tables === 'migrated') await migrate(database)
  else for (const statement of dropTemplates) await database.exec(statement)
  await database.close()
  if (tables === 'none') await appendFile(join(dataDir, 'postgresql.conf'), smallBuffers)
  await rename(dataDir, path).catch(async (error: unknown) => {
    if (!(await exists(path))) throw error // else another process was first: its files are the same
  })
  await rm(own, { recursive: true, force: true })
}

/** Another version of PGlite or another migration is another template. */
function versionOf(tables: Tables): string {
  const hash = createHash('sha256').update(readFileSync(new URL('../../../package.json', import.meta.url)))
  hash.update(dropTemplates.join() + smallBuffers)
  if (tables === 'migrated') for (const migration of readMigrations()) hash.update(checksumOf(migration))
  return hash.digest('hex').slice(0, 12)
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )
