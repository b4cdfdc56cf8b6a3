/**
 * The client of `data-directory-lock.ts` runs a command in the service that holds a data folder. It does so before the program of this
 * process is loaded: loading takes most of a second.
 */
import { createHmac, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import type { Writable } from 'node:stream'
import { readConfig } from '../../app/config/config.ts'
import { constantTimeEqual } from '../../lib/bytes.ts'
import { reasonOf } from '../../lib/errors.ts'
import { handleSignals } from '../serve/signals.ts'
import { type Address, addressFile, isElsewhere, isHolderListening, lastTouch, readAddress } from './address-file.ts'
import { commandRights } from './command-rights.ts'

/** One line of the response, a JSON object. */
export type ControlLine = { readonly out: string } | { readonly err: string } | { readonly exit: number }

/**
 * Output of a command, the folder of its relative file names, and a signal. The signal aborts when the command is interrupted or its caller
 * leaves.
 */
export type CommandIo = {
  readonly out: (line: string) => void
  readonly err: (line: string) => void
  /** Resolves when the reader has taken what was printed, or leaves, or the signal aborts. Long outputs wait for it. */
  readonly drained?: () => Promise<void>
  readonly cwd: string
  readonly signal: AbortSignal
  /** The id of a command that the service runs. A write without a key is done under it. */
  readonly id?: string
}

/** Returns the terminal of this process, whose first SIGINT or SIGTERM aborts the signal. */
export function terminalIo(): CommandIo {
  const interrupted = new AbortController()
  const { stop, started } = handleSignals()
  started()
  void stop.then(() => interrupted.abort())
  return {
    out: (line) => void process.stdout.write(`${line}\n`),
    err: (line) => void process.stderr.write(`${line}\n`),
    drained: () => drainOf(process.stdout, interrupted.signal),
    cwd: process.cwd(),
    signal: interrupted.signal,
  }
}

/** Resolves when a stream has room again, or is closed, or when the signal aborts. */
export async function drainOf(stream: Writable, interrupted: AbortSignal): Promise<void> {
  if (!stream.writableNeedDrain || stream.destroyed) return
  const ended = new AbortController()
  const signal = AbortSignal.any([ended.signal, interrupted])
  const events = ['drain', 'close'].map((event) => once(stream, event, { signal }))
  for (const event of events) event.catch(() => {})
  await Promise.race(events)
    .catch((error: unknown) => {
      if (!interrupted.aborted) throw error
    })
    .finally(() => ended.abort())
}

/** A process that holds a data folder. `elsewhere`: in another container or on another machine. */
export type FolderHolder = { readonly pid: number; readonly elsewhere: boolean }

/** Returns the process that holds the data folder, or null. A slow one counts as alive, so that its folder is not acquired. */
export async function holderOf(dataDir: string): Promise<FolderHolder | null> {
  const path = addressFile(dataDir)
  const address = await readAddress(path)
  if (address === null) return null
  const elsewhere = isElsewhere(address)
  const isAlive = elsewhere
    ? (await isHolderListening(path, address)) || (await lastTouch(path)) !== null
    : (await challenge(address, 3_000)) !== 'none'
  return isAlive ? { pid: address.pid, elsewhere } : null
}

/**
 * Runs a command in the service that holds the data folder. Returns its exit code, or null when no service here holds it. An interrupted
 * command ends by itself and prints how to go on. Throws one sentence when the service ends before the command.
 */
export async function runInService(dataDir: string, argv: readonly string[], io: CommandIo): Promise<number | null> {
  const address = await readAddress(addressFile(dataDir))
  if (address === null || isElsewhere(address)) return null
  const answer = await challenge(address, 30_000)
  if (answer === 'none') return null
  if (answer === 'late')
    throw new Error(
      `The service of process ${address.pid} does not respond. Repeat the command; if no such process runs, remove control.json of the data folder.`,
    )
  const own = argv.map((word) => word.replace(/^--[\w-]+=/, '')).find(isOwnDescriptor)
  if (own !== undefined)
    throw new Error(`${own} is open in this process, and the running service executes the command: give it a file.`)
  const id = randomUUID()
  const interrupt = () => {
    const headers = authorization(address, 'DELETE', `/${id}`)
    const signal = AbortSignal.timeout(interruptMs)
    fetch(`${urlOf(address)}${id}`, { method: 'DELETE', headers, signal }).catch(() => {}) // a service that is gone has ended the command
  }
  if (io.signal.aborted) throw new Error('The command was interrupted before it began.')
  io.signal.addEventListener('abort', interrupt, { once: true })
  const body = JSON.stringify({ id, argv, cwd: io.cwd })
  const response = await post(address, body)
  if (response === null) throw new Error(ended(id, argv))
  if (response.statusCode !== 200) {
    response.destroy()
    throw new Error('The service did not take the command: it may be too long.')
  }
  const exit = await relay(response, io).catch(() => null)
  io.signal.removeEventListener('abort', interrupt)
  if (exit === null) throw new Error(ended(id, argv))
  return exit
}

/** Returns whether a path names standard input or a pipe of the shell, such as `<(…)`. In another process it is another file. */
export function isOwnDescriptor(path: string): boolean {
  return /^\/(?:dev\/(?:stdin|fd\/\d+)|proc\/self\/fd\/\d+)$/.test(path)
}

/** The deadline of the request that interrupts a command. */
const interruptMs = 10_000

/** Returns how to repeat a command. A write may have been sent, and another key would send it once more. */
function ended(id: string, argv: readonly string[]): string {
  const isWrite = argv[0] === 'asset' && commandRights[argv.slice(0, 2).join(' ')] === 'changes'
  const hasKey = argv.some((word) => /^--key(?:=|$)/.test(word))
  const once = isWrite && !hasKey ? ` with --key ${defaultKey(id)}, which does it once` : ''
  return `The service ended before the command did. Start it again, then repeat the command${once}.`
}

/** The idempotency key of a write for which the command names none. */
export function defaultKey(id: string): string {
  return `cli-${id}`
}

/** Returns the response, or null when the service has ended. A command may be quiet for hours, and `fetch` would end it after five minutes. */
async function post(address: Address, body: string): Promise<IncomingMessage | null> {
  const headers = authorization(address, 'POST', '/')
  const sent = request(urlOf(address), { method: 'POST', headers })
  sent.on('error', () => {}) // later than the response, which fails too
  const response = once(sent.end(body), 'response') as Promise<[IncomingMessage]>
  return response.then(
    ([first]) => {
      if (isProof(address, headers['X-Challenge'], String(first.headers['x-proof']))) return first
      first.destroy()
      return null
    },
    () => null,
  )
}

async function relay(body: AsyncIterable<Uint8Array>, io: CommandIo): Promise<number | null> {
  let rest = ''
  let exit: number | null = null
  const decoder = new TextDecoder()
  for await (const chunk of body) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const text of lines) {
      const line = JSON.parse(text) as ControlLine
      if ('exit' in line) exit = line.exit
      else if ('out' in line) io.out(line.out)
      else io.err(line.err)
    }
    await io.drained?.()
  }
  return exit
}

