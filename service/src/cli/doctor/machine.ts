/** Checks of the machine: Node, the data folder, the ports. */
import { access, constants, lstat, readdir, realpath, stat, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Config } from '../../app/config/config.ts'
import { bindError } from './port.ts'
import { isOfDemonstration } from '../dev/secrets.ts'
import { foreignEntry } from '../session/closed-folder.ts'
import { forOthers } from '../../lib/private-folder.ts'
import { type CheckFinding, type Finding, ok, warning, wrong } from './finding.ts'

const oldestNode = 24

export function checkNode(): Finding {
  const version = process.versions.node
  const isNew = Number(version.split('.')[0]) >= oldestNode
  const found = isNew
    ? ok(`Node ${version}.`)
    : wrong(`Node ${version} is too old.`, `Start the program with Node ${oldestNode} or newer.`)
  return { area: 'machine', ...found }
}

const gigabyte = 2 ** 30
/** A start writes files into the folder, and an embedded database needs so much. */
const neededBytes = 2 ** 24
/** The type of a file system in memory (TMPFS_MAGIC of Linux). Its size is a setting of the container, not of a disk. */
const tmpfsType = 0x01021994

type Place = Pick<Config, 'dataDir' | 'store' | 'demo'>

export async function checkFolder({ dataDir, store, demo }: Place): Promise<readonly CheckFinding[]> {
  const found = await lstat(dataDir).catch(() => null)
  if (found === null) {
    const parent = await nearestParent(dataDir)
    const { blocks } = await statfs(parent)
    return (await mayWrite(parent)) && blocks > 0 // a file system of the kernel, such as /proc, has none
      ? [ok(`${dataDir} does not exist yet; the first start makes it.`)]
      : [wrong(`${dataDir} does not exist, and ${parent} is not writable.`, missingRemedy)]
  }
  const target = await stat(dataDir).catch(() => found) // a link may lead to nothing
  if (!target.isDirectory()) return [wrong(`${dataDir} is no folder.`, 'Name another place in DATA_DIR.')]
  if (!(await mayWrite(dataDir))) return [wrong(`${dataDir} is not writable by this user.`, folderRemedy(dataDir))]
  const foreign = await foreignEntry(dataDir)
  if (foreign !== null)
    return [
      (store.databaseUrl === null ? wrong : warning)(
        `${dataDir} is the folder of something else: it has ${foreign}.`,
        'Name an empty or new folder in DATA_DIR.',
      ),
    ]
  const open = await openEntries(await realpath(dataDir))
  const { bavail, bsize, type } = await statfs(dataDir)
  const free = (bavail * bsize) / gigabyte
  const isEnough = free >= 1 || (type === tmpfsType && bavail * bsize >= neededBytes)
  const space = `${free.toFixed(1)} GB are free.`
  return [
    ...(!demo && isOfDemonstration(dataDir)
      ? [warning(`${dataDir} is that of a demonstration (npm start).`, 'Name a new folder in DATA_DIR.')]
      : []),
    open.length === 0
      ? ok(`${dataDir} is writable, and closed to other users.`)
      : warning(
          `Other users can read ${open.slice(0, 3).join(', ')}.`,
          `Run chmod go= on them; a start of the service does it too.`,
        ),
    isEnough
      ? ok(space)
      : (bavail * bsize < neededBytes ? wrong : warning)(
          space,
          'Free space on the disk: a full disk ends all writes, and nothing starts on one.',
        ),
  ]
}

const missingRemedy =
  'Make it as the owner of the folder above, for the user of the service, or name another one in DATA_DIR.'

const folderRemedy = (dataDir: string): string =>
  `Run the command as the user of the service, or give it the folder: chown -R <user> ${dataDir}.`

async function nearestParent(path: string): Promise<string> {
  const parent = dirname(path)
  return (await lstat(parent).catch(() => null)) === null && parent !== path ? nearestParent(parent) : parent
}

const mayWrite = (path: string): Promise<boolean> =>
  access(path, constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  )

/** Returns the folder, or what is in its key folders, where other users have a permission. A folder for all, such as /tmp, stays as it is. */
async function openEntries(dataDir: string): Promise<readonly string[]> {
  const folders = [dataDir, join(dataDir, 'keys'), join(dataDir, 'station')]
  const lists = await Promise.all(folders.slice(1).map((folder) => readdir(folder).catch(() => [])))
  const paths = [...folders, ...lists.flatMap((names, at) => names.map((name) => join(folders[at + 1] ?? '', name)))]
  const modes = await Promise.all(paths.map(async (path) => (await lstat(path).catch(() => null))?.mode ?? 0))
  const isOpen = (mode: number) => (mode & forOthers) !== 0 && (mode & 0o1000) === 0
  return paths.filter((_, at) => isOpen(modes[at] ?? 0))
}

function metricsPorts(first: number | null, workers: number): readonly number[] {
  if (first === null) return []
  return first === 0 ? [0] : Array.from({ length: workers }, (_, place) => first + place)
}

/** `isRunning`: the service of this folder runs, and so has the ports. */
export async function checkPorts(
  { hosts, roles, metricsPort, workers }: Config,
  isRunning: boolean,
): Promise<readonly CheckFinding[]> {
  const wanted = [
    ...(['verification', 'gateway', 'graphql'] as const).flatMap((role) =>
      roles.has(role) ? [{ setting: `${role.toUpperCase()}_PORT`, port: hosts[role].port }] : [],
    ),
    ...metricsPorts(metricsPort, workers).map((port) => ({ setting: 'METRICS_PORT', port })),
  ]
  const taken = isRunning ? 'The running service has it.' : null
  return Promise.all(
    wanted.map(async ({ setting, port }, at) => {
      const other = port === 0 ? undefined : wanted.slice(0, at).find((before) => before.port === port)
      if (other !== undefined)
        return wrong(`${setting}: ${port} is that of ${other.setting} too.`, `Choose another ${setting}.`)
      const error = taken === null && port !== 0 ? await bindError(hosts.bind, port) : null
      if (error === null) return ok(`${setting}: ${port}. ${taken ?? 'It is free.'}`)
      const remedies: Readonly<Record<string, string>> = {
        EADDRINUSE: `End the program that listens there (ss -ltnp), or choose another ${setting}.`,
        EACCES: `Choose a ${setting} above 1023, and put a proxy before it.`,
        EADDRNOTAVAIL: 'Set HOST to an address of this machine, or to 0.0.0.0.',
      }
      return wrong(
        `${setting}: ${port} on ${hosts.bind} cannot be bound (${error}).`,
        remedies[error] ?? `Choose another ${setting}.`,
      )
    }),
  )
}
