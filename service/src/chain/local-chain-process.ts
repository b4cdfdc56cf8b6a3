/**
 * The anvil program of the local chain: found, started on the loopback address, watched, ended.
 * It must never outlive the service: not after a crash, and not after a SIGKILL.
 */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pidFileName } from './local-chain-leftover.ts'

export type AnvilOptions = Readonly<{
  /** Folder of this chain. Its path stands in anvil's arguments: that is how a leftover is told from a stranger. */
  folder: string
  /** 0 chooses a free one. */
  port: number
  /** JSON state to begin with. */
  statePath?: string | undefined
  /** Also mine a block every so often; without it only transactions make blocks. */
  blockTimeMs?: number | undefined
}>

export type Anvil = Readonly<{
  url: string
  port: number
  /** Settles when the process has ended, for whatever reason. */
  exited: Promise<void>
  /** SIGTERM, then SIGKILL after 1.5 s. */
  stop: () => Promise<void>
}>

const startTimeoutMs = 30_000
const stopTimeoutMs = 1_500

/** Starts anvil and waits until it listens. Every failure is one sentence that says what to do, or `StateRefused`. */
export async function startAnvil({ folder, port, statePath, blockTimeMs }: AnvilOptions): Promise<Anvil> {
  const flags = [
    ['--chain-id', '84532', '--host', '127.0.0.1', '--port', String(port)],
    // Without a limit, states beyond 500 spill to the home folder and stay there. Older pinned reads give −32602.
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
  const exited = ended.then(() => {
    process.off('exit', killNow)
    watchdog?.kill('SIGKILL') // its input stays open until here: the number of an ended process may become another's
    return rm(pidFile, { force: true })
  })

  const stop = async () => {
    child.kill('SIGTERM')
    const timer = setTimeout(killNow, stopTimeoutMs)
    await exited
    clearTimeout(timer)
  }
  try {
    await writeFile(pidFile, JSON.stringify({ anvil: child.pid, service: process.pid }))
    const listening = await listeningPort(child, port)
    child.stdout.resume()
    child.stderr.resume()
    return { url: `http://127.0.0.1:${listening}`, port: listening, exited, stop }
  } catch (error) {
    killNow()
    await exited
    throw error
  }
}

/** anvil cannot read the state it was given. */
export class StateRefused extends Error {}

/** The real program, not the package's script: signals must arrive. */
export function anvilBinary(platform: string = process.platform, arch: string = process.arch): string {
  const name = `@foundry-rs/anvil-${platform}-${arch === 'x64' ? 'amd64' : arch}`
  try {
    const anvilPackage = createRequire(import.meta.url).resolve('@foundry-rs/anvil/package.json')
    return createRequire(anvilPackage).resolve(`${name}/bin/anvil${platform === 'win32' ? '.exe' : ''}`)
  } catch (error) {
    const sentence = `The local chain needs the npm package ${name}, which is not installed: run "npm install" without leaving out optional packages, or name another chain in CHAIN_RPC_URLS.`
    throw new Error(sentence, { cause: error })
  }
}

function listeningPort(child: ChildProcess, wanted: number): Promise<number> {
  return new Promise((resolve, reject) => {
    let output = ''
    const fail = (error: Error) => reject(error)
    const timer = setTimeout(
      () => fail(new Error(`The local chain did not start within ${startTimeoutMs / 1000} s.`)),
      startTimeoutMs,
    )
    const collect = (chunk: Buffer) => {
      output = (output + chunk.toString('utf8')).slice(-20_000)
      const port = /^Listening on 127\.0\.0\.1:(\d+)$/m.exec(output)?.[1]
      if (port === undefined) return
      clearTimeout(timer)
      resolve(Number(port))
    }
    child.stdout?.on('data', collect)
    child.stderr?.on('data', collect)
    child.once('error', (error) =>
      fail(new Error('The program of the local chain, anvil, cannot be run.', { cause: error })),
    )
    child.once('close', () => {
      clearTimeout(timer)
      fail(startFailure(output, wanted))
    })
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
 * A shell that waits for its input to close, which happens when this process is gone, however it went, and then ends anvil,
 * if that number still is anvil on this folder. Windows has no such shell; there the next start ends the leftover.
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
