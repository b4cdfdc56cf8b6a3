/**
 * How far each chip under work is (`keys/chips/` of the data folder). It holds no key: old keys are the factory's, new ones follow
 * from the batch and the UID.
 */
import { mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { writePrivateFile } from '../tap/sealed-file.ts'
import type { KeyJournal, KeyProgress } from './tag-write-flow.ts'
import { CommandError } from './store-command.ts'

export type ChipJournal = KeyJournal & { readonly finish: (uid: string) => Promise<void> }

/** Only chips that were begun for this batch and address are gone on with. */
export function openChipJournal(dataDir: string, { batch, url }: { batch: string; url: string }): ChipJournal {
  const folder = join(dataDir, 'keys', 'chips')
  const fileOf = (uid: string) => join(folder, `${uid}.json`)
  return {
    async read(uid) {
      const text = await readFile(fileOf(uid), 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return null
        throw error
      })
      if (text === null) return null
      const {
        batch: begunFor,
        url: begunWith,
        ...progress
      } = JSON.parse(text) as KeyProgress & { batch: string; url: string }
      if (begunFor !== batch || begunWith !== url)
        throw new CommandError(`Chip ${uid} was begun for batch ${begunFor} and ${begunWith}; finish it with these.`)
      return progress
    },
    async write(uid, progress) {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await writePrivateFile(fileOf(uid), JSON.stringify({ batch, url, ...progress }))
    },
    finish: (uid) => rm(fileOf(uid), { force: true }),
  }
}