/**
 * Asks the process of an address for a proof that it has the token. After a kill its port may belong to another program. Returns `none`
 * for such a program and for a free port.
 */
async function challenge(address: Address, timeoutMs: number): Promise<'proof' | 'none' | 'late'> {
  const signal = AbortSignal.timeout(timeoutMs)
  const nonce = randomUUID()
  const headers = { 'X-Challenge': nonce }
  const response = await fetch(urlOf(address), { headers, signal, redirect: 'error' }).catch(() => null)
  if (response === null) return signal.aborted ? 'late' : 'none'
  void response.body?.cancel().catch(() => {}) // another program may never end it
  return isProof(address, nonce, response.headers.get('x-proof') ?? '') ? 'proof' : 'none'
}

function urlOf({ port }: Address): string {
  return `http://127.0.0.1:${port}/`
}

type Keyed = Pick<Address, 'token'>

/** Returns the headers of a request: a MAC of it and of a new challenge. The token itself is never sent. */
export function authorization({ token }: Keyed, method: string, path: string) {
  const challenge = randomUUID()
  return { 'X-Challenge': challenge, Authorization: requestMac(token, method, path, challenge) }
}

export function requestMac(token: string, method: string, path: string, challenge: string): string {
  return mac(token, `request\n${method}\n${path}\n${challenge}`)
}

/** Returns the header `X-Proof` of a response, by which the service proves that it has the token. */
export function proofOf(token: string, challenge: string): string {
  return mac(token, `response\n${challenge}`)
}

function isProof({ token }: Keyed, challenge: string, proof: string): boolean {
  return constantTimeEqual(Buffer.from(proof), Buffer.from(proofOf(token, challenge)))
}

function mac(token: string, text: string): string {
  return createHmac('sha256', token).update(text).digest('hex')
}

/** Groups of commands that a running service runs. Their help is always printed by this process. */
export const serviceGroups: ReadonlySet<string> = new Set(
  Object.entries(commandRights).flatMap(([name, right]) => (right === 'apart' ? [] : name.split(' ', 1))),
)

/**
 * Returns false when this process must run the command itself. Then no service holds the folder, or the command is no work for a service.
 */
export async function forwardToService(argv: readonly string[]): Promise<boolean> {
  const [group = '', ...words] = argv
  const isHelp = words.length === 0 || words.some((word) => ['--help', '-h', 'help'].includes(word))
  if (!serviceGroups.has(group) || isHelp) return false
  let dataDir: string
  try {
    dataDir = readConfig(process.env).dataDir
  } catch {
    return false // the program reports wrong settings
  }
  const io = terminalIo()
  try {
    const exit = await runInService(dataDir, argv, io)
    if (exit === null) return false
    process.exitCode = exit
  } catch (error) {
    io.err(`touchstone: ${reasonOf(error)}`)
    process.exitCode = 1
  }
  return true
}
