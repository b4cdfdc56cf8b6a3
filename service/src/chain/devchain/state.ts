/**
 * The saved state of the local chain (spec §2.2: a read pinned to a block stays the same, also after a restart): two generations of a
 * gzip file. Each is written to another name and renamed, so that a kill or a power cut leaves a whole file; gzip's checksum finds a
 * damaged one.
 */
import { open, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { ifMissing } from '../../lib/errors.ts'
import { makeFolder } from '../../lib/private-folder.ts'

/** Newest first. */
const names = ['chain.json.gz', 'chain.previous.json.gz'] as const

export type StateFile = ReturnType<typeof stateFile>

/** Opens the state files of `folder`, which is created by the first save. */
export function stateFile(folder: string) {
  const [newest, previous] = names.map((name) => join(folder, name)) as [string, string]

  /** Reads each whole state, newest first: its file name and JSON text as bytes. `damaged` counts the others. */
  async function load() {
    const states: Readonly<{ name: string; json: Uint8Array }>[] = []
    let damaged = 0
    for (const name of names) {
      const bytes = await readFile(join(folder, name)).catch(ifMissing(undefined))
      if (bytes === undefined) continue
      const json = await unzipped(bytes)
      if (json === undefined) damaged += 1
      else states.push({ name, json })
    }
    return { states, damaged }
  }

  /** Writes the gzipped JSON text as the newest state and keeps the one before. */
  async function save(gzipped: Uint8Array): Promise<void> {
    await makeFolder(folder)
    const unfinished = `${newest}.unfinished`
    const file = await open(unfinished, 'w')
    try {
      await file.writeFile(gzipped)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(newest, previous).catch(ifMissing(undefined))
    await rename(unfinished, newest)
  }

  return { load, save }
}

const decompress = promisify(gunzip)

async function unzipped(bytes: Uint8Array): Promise<Uint8Array | undefined> {
  const json = await decompress(bytes).catch(() => undefined)
  return json?.[0] === 0x7b ? json : undefined // a JSON object starts with {
}
