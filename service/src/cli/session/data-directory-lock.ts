/**
 * The data directory lock. The embedded database belongs to one process, so the service that holds the data folder runs the commands
 * that need it: the CLI sends its arguments over loopback and prints the response line by line (`control-client.ts`). Both sides prove that
 * they have the token of the folder's address file (mode 0600), which keeps a second service out too. A holder in another container, which
 * cannot be reached, runs no command for this process, but keeps it out (`address-file.ts`).
 */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { link, rm, stat, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Config, ConfigError } from '../../app/config/config.ts'
import { readBody } from '../../http/body.ts'
import { withDeadline } from '../../lib/async/deadline.ts'
import { poll, sleep } from '../../lib/async/sleep.ts'
import { constantTimeEqual } from '../../lib/bytes.ts'
import { ifMissing } from '../../lib/errors.ts'
import { parseJsonObject } from '../../lib/json.ts'
import { makeFolder } from '../../lib/private-folder.ts'
import {
  type Address,
  addressFile,
  lastTouch,
  listenBeside,
  ownNetwork,
  parseAddressFile,
  readAddress,
  readText,
  silenceMs,
  socketFile,
  touch,
  touchMs,
} from './address-file.ts'
import {
  drainOf,
  holderOf,
  proofOf,
  requestMac,
  type CommandIo,
  type FolderHolder,
  type ControlLine,
} from './control-client.ts'

export type RunCommand = (argv: readonly string[], io: CommandIo) => Promise<number>

export type DataDirectoryLock = AsyncDisposable & {
  /** Begins to run commands; before, they are answered with «repeat in a moment». */
  readonly serve: (run: RunCommand) => void
  /** Aborts running commands, accepts no more, and waits for them at most `withinMs`. */
  readonly stop: (withinMs?: number) => Promise<void>
  /** Releases the folder, as the end of the scope does. */
  readonly release: () => Promise<void>
}

/**
 * Acquires a data folder for this process. Throws `ConfigError` with the process that holds it. If another process acquires it
 * nevertheless, this one ends, because the files of the embedded database have one writer.
 */
export async function acquireDataFolder(dataDir: string): Promise<DataDirectoryLock> {
  const onLost = () => {
    process.stderr.write(
      `touchstone: Another process acquired the data folder ${dataDir} while this one was paused or busy, so this one ends. Let one service at a time use the folder.\n`,
    )
    process.exit(1)
  }
  let acquired = await tryAcquire(dataDir, onLost)
  if (!acquired.ok && acquired.holder.elsewhere) {
    await nextSign(dataDir)
    acquired = await tryAcquire(dataDir, onLost)
  }
  if (!acquired.ok) throw heldBy(acquired.holder, dataDir)
  return acquired.lock
}

/** Waits until a holder elsewhere touches its file again, or has not done so for long. Its container may just have been killed. */
async function nextSign(dataDir: string): Promise<void> {
  const before = await lastTouch(addressFile(dataDir))
  const isDecided = async () => before === null || (await lastTouch(addressFile(dataDir))) !== before
  await poll(isDecided, { everyMs: 250, timeoutMs: silenceMs })
}

/** Throws `ConfigError` when a process of this machine holds the data folder. */
export async function assertDataFolderFree(dataDir: string): Promise<void> {
  const holder = await holderOf(dataDir)
  if (holder?.elsewhere === false) throw heldBy(holder, dataDir)
}

function heldBy({ pid, elsewhere }: FolderHolder, dataDir: string): ConfigError {
  return new ConfigError(
    elsewhere
      ? `A service in another container, or on another machine, holds the data folder ${dataDir}: run the command there (docker exec), or end that service first.`
      : `Process ${pid} holds the data folder ${dataDir}: end it first, or choose another folder with DATA_DIR.`,
  )
}

/** Pause between attempts of a process without the lock. */
const retryMs = 2_000

/**
 * Acquires the data folder of a service. Services with PostgreSQL may share a folder: one of them holds the lock, and when it ends
 * another acquires it, so that commands run as long as any of them lives.
 */
