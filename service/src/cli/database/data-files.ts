/**
 * The files of a data folder in a backup. They are sealed tag keys, keys of issuer and attestations, counters of a demonstration (`keys`),
 * the state of an interrupted import (`imports`) and, on request, the keys of the personalisation station (`station`). The database, and
 * the chain and the secrets of a demonstration, are left out.
 */
import { mkdir, open, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { ifMissing } from '../../lib/errors.ts'
import { makeFolder, pathsBelow } from '../../lib/private-folder.ts'
import { fileFault, isDraft, syncFolder } from '../../lib/sealed/file.ts'
import type { BackupFilePart } from './backup-file.ts'

const folders = ['keys', 'imports', 'station']
/** They open the sealed files beside them. */
const secrets: ReadonlySet<string> = new Set(['keys/demo.json'])
/** Application keys of chips; the second place is that of earlier versions. */
const isOfStation = (file: string) => file.startsWith('station/') || file === 'keys/tag-app-keys.json'
const partBytes = 192 * 1024

/** Yields each file in parts, in the order of names. A file that the running service has just replaced or removed is none. */
export async function* readDataFiles(
  dataDir: string,
  { withStation }: { readonly withStation: boolean },
): AsyncGenerator<BackupFilePart> {
  for (const folder of folders) {
    const paths: string[] = await pathsBelow(join(dataDir, folder)).catch(ifMissing([]))
    for (const path of paths.sort()) {
      const file = relative(dataDir, path).split(sep).join('/')
      if (isDraft(file) || secrets.has(file) || (isOfStation(file) && !withStation)) continue
      const isFile = (await stat(path).catch(ifMissing(null)))?.isFile() === true
      const handle = isFile ? await open(path).catch(ifMissing(null)) : null
      if (handle === null) continue
      let parts = 0
      for await (const chunk of handle.createReadStream({ highWaterMark: partBytes }) as AsyncIterable<Buffer>) {
        parts += 1
        yield { file, data: chunk.toString('base64') }
      }
      if (parts === 0) yield { file, data: '' }
    }
  }
}

/** Returns whether a name can be in a backup. Any other could write outside the data folder. */
export function isDataFile(file: string): boolean {
  const [folder = '', ...names] = file.split('/')
  const isName = (name: string) => name !== '' && name !== '.' && name !== '..' && !/[\\\0]/.test(name)
  return folders.includes(folder) && names.length > 0 && names.every(isName)
}

export type Staged = ReturnType<typeof stageDataFiles>

/**
 * Stages files for a data folder that has none of them, hidden until all are written. Each stays within its own folder, which may be a
 * mounted volume.
 */
export function stageDataFiles(dataDir: string) {
  const hidden = `.restoring-${process.pid}`
  const made = new Set<string>()
  const placed: string[] = []
  return {
    /** Parts of one file are consecutive. */
    async add({ file, data }: BackupFilePart): Promise<void> {
      const [folder = '', ...names] = file.split('/')
      const path = join(dataDir, folder, hidden, ...names)
      try {
        const isNew = await mkdir(join(dataDir, folder), { mode: 0o700 }).then(() => true, ifThere)
        if (isNew) made.add(folder)
        await makeFolder(dirname(path))
        await writeFile(path, data, { encoding: 'base64', mode: 0o600, flag: 'a', flush: true })
        await syncFolder(path)
      } catch (error) {
        throw fileFault(join(dataDir, file), error)
      }
    },
    async place(): Promise<void> {
      for (const folder of folders) {
        const aside = join(dataDir, folder, hidden)
        for (const name of await readdir(aside).catch(ifMissing([]))) {
          const path = join(dataDir, folder, name)
          await rename(join(aside, name), path)
          placed.push(path)
        }
        await rm(aside, { recursive: true, force: true })
      }
      // The database must not be more durable than the keys to what is in it.
      for (const path of [...placed, ...[...made].map((folder) => join(dataDir, folder))]) await syncFolder(path)
    },
    async remove(): Promise<void> {
      const all = [...placed, ...folders.map((folder) => join(dataDir, folder, hidden))]
      for (const path of [...all, ...[...made].map((folder) => join(dataDir, folder))])
        await rm(path, { recursive: true, force: true })
    },
  }
}

/** Returns the folder of a staged file in a data folder, or null for any other file. A restore that was killed leaves it. */
export function stagedFolder(file: string): string | null {
  return /^[^/]+\/\.restoring-\d+(?=\/)/.exec(file)?.[0] ?? null
}

/** Returns the first file in a data folder that a restore could destroy. Empty folders, such as mounted volumes, do not count. */
export async function findObstacle(dataDir: string): Promise<string | null> {
  const { postgresMark } = await import('../../app/store.ts')
  const entries = await readdir(dataDir, { recursive: true, withFileTypes: true })
  const isContent = (name: string) => name !== postgresMark && !name.startsWith('control.json')
  const found = entries.find((entry) => !entry.isDirectory() && isContent(entry.name))
  return found === undefined ? null : relative(dataDir, join(found.parentPath, found.name))
}

function ifThere(error: NodeJS.ErrnoException): false {
  if (error.code === 'EEXIST') return false
  throw error
}
