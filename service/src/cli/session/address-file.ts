/**
 * The address file of a data folder, readable by its owner only. It names the process that holds the folder and has the token of its
 * listener on loopback. Loopback ends at the network namespace, such as that of a container. So the holder also listens on a socket beside
 * the file, where the volume has sockets, and touches the file.
 */
import { once } from 'node:events'
import { readFileSync, readlinkSync, utimesSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
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
  return parseAddressFile((await readText(path)) ?? '')
}

export function parseAddressFile(text: string): Address | null {
  const { pid, port, token, network } = parseJsonObject(text) ?? {}
  const isLegal = Number.isInteger(pid) && Number.isInteger(port) && typeof token === 'string'
  return isLegal ? ({ pid, port, token, network } as Address) : null
}

/** Returns the text of the address file, or null when it is missing. Throws when it is not readable. */
export function readText(path: string): Promise<string | null> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null
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

export const touchMs = 2_000

/** Milliseconds without a touch after which a holder elsewhere counts as dead. */
export const silenceMs = 15_000

/**
 * Marks the address file as that of a living process. Returns false, and touches nothing, when it is that of another one. No other work
 * of this process runs before the answer.
 */
export function touch(path: string, { token }: Keyed): boolean {
  try {
    const holder = parseAddressFile(readFileSync(path, 'utf8'))
    if (holder !== null && holder.token !== token) return false
    const now = new Date()
    if (holder !== null) utimesSync(path, now, now)
  } catch {
    // The next touch may succeed.
  }
  return true
}

/** Returns the time of the last touch in milliseconds, or null when there was none lately. */
export async function lastTouch(path: string): Promise<number | null> {
  const found = await stat(path).catch(ifMissing(null))
  // A time far ahead is that of a clock which was set back since.
  return found !== null && Math.abs(Date.now() - found.mtimeMs) < silenceMs ? found.mtimeMs : null
}

type Keyed = Pick<Address, 'token'>

export function socketFile(path: string, { token }: Keyed): string {
  return `${path}.${token.slice(0, 12)}.sock`
}

/** Listens on the socket of this holder. Does nothing on a volume without sockets, and where the path is too long for one. */
export async function listenBeside(path: string, own: Keyed): Promise<Server> {
  const server = createServer((socket) => void socket.destroy()).on('error', () => {})
  await once(server.listen({ path: socketFile(path, own), exclusive: true }), 'listening').catch(() => {})
  return server.unref()
}

/**
 * Returns whether a process listens on the socket of this holder, in whichever container of this machine. The kernel connects to a
 * process that is paused, or busy with a long statement.
 */
export async function isHolderListening(path: string, holder: Keyed): Promise<boolean> {
  const socket = connect(socketFile(path, holder))
  try {
    await once(socket, 'connect')
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EAGAIN' // many connections wait for the process
  } finally {
    socket.destroy()
  }
}
