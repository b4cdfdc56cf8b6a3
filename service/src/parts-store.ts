/** The parts that need no chain: database, keys of tags and issuer, the registries of tags, items and API keys. */
import { join } from 'node:path'
import { ConfigError, type Config } from './config.ts'
import type { Log } from './log.ts'
import { isPublishedAddress } from './chain/local-chain-accounts.ts'
import { openAttestationKeys } from './gateway/keys.ts'
import { apiKeyStore } from './store/api-keys.ts'
import { attestationKeyStore } from './store/attestation-keys.ts'
import { openDatabase, type Database } from './store/database.ts'
import { refreshAssetItem, refreshAssetText } from './store/index-refresh.ts'
import { itemStore } from './store/items.ts'
import { metadataStore } from './store/metadata.ts'
import { migrate } from './store/migrate.ts'
import { batchStore } from './store/tags-batches.ts'
import { tagStore } from './store/tags.ts'
import { openFleet } from './tap/fleet.ts'
import { openIssuer } from './verification/passport-keys.ts'

const once = <T>(make: () => Promise<T>): (() => Promise<T>) => {
  let made: Promise<T> | undefined
  return () => (made ??= make())
}

export async function joinStore(config: Config, log: Log, opened: AsyncDisposableStack) {
  const database = opened.adopt(await openStore(config), (db) => db.close())
  const migrated = await migrate(database)
  if (migrated.length > 0) log.info('database migrated', { files: migrated.join(' ') })
  const { metadata, items, tags } = shownByIndex(database)
  const { kek } = config.tap
  const keyFile = kek === null ? null : { kek, demo: config.demo }
  const folder = join(config.dataDir, 'keys')
  const fleet = await openFleet({ folder, keyFile, shared: tags })
  const issuer = await openIssuer({ folder, signing: config.passport.signing })
  /** Makes a key where there is none: asked only where attestations are signed, named or looked after. */
  const attestationKeys = once(() =>
    openAttestationKeys({
      folder,
      history: attestationKeyStore(database),
      privateKey: config.gateway.attestationKey,
      keystore: config.gateway.keystore,
      keystorePasswordFile: config.gateway.keystorePasswordFile,
      isPublicKnowledge: isPublishedAddress,
      demo: config.demo,
    }),
  )
  return { database, metadata, tags, items, apiKeys: apiKeyStore(database), fleet, issuer, attestationKeys }
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

async function openStore({ dataDir, store }: Config): Promise<Database> {
  const folder = join(dataDir, 'store')
  try {
    return await openDatabase(store.databaseUrl === null ? { dataDir: folder } : { url: store.databaseUrl })
  } catch (error) {
    const sentence =
      store.databaseUrl === null
        ? `The database in ${folder} cannot be opened. Restore the folder from a backup, or move it away to start with an empty one.`
        : 'PostgreSQL cannot be reached under DATABASE_URL.'
    throw new ConfigError(sentence, { cause: error })
  }
}
