/**
 * Who holds a data folder, and the way from the CLI to it. The embedded database belongs to one process, so a command that needs
 * it is carried out by the service that holds it: the CLI sends its arguments over loopback with a token from the data folder
 * (mode 0600) and prints what comes back, line by line (`control-client.ts`). The same file keeps a second service out.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { link, mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { addressAt, addressFile, isAlive, type Address, type Line } from './control-client.ts'

/** Where a command prints, the folder its file names are relative to, and the end of the one who asked. */
export type CommandIo = {
  readonly out: (line: string) => void
  readonly err: (line: string) => void
  readonly cwd: string
  readonly signal: AbortSignal
}
/** Carries a command out and gives its exit code. */
export type RunCommand = (argv: readonly string[], io: CommandIo) => Promise<number>

export type Door = AsyncDisposable & {
  /** From now on commands are carried out; before, they are told to wait. */
  readonly serve: (run: RunCommand) => void
  /** Tells the commands under way to stop, takes no more, and waits for them at most `withinMs`. */
  readonly stop: (withinMs?: number) => Promise<void>
  /** Gives the folder up; so does the end of its scope. */
  readonly close: () => Promise<void>
}

const maxRequest = 64 * 1024

/** Takes hold of a data folder for this process, or names the process that has it. */
export async function openControl(
  dataDir: string,
): Promise<{ readonly ok: true; readonly door: Door } | { readonly ok: false; readonly pid: number }> {
  const token = randomBytes(32).toString('hex')
  const work: DoorState = { run: notYet, token, stopping: new AbortController(), running: new Set() }
  const server = createServer((request, response) => {
    void answer(request, response, work).catch(() => response.destroy())
  })
  await new Promise<void>((resolve, reject) =>
    // Exclusive: workers share a port 0, but each door is one process's.
    server.once('error', reject).listen({ port: 0, host: '127.0.0.1', exclusive: true }, resolve),
  )
  const end = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  const own: Address = { pid: process.pid, port: (server.address() as AddressInfo).port, token }
  const holder = await take(dataDir, own).catch(async (error: unknown) => {
    await end() // a server that listens would keep the process from ending
    throw error
  })
  if (holder !== null) {
    await end()
    return { ok: false, pid: holder }
  }
  const stop = async (withinMs = 2_000) => {
    work.run = notYet
    work.stopping.abort()
    await Promise.race([Promise.allSettled(work.running), delay(withinMs, undefined, { ref: false })])
  }
  const close = async () => {
    await stop()
    await release(dataDir, token)
    await end()
  }
  const serve = (run: RunCommand) => void (work.run = run)
  return { ok: true, door: { serve, stop, close, [Symbol.asyncDispose]: close } }
}

type DoorState = {
  run: RunCommand
  readonly token: string
  readonly stopping: AbortController
  readonly running: Set<Promise<number>>
}

async function answer(request: IncomingMessage, response: ServerResponse, work: DoorState): Promise<void> {
  if (!sameToken(request.headers.authorization, work.token)) return void response.writeHead(403).end()
  if (request.method === 'GET') return void response.writeHead(204).end()
  const order = await orderOf(request)
  if (order === null) return void response.writeHead(400).end()
  const ended = new AbortController()
  response.once('close', () => ended.abort())
  response.writeHead(200, { 'Content-Type': 'application/x-ndjson' })
  const send = (line: Line) => void (ended.signal.aborted || response.write(`${JSON.stringify(line)}\n`))
  const { argv, cwd } = order
  const signal = AbortSignal.any([ended.signal, work.stopping.signal])
  const running = work.run(argv, { cwd, signal, out: (out) => send({ out }), err: (err) => send({ err }) })
  work.running.add(running)
  send({ exit: await running.finally(() => work.running.delete(running)) })
  response.end()
}

const notYet: RunCommand = (_argv, io) => {
  io.err(`touchstone: process ${process.pid} is at work on this data folder; repeat the command in a moment.`)
  return Promise.resolve(1)
}

function sameToken(header: string | undefined, token: string): boolean {
  const given = Buffer.from(header ?? '')
  const wanted = Buffer.from(`Bearer ${token}`)
  return given.length === wanted.length && timingSafeEqual(given, wanted)
}

async function orderOf(request: IncomingMessage): Promise<{ argv: string[]; cwd: string } | null> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > maxRequest) return null
    chunks.push(chunk)
  }
  try {
    const { argv, cwd } = JSON.parse(Buffer.concat(chunks).toString()) as { argv: unknown; cwd: unknown }
    const isArgv = Array.isArray(argv) && argv.every((word) => typeof word === 'string')
    return isArgv && typeof cwd === 'string' ? { argv, cwd } : null
  } catch {
    return null
  }
}

/** Null when the folder is ours now. A link is made whole or not at all, so two that start together cannot both have it. */
async function take(dataDir: string, own: Address): Promise<number | null> {
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
      const other = await addressAt(path)
      if (other !== null && (await isAlive(other))) return other.pid
      await removeDead(path, other)
    }
    throw new Error(`${path} cannot be replaced. Remove it when no service runs on this folder.`)
  } finally {
    await rm(mine, { force: true }).catch(() => {}) // there is no such folder
  }
}

/** An Error of one sentence where nothing can be written. */
async function writeOwn(dataDir: string, path: string, own: Address): Promise<void> {
  try {
    await mkdir(dataDir, { recursive: true })
    await writeFile(path, JSON.stringify(own), { mode: 0o600, flag: 'wx' })
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'unknown'
    const why = code === 'ENOSPC' ? 'its disk is full' : code
    throw new Error(
      `Nothing can be written to the data folder ${dataDir} (${why}). Mend that, or name another DATA_DIR.`,
      {
        cause,
      },
    )
  }
}

/** Another one may have removed the dead file first and put its own there: that one goes back. */
async function removeDead(path: string, dead: Address | null): Promise<void> {
  const aside = `${path}.${randomBytes(6).toString('hex')}`
  const moved = await rename(path, aside).then(
    () => true,
    () => false,
  )
  if (!moved) return
  const found = await addressAt(aside)
  if (found !== null && found.token !== dead?.token) await link(aside, path).catch(() => {})
  await rm(aside, { force: true })
}

async function release(dataDir: string, token: string): Promise<void> {
  const current = await addressAt(addressFile(dataDir))
  if (current?.token === token) await rm(addressFile(dataDir), { force: true })
}
