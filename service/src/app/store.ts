/** The components that need no chain: database, keys, and the stores of tags, items, metadata and API keys. */
import { existsSync, type StatsListener, unwatchFile, watchFile } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type ItemStore, itemStore } from '../assets/items.ts'
import { type MetadataStore, metadataStore } from '../assets/metadata-store.ts'
import { type DifferenceReports, differenceReports } from '../assets/difference-reports.ts'
import { type PictureStore, pictureStore } from '../assets/pictures/store.ts'
import { type RestrictedStore, restrictedStore } from '../passport/public/restricted-store.ts'
import { distributionFault } from '../db/cluster/distribute.ts'
import { type Database, openDatabase, type Sql } from '../db/database.ts'
import { isMissingDatabase, isOutOfConnections, sqlState } from '../db/errors.ts'
import { locks, whileLocked } from '../db/locks.ts'
import { UnfitDatabaseError } from '../db/postgres/fitness.ts'
import { OtherDatabaseError } from '../db/postgres/identity.ts'
import { PooledSessionError } from '../db/postgres/session.ts'
import { migrate, missingMigrations, readMigrations } from '../db/migrate.ts'
import { type ApiKeyStore, apiKeyStore } from '../access/api-keys.ts'
import { databaseActs, type recycleAct } from '../access/approvals/acts.ts'
import { type Approvals, createApprovals } from '../access/approvals/approvals.ts'
import { refreshAssetItem } from '../index/assets/registrations.ts'
import { takeBackTaps } from '../index/assets/taps.ts'
import { createTextRefresh } from '../index/assets/texts.ts'
import { createQueue, type Queue } from '../lib/async/concurrency.ts'
import { backoff, retry } from '../lib/async/retry.ts'
import { singleFlight } from '../lib/async/single-flight.ts'
import { isDatabaseUnavailable, reasonOf } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import { findClosedToUs } from '../lib/private-folder.ts'
import { removeDrafts } from '../lib/sealed/file.ts'
import { type Issuer, issuerKeyFile, issuerKeyStore, openIssuer } from '../passport/signing/issuer.ts'
import { openAttestationKeys, type AttestationKeys } from '../payments/attestation/keys.ts'
import { createStation, formerStationFile, stationFile } from '../tap/keys/station.ts'
import { openTagKeyStore, type TagKeyStore, tagKeyFile } from '../tap/keys/store.ts'
import { createRevokedTaps, type RevokedTaps } from '../tap/revoked-taps.ts'
import { createTagHash, type TagHash } from '../tap/tag-hash.ts'
import { type TagStore, tagStore } from '../tap/tag-registry.ts'
import { type Config, ConfigError } from './config/config.ts'
import { attestationSources, type KeyStores, openKeyStores } from './keys.ts'

export type StoreComponents = {
  readonly keyStores: KeyStores
  readonly tagKeys: TagKeyStore
  /** Opens the keys at the first call: commands on tags and products sign no passports, and need none. */
  readonly issuerKeys: () => Promise<Issuer>
  /** Opens the keys at the first call: only a process that signs attestations, or names their key, needs them. */
  readonly attestationKeys: () => Promise<AttestationKeys>
  readonly database: Database
  readonly metadata: MetadataStore
  readonly pictures: PictureStore
  readonly restrictedDetails: RestrictedStore
  readonly differences: DifferenceReports
  readonly items: ItemStore
  readonly tags: TagStore
  readonly revokedTaps: RevokedTaps
  readonly apiKeys: ApiKeyStore
  /** Requests for acts that take two keys. Without the chain it decides about batches and keys only. */
  readonly approvals: Approvals
}

/** Opens the store for commands on keys, tags and batches. */
export async function openStoreComponents(config: Config, log: Log): Promise<StoreComponents & AsyncDisposable> {
  await using opened = new AsyncDisposableStack()
  const store = await joinStore(config, log, opened)
  const approvals = openApprovals(config, log, store)
  const resources = opened.move()
  return { ...store, approvals, [Symbol.asyncDispose]: () => resources.disposeAsync() }
}

