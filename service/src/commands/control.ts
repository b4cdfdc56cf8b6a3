/**
 * The way from the CLI to a running service. The embedded database belongs to one process, so a command that needs it is carried
 * out by the service that holds it: the CLI sends its arguments over loopback with a token from the data folder (mode 0600)
 * and prints what comes back, line by line.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Where a command prints, and the folder its file names are relative to. */
export type CommandIo = {
  readonly out: (line: string) => void
  readonly err: (line: string) => void
  readonly cwd: string
}
export type RunCommand = (argv: readonly string[], io: CommandIo) => Promise<number>

type Address = { readonly pid: number; readonly port: number; readonly token: string }
type Line = { readonly out: string } | { readonly err: string } | { readonly exit: number }

const maxRequest = 64 * 1024

/** Opens the door of a service; `run` carries a command out and gives its exit code. */
export async function openControl({
  dataDir,
  run,
}: {
  readonly dataDir: string
  readonly run: RunCommand
}): Promise<{ close: () => Promise<void> }> {
  const token = randomBytes(32).toString('hex')
  const server = createServer((request, response) => {
    const send = (line: Line) => void response.write(`${JSON.stringify(line)}\n`)
    void (async () => {
      if (!sameToken(request.headers.authorization, token)) return void response.writeHead(403).end()
      const { argv, cwd } = JSON.parse(await bodyOf(request)) as { argv: string[]; cwd: string }
      response.writeHead(200, { 'Content-Type': 'application/x-ndjson' })
      send({ exit: await run(argv, { cwd, out: (out) => send({ out }), err: (err) => send({ err }) }) })
      response.end()
    })().catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  await mkdir(dataDir, { recursive: true })
  const path = fileOf(dataDir)
  await writeFile(
    `${path}.new`,
    JSON.stringify({ pid: process.pid, port: (server.address() as AddressInfo).port, token } satisfies Address),
    { mode: 0o600 },
  )
  await rename(`${path}.new`, path)
  return {
    close: async () => {
      await rm(path, { force: true })
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** The process that holds the data folder, if one does. */
export async function holderOf(dataDir: string): Promise<number | null> {
  const address = await addressOf(dataDir)
  return address !== null && (await ask(address, ['--version'], () => {})) !== null ? address.pid : null
}

/** Carries a command out in the service that holds the data folder; null when none does. */
export async function runInService(dataDir: string, argv: readonly string[], io: CommandIo): Promise<number | null> {
  const address = await addressOf(dataDir)
  return address === null
    ? null
    : ask(
        address,
        argv,
        (line) => ('out' in line ? io.out(line.out) : 'err' in line ? io.err(line.err) : undefined),
        io.cwd,
      )
}

async function ask(
  { port, token }: Address,
  argv: readonly string[],
  onLine: (line: Line) => void,
  cwd = '/',
): Promise<number | null> {
  const response = await fetch(`http://127.0.0.1:${port}/`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}` },
    body: JSON.stringify({ argv, cwd }),
  }).catch(() => null)
  if (response?.status !== 200 || response.body === null) return null
  let rest = ''
  let exit: number | null = null
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const text of lines) {
      const line = JSON.parse(text) as Line
      if ('exit' in line) exit = line.exit
      else onLine(line)
    }
  }
  if (exit === null)
    throw new Error('The service ended before the command did. Start it again, then repeat the command.')
  return exit
}

async function addressOf(dataDir: string): Promise<Address | null> {
  try {
    return JSON.parse(await readFile(fileOf(dataDir), 'utf8')) as Address
  } catch {
    return null
  }
}

function fileOf(dataDir: string): string {
  return join(dataDir, 'control.json')
}

function sameToken(header: string | undefined, token: string): boolean {
  const given = Buffer.from(header ?? '')
  const wanted = Buffer.from(`Bearer ${token}`)
  return given.length === wanted.length && timingSafeEqual(given, wanted)
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) {
    text += (chunk as Buffer).toString()
    if (text.length > maxRequest) throw new Error('The command line is too long.')
  }
  return text
}
