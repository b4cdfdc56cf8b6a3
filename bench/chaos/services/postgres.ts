/** A PostgreSQL in a temporary folder of its own. It can be stopped, killed and started again, and replaced by a standby. */
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { appendFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { run, type Running } from '../../lib/program.ts'
import { openDatabase } from '../../../service/src/db/database.ts'
import { freePort } from '../../../service/test/support/free-port.ts'

export type OwnPostgres = {
  /** Names both servers, of which the one is wanted that takes writes. */
  readonly url: string
  /** The server that takes writes, alone. */
  readonly primaryUrl: () => string
  readonly start: () => Promise<void>
  /** As an immediate shutdown: no checkpoint, clients are cut off, the next start recovers from the log. */
  readonly stopNow: () => Promise<void>
  /** SIGKILL of the postmaster alone: its children notice by themselves. */
  readonly kill: () => Promise<void>
  /** Copies the primary into a standby; from then on a commit is confirmed when the standby has it too. */
  readonly addStandby: () => Promise<void>
  /** The standby follows no longer, and commits do not wait for it. */
  readonly detachStandby: () => Promise<void>
  /** The standby takes writes; the former primary, which must be dead, is not started again. */
  readonly promote: () => Promise<void>
  readonly dropStandby: () => Promise<void>
  readonly close: () => Promise<void>
}

type Server = {
  readonly data: string
  readonly port: number
  readonly start: () => Promise<void>
  readonly end: (signal: 'SIGQUIT' | 'SIGKILL') => Promise<void>
}

/**
 * Starts a server, and another when a standby is wanted. Throws an Error of one sentence where PostgreSQL is not installed. It never runs
 * as root. `bin` is the folder of its programs; `settings` are more of its settings.
 */
export async function startOwnPostgres({
  bin = binFolder(),
  settings = {},
}: {
  readonly bin?: string
  readonly settings?: Readonly<Record<string, string>>
} = {}): Promise<OwnPostgres> {
  const folder = await mkdtemp(join(tmpdir(), 'touchstone-postgres-'))
  const isRoot = process.getuid?.() === 0
  if (isRoot) execFileSync('chown', ['postgres:', folder])
  const asPostgres = isRoot ? ['setpriv', '--reuid=postgres', '--regid=postgres', '--init-groups'] : []
  const command = (name: string, args: readonly string[]) => {
    const [program = '', ...rest] = [...asPostgres, join(bin, name), ...args]
    return { command: program, args: rest, cwd: folder }
  }
  const carryOut = async (name: string, args: readonly string[]) => {
    const one = command(name, args)
    await promisify(execFile)(one.command, one.args, { cwd: folder, timeout: 120_000 })
  }

  async function serverIn(name: string): Promise<Server> {
    const data = join(folder, name)
    const port = await freePort()
    const all = { listen_addresses: '127.0.0.1', max_connections: '200', ...settings }
    const listening = ['-p', String(port), '-k', folder]
    for (const [name, value] of Object.entries(all)) listening.push('-c', `${name}=${value}`)
    let server: Running | undefined
    async function end(signal: 'SIGQUIT' | 'SIGKILL'): Promise<void> {
      server?.signal(signal)
      await server?.ended
    }
    /** Leftovers of a killed postmaster keep the next one from starting for a moment. */
    async function start(): Promise<void> {
      for (const until = performance.now() + 30_000; ; await delay(200)) {
        server = run(command('postgres', ['-D', data, ...listening]))
        const ready = server.line(/ready to accept (?:read-only )?connections/, 20_000)
        const failure = await ready.then(() => null, String)
        if (failure === null) return
        await end('SIGKILL')
        if (performance.now() > until) throw new Error(`PostgreSQL does not start: ${failure}`)
      }
    }
    return { data, port, start, end }
  }

  const servers = [await serverIn('a'), await serverIn('b')] as const
  let primary: Server = servers[0]
  const standby = (): Server => (primary === servers[0] ? servers[1] : servers[0])
  const urlOf = ({ port }: Server) => `postgres://postgres@127.0.0.1:${port}/postgres`

  await carryOut('initdb', ['-D', primary.data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync'])
  await primary.start()

  /** Changes settings of a server, and waits until `holds` is true there. */
  async function configure(server: Server, settings: Readonly<Record<string, string>>, holds = 'true'): Promise<void> {
    await using database = await openDatabase({ url: urlOf(server), poolSize: 1 })
    for (const [name, value] of Object.entries(settings)) await database.exec(`alter system set ${name} = '${value}'`)
    await database.exec('select pg_reload_conf()')
    for (const until = performance.now() + 30_000; performance.now() < until; await delay(50)) {
      const [row] = await database.query<{ holds: boolean }>(`select ${holds} as holds`)
      if (row?.holds === true) return
    }
    throw new Error(`PostgreSQL does not come to: ${holds}`)
  }

  return {
    url: `postgres://postgres@${servers.map(({ port }) => `127.0.0.1:${port}`).join(',')}/postgres?target_session_attrs=read-write`,
    primaryUrl: () => urlOf(primary),
    start: () => primary.start(),
    stopNow: () => primary.end('SIGQUIT'),
    kill: () => primary.end('SIGKILL'),
    async addStandby() {
      const { data, start } = standby()
      await rm(data, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
      const from = ['-h', '127.0.0.1', '-p', String(primary.port), '-U', 'postgres']
      await carryOut('pg_basebackup', [...from, '-D', data, '-R', '-X', 'stream', '-c', 'fast', '--no-sync'])
      // After its promotion it has no standby to wait for.
      await appendFile(join(data, 'postgresql.auto.conf'), `synchronous_standby_names = ''\n`)
      await start()
      const isInStep = `exists (select from pg_stat_replication where sync_state = 'sync')`
      await configure(primary, { synchronous_standby_names: '*' }, isInStep)
    },
    async detachStandby() {
      await configure(primary, { synchronous_standby_names: '' })
      const isCut = 'not exists (select from pg_stat_wal_receiver)'
      await configure(standby(), { primary_conninfo: 'host=127.0.0.1 port=1' }, isCut)
    },
    async promote() {
      await carryOut('pg_ctl', ['promote', '-D', standby().data, '-w', '-s'])
      primary = standby()
    },
    async dropStandby() {
      await standby().end('SIGQUIT')
      await configure(primary, { synchronous_standby_names: '' })
    },
    async close() {
      for (const { end } of servers) await end('SIGQUIT')
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
