/** The parts that need no chain: database, keys of tags and issuer, the registries of tags, items and API keys. */
import { join } from 'node:path'
import { ConfigError, type Config } from './config.ts'
import type { Log } from './log.ts'
import { openKeys } from './parts-keys.ts'
import { apiKeyStore } from './store/api-keys.ts'
import { openDatabase, type Database } from './store/database.ts'
import { refreshAssetItem, refreshAssetText } from './store/index-refresh.ts'
import { itemStore } from './store/items.ts'
import { metadataStore } from './store/metadata.ts'
import { migrate } from './store/migrate.ts'
import { missingMigrations, readMigrations } from './store/migrations.ts'
import { createReadReplica } from './store/read-replica.ts'
import { batchStore } from './store/tags-batches.ts'
import { tagStore } from './store/tags.ts'

export async function joinStore(config: Config, log: Log, opened: AsyncDisposableStack) {
  const database = opened.adopt(await openStore(config), (db) => db.close())
  await bringUpToDate(database, config, log)
  const { metadata, items, tags } = shownByIndex(database)
  const keys = await openKeys(config, { database, tags, log: log.child('keys') }, opened)
  return { database, metadata, tags, items, apiKeys: apiKeyStore(database), ...keys }
}

/** The stores of what the operator knows of a token: lists and products show it as soon as it is written. */
function shownByIndex(database: Database) {
  const [metadata, items, tags] = [metadataStore(database), itemStore(database), tagStore(database)]
  return {
    metadata: {
      ...metadata,
      put: async (canonical: Parameters<typeof metadata.put>[0]): Promise<void> => {
        await metadata.put(canonical)
        await refreshAssetText(database, canonical.hash)
      },
    },
    items: {
      ...items,
      register: async (item: Parameters<typeof items.register>[0]) => {
        const registered = await items.register(item)
        if (registered.ok && registered.created) await refreshAssetItem(database, item.tokenId)
        return registered
      },
    },
    tags: {
      ...tags,
      ...batchStore(database),
      importTag: async (row: Parameters<typeof tags.importTag>[0]) => {
        const imported = await tags.importTag(row)
        if (row.gtin !== undefined && row.tokenId !== undefined) await refreshAssetItem(database, row.tokenId)
        return imported
      },
    },
  }
}

async function bringUpToDate(database: Database, config: Config, log: Log): Promise<void> {
  const missing = (await missingMigrations(database, readMigrations())).map(({ name }) => name)
  if (missing.length === 0) return
  if (!config.store.migrate)
    throw new ConfigError(
      `The database lacks ${missing.join(', ')} and MIGRATE is off: run touchstone migrate first, then start again.`,
    )
  // Of its own where it is PostgreSQL: an index over a large table takes longer than a request may.
  const isOwn = database.dialect === 'postgres'
  const own = isOwn ? await openStore(config, { poolSize: 1, statementTimeoutMs: longStatementMs }) : database
  try {
    const files = await migrate(own, undefined, {
      onWaiting: (file, ms) => log.info('migration waits for its locks', { file, seconds: Math.round(ms / 1000) }),
    })
    if (files.length > 0) log.info('database migrated', { files: files.join(' ') })
  } finally {
    if (isOwn) await own.close()
  }
}

/** What GraphQL lists are read from: the replica where there is one, else the database itself. */
export function openLists({ store: { readUrl: url }, roles }: Config, database: Database, log: Log) {
  if (url === null || !roles.has('graphql'))
    return { database, stats: undefined, start: () => {}, close: async () => {} }
  return createReadReplica({ primary: database, open: () => openDatabase({ url }), log: log.child('replica') })
}

/** For what is no request: a migration, a backup. */
export const longStatementMs = 660_000

/** The database as it is. */
export async function openStore(
  { dataDir, store }: Pick<Config, 'dataDir' | 'store'>,
  pool: { readonly poolSize?: number; readonly statementTimeoutMs?: number } = {},
): Promise<Database> {
  const folder = join(dataDir, 'store')
  try {
    return await openDatabase(store.databaseUrl === null ? { dataDir: folder } : { url: store.databaseUrl, ...pool })
  } catch (error) {
    const sentence =
      store.databaseUrl === null
        ? `The database in ${folder} cannot be opened. Restore the folder from a backup, or move it away to start with an empty one.`
        : 'PostgreSQL cannot be reached under DATABASE_URL.'
    throw new ConfigError(sentence, { cause: error })
  }
}