export async function acquireServiceLock(config: Pick<Config, 'dataDir' | 'store'>): Promise<DataDirectoryLock> {
  const { dataDir, store } = config
  if (store.databaseUrl === null) return acquireDataFolder(dataDir)
  const stopping = new AbortController()
  let lock: DataDirectoryLock | undefined
  let run: RunCommand | undefined

  async function attempt(): Promise<void> {
    if ((await holderOf(dataDir)) !== null) return
    const acquired = await tryAcquire(dataDir)
    if (!acquired.ok) return
    lock = acquired.lock
    if (run !== undefined) lock.serve(run)
  }

  async function keepTrying(): Promise<void> {
    while (lock === undefined && !stopping.signal.aborted) {
      await sleep(retryMs, { ref: false, signal: stopping.signal })
      // The obstacle may be temporary, and another attempt costs little.
      if (!stopping.signal.aborted) await attempt().catch(() => {})
    }
  }

  await attempt()
  const trying = keepTrying()
  const stop = async (withinMs?: number) => {
    stopping.abort()
    await trying
    await lock?.stop(withinMs)
  }
  const release = async () => {
    await stop()
    await lock?.release()
  }
  const serve = (next: RunCommand) => {
    run = next
    lock?.serve(next)
  }
  return { serve, stop, release, [Symbol.asyncDispose]: release }
}

type Acquired =
  | { readonly ok: true; readonly lock: DataDirectoryLock }
  | { readonly ok: false; readonly holder: FolderHolder }

/**
 * Acquires a data folder for this process, or returns the process that holds it. Calls `onLost` when another process acquired it
 * meanwhile, which is possible only where that one sees neither socket nor touches.
 */
export async function tryAcquire(dataDir: string, onLost: () => void = () => {}): Promise<Acquired> {
  const token = randomBytes(32).toString('hex')
  const state: LockState = { run: notYet, token, stopping: new AbortController(), running: new Map() }
  const server = createServer((request, response) => {
    void respond(request, response, state).catch(() => response.destroy())
  })
  // Exclusive: workers would share a port 0, but each lock belongs to one process.
  await once(server.listen({ port: 0, host: '127.0.0.1', exclusive: true }), 'listening')
  const end = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  const own: Address = { pid: process.pid, port: (server.address() as AddressInfo).port, token, network: ownNetwork() }
  const holder = await writeAddress(dataDir, own).catch(async (error: unknown) => {
    await end() // a listening server would keep the process from ending
    throw error
  })
  if (holder !== null) {
    await end()
    return { ok: false, holder }
  }
  const path = addressFile(dataDir)
  const sign = await listenBeside(path, own)
  const touching = setInterval(() => void (touch(path, own) || onLost()), touchMs).unref()
  const stop = async (withinMs = 2_000) => {
    state.run = notYet
    state.stopping.abort()
    await withDeadline(Promise.allSettled([...state.running.values()].map(({ ended }) => ended)), withinMs, {
      onTimeout: () => undefined,
      ref: false,
    })
  }
  const release = async () => {
    await stop()
    clearInterval(touching)
    const current = await readAddress(path)
    if (current?.token === token) await rm(path, { force: true })
    sign.close()
    await end()
  }
  const serve = (run: RunCommand) => void (state.run = run)
  return { ok: true, lock: { serve, stop, release, [Symbol.asyncDispose]: release } }
}

type LockState = {
  run: RunCommand
  readonly token: string
  readonly stopping: AbortController
  /** By the id that the caller chose. */
  readonly running: Map<string, { readonly interrupt: () => void; readonly ended: Promise<number> }>
}

const notYet: RunCommand = (_argv, io) => {
  io.err(`touchstone: process ${process.pid} is at work on this data folder; repeat the command in a moment.`)
  return Promise.resolve(1)
}

async function respond(request: IncomingMessage, response: ServerResponse, state: LockState): Promise<void> {
  const { method = '', url = '', headers } = request
  const challenge = String(headers['x-challenge'])
  response.setHeader('X-Proof', proofOf(state.token, challenge))
  if (method === 'GET') return void response.writeHead(204).end()
  const expected = requestMac(state.token, method, url, challenge)
  if (!constantTimeEqual(Buffer.from(headers.authorization ?? ''), Buffer.from(expected)))
    return void response.writeHead(403).end()
  if (method === 'DELETE') {
    state.running.get(url.slice(1))?.interrupt()
    return void response.writeHead(204).end()
  }
  const command = await readCommand(request)
  if (command === null) return void response.writeHead(400).end()
  const [left, interrupted] = [new AbortController(), new AbortController()]
  response.once('close', () => left.abort())
  response.writeHead(200, { 'Content-Type': 'application/x-ndjson' })
  const send = (line: ControlLine) => void (left.signal.aborted || response.write(`${JSON.stringify(line)}\n`))
  const { id, argv, cwd } = command
  const signal = AbortSignal.any([left.signal, interrupted.signal, state.stopping.signal])
  const drained = () => drainOf(response, signal)
  const ended = state.run(argv, { id, cwd, signal, drained, out: (out) => send({ out }), err: (err) => send({ err }) })
  state.running.set(id, { interrupt: () => interrupted.abort(), ended })
  send({ exit: await ended.finally(() => state.running.delete(id)) })
  response.end()
}