/** Opens the requests for approval; `onChain` are the acts that need the chain. `indexed` is the database for reads of products. */
export function openApprovals(
  { approvals: { acts: required, hours } }: Pick<Config, 'approvals'>,
  log: Log,
  { database, tagKeys, revokedTaps }: Pick<StoreComponents, 'database' | 'tagKeys' | 'revokedTaps'>,
  onChain: ReturnType<typeof recycleAct> | null = null,
  indexed: Sql = database,
): Approvals {
  const acts = { ...databaseActs(tagKeys, revokedTaps.takeBack), ...onChain }
  return createApprovals({ database, indexed, required, hours, acts, log: log.child('approvals') })
}

/** Opens the store and brings its schema up to date. `opened` closes it. */
export async function joinStore(
  config: Config,
  log: Log,
  opened: AsyncDisposableStack,
): Promise<Omit<StoreComponents, 'approvals'>> {
  const database = opened.use(await openStore(config))
  if (database.dialect !== 'pglite') await markFolder(config.dataDir)
  await warnOfEndlessStatements(database, log)
  await migrateStore(database, config, log)
  const fault = await distributionFault(database)
  if (fault !== null) throw new ConfigError(fault)
  const stores = indexedStores(database)
  const keyStores = await openKeyStores(config, opened)
  const keys = await openKeys(config, { database, tags: stores.tags, keyStores }, log.child('keys'), opened)
  const rest = {
    pictures: pictureStore(database),
    restrictedDetails: restrictedStore(database),
    differences: differenceReports(database),
    revokedTaps: createRevokedTaps({
      database,
      tagHashes: Object.values(configuredTagHashes(config)).filter((hash) => hash !== undefined),
      takeBackTaps: (tagHashes) => takeBackTaps(database, tagHashes),
    }),
  }
  return { database, ...stores, ...rest, apiKeys: apiKeyStore(database), keyStores, ...keys }
}

/** Returns the functions that commit to a tag; undefined without the pepper that they need. */
export function configuredTagHashes({ tap: { commitment, pepper, previousPepper } }: Pick<Config, 'tap'>): {
  readonly tagHash: TagHash | undefined
  readonly formerTagHash: TagHash | undefined
} {
  if (commitment !== 'hmac') return { tagHash: createTagHash({ scheme: commitment }), formerTagHash: undefined }
  const withPepper = (secret: Uint8Array | null) =>
    secret === null ? undefined : createTagHash({ scheme: 'hmac', pepper: secret })
  return { tagHash: withPepper(pepper), formerTagHash: withPepper(previousPepper) }
}

/** Every change renames a file into the folder, which changes its time. Network folders send no events, so it is polled. */
const pollMs = 1_000

/**
 * Opens the keys in DATA_DIR/keys (spec §4.4, §4.8, §9): of tags, of the issuer, of attestations. Several processes may share the folder.
 * They change the files one after another, under a lock of the database. Such a change, or one by an operator who copies files, is loaded by
 * the others within two seconds.
 */
