/**
 * The anvil program of the local chain: found, started on the loopback address, watched, ended. It must never outlive the service,
 * not even after a SIGKILL.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { chainId } from '../../domain/chain.ts'
import { withDeadline } from '../../lib/async/deadline.ts'
import { sleep } from '../../lib/async/sleep.ts'

export type AnvilOptions = Readonly<{
  /** Folder of this chain. Its path is among anvil's arguments, which distinguishes a leftover from another process. */
  folder: string
  /** 0 chooses a free port. */
  port: number
  /** JSON state to begin with. */
  statePath?: string | undefined
  /** Time between blocks; without it only transactions make blocks. */
  blockTimeMs?: number | undefined
}>

export type Anvil = Awaited<ReturnType<typeof startAnvil>>

const startTimeoutMs = 30_000
const stopTimeoutMs = 1_500

/** Starts anvil and waits until it listens. Every failure is one sentence that says what to do, or `StateRefused`. */
export async function startAnvil({ folder, port, statePath, blockTimeMs }: AnvilOptions) {
  const flags = [
    ['--chain-id', String(chainId), '--host', '127.0.0.1', '--port', String(port)],
    // More than 500 states would spill to the home folder and stay there. Older pinned reads fail with −32602.
    ['--prune-history', '256', '--slots-in-an-epoch', '1', '--cache-path', join(folder, 'spill')],
    statePath === undefined ? [] : ['--load-state', statePath],
    blockTimeMs === undefined ? [] : ['--block-time', String(blockTimeMs / 1000), '--mixed-mining'],
  ]
  // Detached: Ctrl-C in the terminal must not end the chain before its state is saved.
  const child = spawn(anvilBinary(), flags.flat(), { stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  const killNow = () => void child.kill('SIGKILL')
  process.once('exit', killNow)
  const watchdog = child.pid === undefined ? undefined : startWatchdog(child.pid, folder)
  const pidFile = join(folder, pidFileName)
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()).once('error', () => resolve()))
  /** Resolves when the process has ended. */
  const exited = ended.then(() => {
    process.off('exit', killNow)
    watchdog?.kill('SIGKILL') // its input stays open until here: the number of an ended process may become another's
    return rm(pidFile, { force: true })
  })

  /** SIGTERM, then SIGKILL after 1.5 s. */
  const stop = async () => {
    child.kill('SIGTERM')
    const timer = setTimeout(killNow, stopTimeoutMs)
    await exited
    clearTimeout(timer)
  }
  // Node drains the output of a process that has ended, so that a later listener would wait in vain.
  const listened = listeningPort(child, port)
  listened.catch(() => {})
  try {
    await writeFile(pidFile, JSON.stringify({ anvil: child.pid, service: process.pid }))
    const listening = await listened
    child.stdout.resume()
    child.stderr.resume()
    return { url: `http://127.0.0.1:${listening}`, port: listening, exited, stop }
  } catch (error) {
    killNow()
    await exited
    throw error
  }
}

/** anvil cannot read its saved state. */
export class StateRefused extends Error {}

/** Returns the path of the program itself: the package's script does not pass signals on. */
export function anvilBinary(platform: string = process.platform, arch: string = process.arch): string {
  const name = `@foundry-rs/anvil-${platform}-${arch === 'x64' ? 'amd64' : arch}`
  try {
    const anvilPackage = createRequire(import.meta.url).resolve('@foundry-rs/anvil/package.json')
    return createRequire(anvilPackage).resolve(`${name}/bin/anvil${platform === 'win32' ? '.exe' : ''}`)
  } catch (error) {
    throw new Error(
      `The local chain needs the npm package ${name}, which is not installed. Run "npm install" with optional packages, or name another chain in CHAIN_RPC_URLS.`,
      { cause: error },
    )
  }
}

