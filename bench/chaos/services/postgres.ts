/** A PostgreSQL cluster of one's own in a temporary folder, that can be stopped, killed and started again. */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { run, type Running } from '../../lib/program.ts'
import { freePort } from '../../../service/test/support/free-port.ts'

export type OwnPostgres = {
  readonly url: string
  readonly start: () => Promise<void>
  /** As an immediate shutdown: no checkpoint, clients are cut off, the next start recovers from the log. */
  readonly stopNow: () => Promise<void>
  /** SIGKILL of the postmaster alone: its children notice by themselves. */
  readonly kill: () => Promise<void>
  readonly close: () => Promise<void>
}

/** An Error of one sentence where PostgreSQL is not installed. It never runs as root. */
export async function startOwnPostgres(): Promise<OwnPostgres> {
  const bin = binFolder()
  const folder = await mkdtemp(join(tmpdir(), 'touchstone-postgres-'))
  const data = join(folder, 'data')
  const port = await freePort()
  const isRoot = process.getuid?.() === 0
  if (isRoot) execFileSync('chown', ['postgres:', folder])
  const asPostgres = isRoot ? ['setpriv', '--reuid=postgres', '--regid=postgres', '--init-groups'] : []
  const command = (name: string, args: readonly string[]) => {
    const [program = '', ...rest] = [...asPostgres, join(bin, name), ...args]
    return { command: program, args: rest, cwd: folder }
  }
  const init = command('initdb', ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync'])
  execFileSync(init.command, init.args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  const listening = ['-p', String(port), '-k', folder, '-c', 'listen_addresses=127.0.0.1', '-c', 'max_connections=200']
  let server: Running | undefined

  /** Leftovers of a killed postmaster keep the next one from starting for a moment. */
  async function start(): Promise<void> {
    for (const until = performance.now() + 30_000; ; await delay(200)) {
      server = run(command('postgres', ['-D', data, ...listening]))
      const ready = server.line(/ready to accept connections/, 20_000)
      const failure = await ready.then(() => null, String)
      if (failure === null) return
      await end('SIGKILL')
      if (performance.now() > until) throw new Error(`PostgreSQL does not start: ${failure}`)
    }
  }

  async function end(signal: 'SIGQUIT' | 'SIGKILL'): Promise<void> {
    server?.signal(signal)
    await server?.ended
  }

  await start()
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    start,
    stopNow: () => end('SIGQUIT'),
    kill: () => end('SIGKILL'),
    async close() {
      await end('SIGQUIT')
      await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
    },
  }
}

/** Debian keeps the server's programs out of PATH, by version. */
function binFolder(): string {
  const debian = '/usr/lib/postgresql'
  const versions = existsSync(debian) ? readdirSync(debian).toSorted((a, b) => Number(b) - Number(a)) : []
  const folders = [
    ...versions.map((version) => join(debian, version, 'bin')),
    ...(process.env['PATH'] ?? '').split(':'),
  ]
  const found = folders.find((folder) => existsSync(join(folder, 'initdb')))
  if (found === undefined) throw new Error('This needs the programs of a PostgreSQL server (initdb, postgres).')
  return found
}