async function openKeys(
  config: Config,
  { database, tags, keyStores }: Pick<StoreComponents, 'database' | 'tags' | 'keyStores'>,
  log: Log,
  opened: AsyncDisposableStack,
): Promise<Pick<StoreComponents, 'tagKeys' | 'issuerKeys' | 'attestationKeys'>> {
  const { kek, previousKek } = config.tap
  const keyFile = kek === null ? null : { kek, previousKek, demo: config.demo }
  const folder = join(config.dataDir, 'keys')
  const { removed, failed } = await removeDrafts(folder)
  if (removed > 0) log.info('unfinished files removed', { folder, drafts: removed })
  // A process that only reads the keys leaves them to one that writes.
  if (failed !== null) log.warn('unfinished files not removed', { folder, reason: reasonOf(failed) })
  const inTurn = createQueue()
  const alone: Queue = (work) => inTurn(() => whileLocked(database, locks.keyFiles, work))
  const station = createStation({
    path: stationFile(config.dataDir),
    kek: config.tap.stationKek,
    previousKek: config.tap.previousStationKek,
    former: keyFile && { path: formerStationFile(folder), keks: keyFile },
  })
  const moved = station.isOpen ? await alone(() => station.adopt()) : 0
  if (moved > 0) log.info('application keys moved to station.keys', { batches: moved })
  const tagKeys = await openTagKeyStore({
    folder,
    keyFile,
    shared: tags,
    station,
    keyStore: keyStores('tags'),
    alone,
    onLifted: (ids) =>
      log.error('revoked batches are active in the database, so that their tags verify', {
        batches: ids.join(', '),
        remedy: 'a backup from before was restored: run touchstone tag batch revoke <id> for each',
      }),
  })
  const issuer = openedOnce(() =>
    openIssuer({
      folder,
      signing: config.passport.signing && config.roles.has('verification'),
      published: issuerKeyStore(database),
      keyStore: keyStores('issuer'),
      alone,
      onRevoked: (ids) =>
        log.error('issuer keys were revoked by another instance', {
          keys: ids.join(', '),
          remedy: `copy ${issuerKeyFile(folder)} from there`,
        }),
    }),
  )
  const attestation = openedOnce(() =>
    openAttestationKeys({
      ...attestationSources(config, keyStores),
      database,
      // Only processes that sell attestations make a key, because it must be where it signs.
      mayMake: config.roles.has('gateway') || config.store.databaseUrl === null,
    }),
  )

  /** Keys of one kind that cannot be loaded do not keep the others from being loaded. */
  async function reload(): Promise<void> {
    const reloads = [tagKeys.reload(), issuer.reload(), attestation.reload()]
    const failed = (await Promise.allSettled(reloads)).filter((result) => result.status === 'rejected')
    if (failed.length > 0) throw new Error(failed.map(({ reason }) => reasonOf(reason)).join('; '))
  }
  // An edit of a file in its place, or a copy over it, does not change the folder.
  opened.defer(watchPaths([folder, tagKeyFile(folder), issuerKeyFile(folder)], reload, log))
  if (database.dialect !== 'pglite') opened.defer(followRevocations(issuer, log))
  return { tagKeys, issuerKeys: issuer.get, attestationKeys: attestation.get }
}

/** Opens keys at the first call of `get`. After a failure the next call tries again. `reload` has nothing to do before. */
function openedOnce<T extends { readonly reload: () => Promise<void> }>(open: () => Promise<T>) {
  let opening: Promise<T> | undefined
  return {
    get: (): Promise<T> =>
      (opening ??= open().catch((error: unknown) => {
        opening = undefined
        throw error
      })),
    reload: async (): Promise<void> => (await opening)?.reload(),
  }
}

/**
 * Calls `reload` when one of the paths changes, and again until it succeeds. Returns the function that ends it, which waits for a reload
 * that is under way.
 */
function watchPaths(paths: readonly string[], reload: () => Promise<void>, log: Log): () => Promise<void> {
  let isEnded = false
  let retries = new AbortController()
  let reloading = Promise.resolve()
  const changed: StatsListener = (now, before) => {
    if (now.mode === 0 && before.mode === 0) return // Node reports a missing file once, although nothing has changed
    retries.abort() // a file that was repaired does not wait for the next retry
    retries = new AbortController()
    const { signal } = retries
    const options = { pausesMs: backoff(1_000, 30_000), isRetryable: () => true, onRetry: noteFailure, signal }
    reloading = reloading.then(() => (isEnded ? undefined : retry(reload, options))).catch(() => {})
  }
  const noteFailure = (error: unknown, pauseMs: number) =>
    log.error('changed keys not loaded', { reason: reasonOf(error), retryInSeconds: pauseMs / 1_000 })
  for (const path of paths) watchFile(path, { interval: pollMs, persistent: false }, changed)
  return async () => {
    isEnded = true
    retries.abort()
    for (const path of paths) unwatchFile(path, changed)
    await reloading
  }
}

/** Pause between looks for issuer keys that an instance with another folder revoked. */
const revocationsMs = 5_000