async function readCommand(request: IncomingMessage): Promise<{ id: string; argv: string[]; cwd: string } | null> {
  const body = await readBody(request, { maxBytes: 64 * 1024, drainBytes: 1024 * 1024 })
  const { id = randomUUID(), argv, cwd } = (body.ok ? parseJsonObject(body.text) : null) ?? {}
  const isArgv = Array.isArray(argv) && argv.every((word) => typeof word === 'string')
  return isArgv && typeof cwd === 'string' && typeof id === 'string' ? { id, argv, cwd } : null
}

/**
 * Writes the address file. Returns null when the folder is ours, else the process that holds it. A link is made atomically, so that
 * of two processes that start together only one succeeds.
 */
async function writeAddress(dataDir: string, own: Address): Promise<FolderHolder | null> {
  const path = addressFile(dataDir)
  const mine = `${path}.${own.token.slice(0, 12)}`
  try {
    await writeOwn(dataDir, mine, own)
    for (let tries = 0; tries < 10; tries++) {
      try {
        await link(mine, path)
        return null
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      }
      const text = await readText(path)
      const holder = await holderOf(dataDir)
      if (holder !== null) return holder
      if (text !== null) await removeStale(path, text, mine)
    }
    throw new Error(`${path} cannot be replaced. Remove it when no service runs on this folder.`)
  } finally {
    await rm(mine, { force: true }).catch(() => {}) // the folder may not exist
  }
}

/** Throws a ConfigError when the folder is not writable. */
async function writeOwn(dataDir: string, path: string, own: Address): Promise<void> {
  try {
    await makeFolder(dataDir)
    await writeFile(path, JSON.stringify(own), { mode: 0o600, flag: 'wx' })
  } catch (cause) {
    const { code = 'unknown reason' } = cause as NodeJS.ErrnoException
    const [reason, remedy] = (Object.hasOwn(folderFaults, code) && folderFaults[code]) || [code, 'Mend that']
    throw new ConfigError(
      `Nothing can be written to the data folder ${dataDir}: ${reason}. ${remedy}, or name another one in DATA_DIR.`,
      { cause },
    )
  }
}

const notOwner = ['this user may not write there', 'Run the command as the user of the service'] as const

const folderFaults: Readonly<Record<string, readonly [reason: string, remedy: string]>> = {
  EACCES: notOwner,
  EPERM: notOwner,
  EROFS: ['its file system is read-only', 'Mount it writable'],
  ENOSPC: ['its disk is full', 'Free space on it'],
  EEXIST: ['it is a link to a folder that does not exist', 'Make that folder'],
  ENOENT: ['no folder can be made there', 'Mount one there'],
}

/** Pause of a process while another one removes the file. */
const removalMs = 100
/** A claim of this age is that of a process which was killed. */
const abandonedMs = 10_000

/**
 * Removes the file of a dead process if it still has this text. Only the process that makes the claim, a second link of its own file, may do
 * so. Another one may have put its file there already.
 */
async function removeStale(path: string, text: string, mine: string): Promise<void> {
  const claim = `${path}.${createHash('sha256').update(text).digest('hex').slice(0, 12)}.stale`
  try {
    await link(mine, claim)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    const made = await stat(claim).catch(ifMissing(null))
    if (made !== null && Date.now() - made.mtimeMs > abandonedMs) await rm(claim, { force: true })
    return sleep(removalMs)
  }
  try {
    if ((await readText(path)) !== text) return
    await rm(path, { force: true })
    const address = parseAddressFile(text)
    if (address !== null) await rm(socketFile(path, address), { force: true })
  } finally {
    await rm(claim, { force: true })
  }
}
