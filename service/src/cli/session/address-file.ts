/**
 * The address file of a data folder, readable by its owner only. It names the process that holds the folder and has the token of its
 * listener on loopback. Loopback ends at the network namespace, such as that of a container. So the holder also touches the file.
 */
import { readFileSync, readlinkSync } from 'node:fs'
import { readFile, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { ifMissing } from '../../lib/errors.ts'
import { parseJsonObject } from '../../lib/json.ts'

/** `network` is that of the holder. Earlier versions wrote none. */
export type Address = {
  readonly pid: number
  readonly port: number
  readonly token: string
  readonly network?: string | null
}

export function addressFile(dataDir: string): string {
  return join(dataDir, 'control.json')
}

/** Reads the address file. Returns null when it is missing or holds no address; throws when it is not readable. */
export async function readAddress(path: string): Promise<Address | null> {
  const { pid, port, token, network } = parseJsonObject((await readText(path)) ?? '') ?? {}
  const isLegal = Number.isInteger(pid) && Number.isInteger(port) && typeof token === 'string'
  return isLegal ? ({ pid, port, token, network } as Address) : null
}

/** Returns the text of the address file, or null when it is missing. Throws when it is not readable. */
export function readText(path: string): Promise<string | null> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw new Error('The data folder belongs to another user: run the command as the user of the service.', {
      cause: error,
    })
  })
}

/** Returns the network namespace of this process with the start of its machine, or null outside of Linux. */
export function ownNetwork(): string | null {
  try {
    return `${readlinkSync('/proc/self/ns/net')} ${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}`
  } catch {
    return null
  }
}

/** Returns whether the holder is in another container or on another machine, where its port cannot be reached. */
export function isElsewhere({ network }: Address): boolean {
  return network !== undefined && network !== ownNetwork()
}

/** Pause between two touches of a holder. */
export const touchMs = 2_000

/** Milliseconds without a touch after which a holder elsewhere counts as dead. */
export const silenceMs = 15_000

/** Marks the address file as that of a living process, as long as it has its token. */
export async function touch(path: string, token: string): Promise<void> {
  const now = new Date()
  if ((await readAddress(path))?.token === token) await utimes(path, now, now)
}

/** Returns the time of the last touch in milliseconds, or null when there was none lately. */
export async function lastTouch(path: string): Promise<number | null> {
  const found = await stat(path).catch(ifMissing(null))
  // A time far ahead is that of a clock which was set back since.
  return found !== null && Math.abs(Date.now() - found.mtimeMs) < silenceMs ? found.mtimeMs : null
}