/** Takes over revocations of issuer keys. Returns the function that ends it. A database that is away is logged once. */
function followRevocations(issuer: Pick<Issuer, 'reload'>, log: Log): () => Promise<void> {
  const read = singleFlight(() => issuer.reload())
  let isNoted = false
  const noteFailure = (error: unknown) => {
    if (!isNoted) log.warn('revoked issuer keys not read', { reason: reasonOf(error) })
    isNoted = true
  }
  const look = () => void read().then(() => (isNoted = false), noteFailure)
  const timer = setInterval(look, revocationsMs).unref()
  return async () => {
    clearInterval(timer)
    isNoted = true
    await read.inFlight()?.catch(() => {})
  }
}

/** Stores that refresh the index when they change, so that lists and products show the change at once. */
function indexedStores(database: Database): Pick<StoreComponents, 'metadata' | 'items' | 'tags'> {
  const [metadata, items, tags] = [metadataStore(database), itemStore(database), tagStore(database)]
  const refreshText = createTextRefresh(database)
  return {
    metadata: {
      ...metadata,
      put: async (canonical) => {
        const isNew = await metadata.put(canonical)
        await refreshText(canonical.hash, { isNew })
        return isNew
      },
    },
    items: {
      ...items,
      register: async (item) => {
        const registered = await items.register(item)
        if (registered.ok && registered.created) await refreshAssetItem(database, item.tokenId)
        return registered
      },
    },
    tags: {
      ...tags,
      importTag: async (row, by) => {
        const imported = await tags.importTag(row, by)
        if (row.gtin !== undefined && row.tokenId !== undefined) await refreshAssetItem(database, row.tokenId)
        return imported
      },
    },
  }
}

async function migrateStore(database: Database, config: Config, log: Log): Promise<void> {
  const missing = (await missingMigrations(database, readMigrations())).map(({ name }) => name)
  if (missing.length === 0) return
  if (!config.store.migrate)
    throw new ConfigError(
      `The database lacks ${missing.join(', ')} and MIGRATE is off: run touchstone migrate first, then start again.`,
    )
  // PostgreSQL migrates on a connection of its own: an index over a large table takes longer than a request may.
  await using own = database.dialect === 'pglite' ? null : await openBareDatabase(config)
  const files = await migrate(own ?? database, undefined, {
    onWaiting: (file, ms) => log.info('migration waits for its locks', { file, seconds: Math.round(ms / 1000) }),
  })
  if (files.length > 0) log.info('database migrated', { files: files.join(' ') })
}

/** Opens the database as it is, with time for long statements: for commands that change its schema, or fill it. */
export async function openBareDatabase(config: StoreConfig, statementTimeoutMs = longStatementMs): Promise<Database> {
  if (config.store.directUrl !== null) await assertOneDatabase(config)
  const { dataDir, store } = config
  const direct = { ...store, databaseUrl: store.directUrl ?? store.databaseUrl }
  return openStore({ dataDir, store: direct }, { poolSize: 2, statementTimeoutMs })
}

/** Throws a ConfigError where the URLs name two databases, or an unfit one. The one behind a pooler may be away: it is not needed. */
async function assertOneDatabase(config: StoreConfig): Promise<void> {
  try {
    await (await openStore(config, { poolSize: 1 })).close()
  } catch (error) {
    const { cause } = error as Error
    if (cause instanceof OtherDatabaseError || cause instanceof UnfitDatabaseError) throw error
  }
}

type StoreConfig = Pick<Config, 'dataDir' | 'store'>

/** A pooler does not pass on the time limit of a connection, and the role may have none. */
async function warnOfEndlessStatements(database: Database, log: Log): Promise<void> {
  if (database.dialect === 'pglite') return
  const [limit] = await database.query<{ text: string }>(`select current_setting('statement_timeout') as text`)
  if (limit?.text === '0')
    log.warn('statements have no time limit', {
      remedy: `alter role … set statement_timeout = '5s', for the role of DATABASE_URL`,
    })
}