function listeningPort(child: ChildProcess, wanted: number): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  let output = ''
  const collect = (chunk: Buffer) => {
    output = (output + chunk.toString('utf8')).slice(-20_000)
    const port = /^Listening on 127\.0\.0\.1:(\d+)$/m.exec(output)?.[1]
    if (port !== undefined) resolve(Number(port))
  }
  child.stdout?.on('data', collect)
  child.stderr?.on('data', collect)
  child.once('error', (cause) => reject(new Error('The program of the local chain, anvil, cannot be run.', { cause })))
  child.once('close', () => reject(startFailure(output, wanted)))
  return withDeadline(promise, startTimeoutMs, {
    onTimeout: () => {
      throw new Error(`The local chain did not start within ${startTimeoutMs / 1000} s.`)
    },
  })
}

function startFailure(output: string, port: number): Error {
  if (output.includes('Address already in use')) {
    return new Error(
      `Port ${port} on 127.0.0.1, meant for the local chain, is in use: stop the program that holds it, or choose another port.`,
    )
  }
  if (output.includes('--load-state'))
    return new StateRefused('anvil refuses the saved state', { cause: output.slice(0, 300) })
  const reason = output.split('\n').findLast((line) => line.trim() !== '')
  return new Error(`The local chain did not start; its program anvil said: ${reason?.slice(0, 200) ?? 'nothing'}`)
}

/**
 * Starts a shell whose input closes when this process ends, for whatever reason. It then kills anvil, if that process number is still
 * anvil on this folder. Windows has no such shell; there the next start ends the leftover.
 */
function startWatchdog(anvil: number, folder: string): ChildProcess | undefined {
  if (process.platform === 'win32') return undefined
  const script = `cat >/dev/null
if [ -r "/proc/$1/cmdline" ]; then line=$(tr '\\0' ' ' <"/proc/$1/cmdline"); else line=$(ps -o args= -p "$1"); fi
case "$line" in *"$2"*) kill -9 "$1" ;; esac`
  const shell = spawn('/bin/sh', ['-c', script, 'sh', String(anvil), folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  shell.once('error', () => {})
  shell.stdin.once('error', () => {})
  shell.unref()
  return shell
}

const pidFileName = 'anvil.pid'

/**
 * Ends an anvil that a killed service left behind. Throws one sentence when a running service uses this folder. A process number that
 * now belongs to another program is left alone.
 */
export async function endLeftover(folder: string): Promise<void> {
  const file = join(folder, pidFileName)
  const { anvil, service } = recorded(await readFile(file, 'utf8').catch(() => ''))
  if (anvil === undefined) return
  for (let waits = 0; waits < 100; waits += 1) {
    const found = await processOf(anvil)
    if (found === undefined || !found.command.includes(folder)) return rm(file, { force: true })
    if (found.parent === service) {
      throw new Error(
        `Process ${service} already runs the local chain in ${folder}: stop it first, or choose another DATA_DIR.`,
      )
    }
    if (waits === 0) process.kill(anvil, 'SIGKILL')
    await sleep(20)
  }
}

function recorded(text: string): { anvil?: number; service?: number } {
  const match = /^\{"anvil":(\d{1,10}),"service":(\d{1,10})\}$/.exec(text)
  return match === null ? {} : { anvil: Number(match[1]), service: Number(match[2]) }
}

/** Returns command line and parent of a process. Returns undefined when it has ended, or where the system does not show them. */
async function processOf(pid: number): Promise<{ command: string; parent: number } | undefined> {
  try {
    if (process.platform === 'linux') {
      const [command, status] = await Promise.all(
        ['cmdline', 'stat'].map((name) => readFile(`/proc/${pid}/${name}`, 'utf8')),
      )
      const parent = Number(/\) \S (\d+)/.exec(status ?? '')?.[1])
      return { command: command ?? '', parent }
    }
    const args = ['-ww', '-o', 'ppid=,args=', '-p', String(pid)]
    const { stdout } = await promisify(execFile)('ps', args, { timeout: 2_000 })
    const [, parent, command = ''] = /^\s*(\d+)\s+(.*)/.exec(stdout) ?? []
    return parent === undefined ? undefined : { command, parent: Number(parent) }
  } catch {
    return undefined
  }
}
