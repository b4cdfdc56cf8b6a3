/** The CLI's side of `control.ts`: finds the service that holds a data folder and has a command carried out there. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

export type Address = { readonly pid: number; readonly port: number; readonly token: string }
/** What comes back, one JSON object a line. */
export type Line = { readonly out: string } | { readonly err: string } | { readonly exit: number }

type Output = {
  readonly out: (line: string) => void
  readonly err: (line: string) => void
  readonly cwd: string
  readonly signal: AbortSignal
}

/** The process that holds the data folder, if one does. */
export async function holderOf(dataDir: string): Promise<number | null> {
  const address = await addressAt(addressFile(dataDir))
  return address !== null && (await isAlive(address)) ? address.pid : null
}

/**
 * Carries a command out in the service that holds the data folder and gives its exit code; null when none does.
 * Throws one sentence when the service ends before the command.
 */
export async function runInService(dataDir: string, argv: readonly string[], io: Output): Promise<number | null> {
  const address = await addressAt(addressFile(dataDir))
  if (address === null || !(await isAlive(address))) return null
  const response = await fetch(urlOf(address), {
    method: 'POST',
    headers: authorization(address),
    body: JSON.stringify({ argv, cwd: io.cwd }),
    signal: io.signal,
  }).catch(() => null)
  if (response === null) throw new Error(ended)
  if (response.status !== 200 || response.body === null)
    throw new Error('The service did not take the command: it may be too long.')
  const exit = await relay(response.body, io).catch(() => null)
  if (exit === null) throw new Error(ended)
  return exit
}

const ended = 'The service ended before the command did. Start it again, then repeat the command.'

async function relay(body: ReadableStream<Uint8Array>, io: Output): Promise<number | null> {
  let rest = ''
  let exit: number | null = null
  const decoder = new TextDecoder()
  for await (const chunk of body) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const text of lines) {
      const line = JSON.parse(text) as Line
      if ('exit' in line) exit = line.exit
      else if ('out' in line) io.out(line.out)
      else io.err(line.err)
    }
  }
  return exit
}

/**
 * Whether the process of an address still listens. One that is there but slow counts as alive: to take its folder would be worse
 * than to ask again.
 */
export async function isAlive(address: Address): Promise<boolean> {
  try {
    const response = await fetch(urlOf(address), {
      headers: authorization(address),
      signal: AbortSignal.timeout(3_000),
      redirect: 'error',
    })
    return response.status === 204
  } catch (error) {
    return error instanceof Error && error.name === 'TimeoutError'
  }
}

/** What is written in the file; null when there is none, or no address in it. It throws when the file may not be read. */
export async function addressAt(path: string): Promise<Address | null> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw new Error('The data folder belongs to another user: run the command as the user of the service.', {
      cause: error,
    })
  })
  try {
    const { pid, port, token } = JSON.parse(text ?? '{}') as Record<string, unknown>
    const isLegal = Number.isInteger(pid) && Number.isInteger(port) && typeof token === 'string'
    return isLegal ? ({ pid, port, token } as Address) : null
  } catch {
    return null
  }
}

export function addressFile(dataDir: string): string {
  return join(dataDir, 'control.json')
}

function urlOf({ port }: Address): string {
  return `http://127.0.0.1:${port}/`
}

function authorization({ token }: Address): { Authorization: string } {
  return { Authorization: `Bearer ${token}` }
}