/** The longest statement of a migration or a backup. */
const longStatementMs = 660_000

/** Throws a ConfigError that says which database cannot be opened, and DATABASE_UNAVAILABLE for a full disk. */
async function openStore(
  { dataDir, store }: StoreConfig,
  pool: { readonly poolSize?: number; readonly statementTimeoutMs?: number } = {},
): Promise<Database> {
  const folder = join(dataDir, 'store')
  const other = store.databaseUrl === null ? findOtherStore(dataDir) : null
  if (other !== null) throw new ConfigError(other.join(' '))
  try {
    const { databaseUrl: url, directUrl } = store
    return await openDatabase(url === null ? { dataDir: folder } : { url, directUrl: directUrl ?? url, ...pool })
  } catch (error) {
    if (store.databaseUrl === null && isDatabaseUnavailable(error)) throw error // a full disk, not a broken folder
    if ([PooledSessionError, OtherDatabaseError, UnfitDatabaseError].some((kind) => error instanceof kind))
      throw new ConfigError((error as Error).message, { cause: error })
    const sentence =
      store.databaseUrl === null
        ? await unopenable(folder)
        : unusable(isDatabaseUnavailable(error) ? (error as Error).cause : error)
    throw new ConfigError(sentence, { cause: error })
  }
}

/** Marks the data folder of a process on PostgreSQL. A command that is run there without DATABASE_URL would answer from a new, empty database. */
async function markFolder(dataDir: string): Promise<void> {
  const text = 'The data of this folder is in the PostgreSQL of DATABASE_URL.\n'
  await writeFile(join(dataDir, postgresMark), text, { mode: 0o600, flag: 'wx' }).catch(() => {}) // there already, or a folder to read only
}

/** The name of the mark. */
export const postgresMark = 'postgresql'

/** Returns what is wrong and the remedy, where the data of a folder is in PostgreSQL. A command would make an embedded database there. */
export function findOtherStore(dataDir: string): readonly [what: string, remedy: string] | null {
  if (existsSync(join(dataDir, 'store')) || !existsSync(join(dataDir, postgresMark))) return null
  return [
    `The data of ${dataDir} is in PostgreSQL.`,
    'Set DATABASE_URL as the service has it, or start the service, which executes commands. An embedded database needs a DATA_DIR of its own.',
  ]
}

/** Returns the sentence for a folder whose database does not open. One that belongs to another user may be whole. */
async function unopenable(folder: string): Promise<string> {
  const closed = await findClosedToUs(folder)
  return closed === null
    ? `The database in ${folder} cannot be opened. Restore the folder from a backup, or move it away to start with an empty one.`
    : `The database in ${folder} cannot be opened, because ${closed.path} may not be written (${closed.code}). ${closed.remedy}`
}

/** Returns the sentence for a PostgreSQL without a connection. Its own message is shown; the errors of a network only by their code. */
function unusable(cause: unknown): string {
  if (isMissingDatabase(cause))
    return `PostgreSQL answers under DATABASE_URL: ${reasonOf(cause)}. Make it with createdb, or correct the name.`
  if (isOutOfConnections(cause))
    return `PostgreSQL under DATABASE_URL has no free connection: ${reasonOf(cause)}. End clients that hold many, or raise the limit.`
  const { code, syscall, path } = (cause ?? {}) as Partial<Readonly<Record<keyof NodeJS.ErrnoException, unknown>>>
  if (syscall === 'open') return `A file that DATABASE_URL names cannot be read: ${String(code)}, ${String(path)}.`
  if (typeof code === 'string' && /SELF_SIGNED|UNABLE_TO_(?:GET|VERIFY)|CERT_SIGNATURE/.test(code))
    return `The certificate of PostgreSQL under DATABASE_URL is not trusted: ${code}. Name the certificate of its CA: ?sslmode=verify-full&sslrootcert=/path/to/ca.crt.`
  const reason = sqlState(cause) === '' && typeof code === 'string' ? code : reasonOf(cause)
  return `PostgreSQL cannot be reached under DATABASE_URL: ${reason}.`
}
