/** UIDs of a command: on the command line by --uid, or in a file by --file. */
import { createReadStream } from 'node:fs'
import { resolve } from 'node:path'
import { toHex } from '../../tap/bytes.ts'
import { parseUid, uidSentence } from '../session/command.ts'
import { requireFile } from '../session/files.ts'
import type { Session } from '../session/session.ts'
import { CommandError } from '../session/output.ts'
import { readCsv } from './import/csv.ts'

type UidOptions = { readonly uid?: readonly Uint8Array[] | undefined; readonly file?: string | undefined }

const maxUids = 1_000_000

/** Returns the UIDs that the options name, each once. Throws `CommandError` when there is none, or a line of the file is wrong. */
export async function listUids(io: Pick<Session['io'], 'cwd'>, { uid, file }: UidOptions): Promise<Uint8Array[]> {
  const listed = [...(uid ?? []), ...(file === undefined ? [] : await readUids(resolve(io.cwd, file)))]
  if (listed.length === 0) throw new CommandError('Name the tags: --uid 04…, or --file with a UID in each line.')
  return [...new Map(listed.map((one) => [toHex(one), one])).values()]
}

/** Reads a file with one UID in each line, or a table whose first line names a column uid. */
async function readUids(path: string): Promise<Uint8Array[]> {
  await requireFile(path)
  const uids: Uint8Array[] = []
  let place: number | undefined
  for await (const { line, cells } of readCsv(createReadStream(path) as AsyncIterable<Buffer>)) {
    if (place === undefined) {
      const named = cells.findIndex((cell) => cell.trim().toLowerCase() === 'uid')
      place = Math.max(0, named)
      if (named >= 0) continue
    }
    const uid = parseUid((cells[place] ?? '').trim())
    if (uid === null) throw new CommandError(`Line ${line} of ${path}, column uid: ${uidSentence}`)
    uids.push(uid)
    if (uids.length > maxUids) throw new CommandError(`A file has at most ${maxUids} UIDs: split the file.`)
  }
  return uids
}
