/**
 * The data folder is closed to other users (0700, files 0600). It holds keys, and in the database the hashes of keys and taps. A folder of
 * something else stays as it is: DATA_DIR may name it by mistake.
 */
import { existsSync } from 'node:fs'
import { lstat, readdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { type Config, ConfigError } from '../../app/config/config.ts'
import { postgresMark } from '../../app/store.ts'
import type { Log } from '../../lib/log.ts'
import { closeEntry, closeTree, forOthers } from '../../lib/private-folder.ts'

/** The entries that the service itself makes. An operator may have named a folder that holds other things too. */
const ownEntries = ['audit', 'chain', 'control.json', 'imports', 'keys', 'station', 'store']

/** Matches entries that say nothing of a folder: those of a file system, or of a home. */
const neutral = /^(?:\.|lost\+found$|control\.json\.)/

/** Files by which a folder that holds other things too is known as a data folder. */
const signs = ['store/PG_VERSION', 'chain/chain.json.gz', 'station/station.keys', 'audit/heads.jws']
const keyFile = /^(?:tag-keys|tag-app-keys|issuer\.jwks|demo|demo-tags|attest-.+)\.json$/

type Place = { readonly dataDir: string; readonly store: Pick<Config['store'], 'databaseUrl'> }

/** Makes everything that this process and its children write private. */
export function writePrivately(): void {
  process.umask(forOthers)
}

/**
 * Closes what a former version left open, at the start of a service, and logs how much that was. Throws `ConfigError` for a place that
 * the embedded database must not be made in.
 */
export async function closeDataFolder({ dataDir, store }: Place, log: Log): Promise<void> {
  writePrivately()
  const foreign = await foreignEntry(dataDir)
  if (foreign !== null) {
    if (store.databaseUrl === null) throw notOurs(dataDir, foreign)
    return log.warn('the data folder has other files, and was not closed to other users', { dataDir, entry: foreign })
  }
  const folder = await realpath(dataDir).catch(() => dataDir)
  const mode = (await lstat(folder).catch(() => null))?.mode ?? 0
  const isForAll = (mode & 0o1000) !== 0 // such as /tmp
  let entries = !isForAll && (await closeEntry(folder)) ? 1 : 0
  for (const name of ownEntries) entries += await closeTree(join(dataDir, name))
  if (entries > 0) log.warn('the data folder was open to other users, and is closed now', { dataDir, entries })
}

/** Throws `ConfigError` when a command would make a new, empty database, which no service uses. `mayMake`: that is what it is for. */
export async function assertDataFolder({ dataDir, store }: Place, mayMake = false): Promise<void> {
  if (store.databaseUrl !== null) return
  const foreign = await foreignEntry(dataDir)
  if (foreign !== null) throw notOurs(dataDir, foreign)
  if (!mayMake && !existsSync(dataDir))
    throw new ConfigError(
      `There is no data folder at ${dataDir}. Name the one of your service in DATA_DIR; for a new one, start the service or make the folder.`,
    )
}

/** Returns the name of an entry of something else; null for a data folder and an empty one. Throws `ConfigError` for a file. */
export async function foreignEntry(dataDir: string): Promise<string | null> {
  const [names, keys] = await Promise.all([dataDir, join(dataDir, 'keys')].map(namesIn))
  if (names === undefined) throw new ConfigError(`DATA_DIR names ${dataDir}, which is no folder: name another place.`)
  const ours = [...ownEntries, ...((await isMarked(dataDir)) ? [postgresMark] : [])]
  const foreign = names.find((name) => !neutral.test(name) && !ours.includes(name))
  const isKnown =
    keys?.some((name) => keyFile.test(name)) === true || signs.some((sign) => existsSync(join(dataDir, sign)))
  return foreign === undefined || isKnown ? null : foreign
}

/** Returns whether a process on PostgreSQL has marked a folder. The data folder of PostgreSQL itself may have the same name. */
async function isMarked(dataDir: string): Promise<boolean> {
  return (await lstat(join(dataDir, postgresMark)).catch(() => null))?.isFile() === true
}

/** Returns undefined for a path that is no folder. A folder that cannot be read has no names here: writing to it says more. */
async function namesIn(folder: string): Promise<readonly string[] | undefined> {
  return readdir(folder).catch(({ code }: NodeJS.ErrnoException) => (code === 'ENOTDIR' ? undefined : []))
}

function notOurs(dataDir: string, entry: string): ConfigError {
  return new ConfigError(
    `${dataDir} is the folder of something else: it has ${entry}. Nothing was changed; name an empty or new folder in DATA_DIR.`,
  )
}
