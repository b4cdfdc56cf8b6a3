/** PostgreSQL clusters of a test, in a folder of its own. There is one to write to, and a replica that follows it by streaming. */
import { execFile, execFileSync } from 'node:child_process'
import { chownSync, globSync, mkdtempSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort } from '../free-port.ts'
import { until } from '../wait.ts'

const limits = { timeout: 240_000 }
const bin = globSync('/usr/lib/postgresql/*/bin')
  .sort()
  .findLast((folder) => globSync(`${folder}/initdb`).length > 0)

/** Returns the account of PostgreSQL for root, as whom neither the server nor PgBouncer runs; nothing for others. */
export function postgresUser(): { uid: number; gid: number } | Record<string, never> {
  if (process.getuid?.() !== 0) return {}
  const idOf = (what: string) => Number(execFileSync('id', [what, 'postgres'], { encoding: 'utf8' }))
  return { uid: idOf('-u'), gid: idOf('-g') }
}

/** Why no cluster can be made here; false when one can, or must. */
export const clusterSkip =
  bin === undefined && process.env['REQUIRE_SERVICES'] !== '1'
    ? 'no PostgreSQL server binaries in /usr/lib/postgresql'
    : false

export type Clusters = Awaited<ReturnType<typeof startClusters>>

/**
 * `synchronous`: a commit is confirmed when the replica has it on its disk. `delayMs` is how long its stream takes to the replica. `url`
 * names both servers, of which the one is wanted that takes writes.
 */
export async function startClusters({ synchronous = false, delayMs = 0 } = {}) {
  const { folder, run, control, initialise } = openFolder()
  let stream: Awaited<ReturnType<typeof startSlowStream>> | null = null
  async function clusterAt(name: string) {
    const [data, port] = [join(folder, name), await freePort()]
    const options = optionsOf(port, { fsync: 'off', shared_buffers: '16MB', max_connections: '40' })
    return {
      port,
      url: `postgres://postgres@127.0.0.1:${port}/postgres`,
      start: () => control(data, '-l', join(folder, `${name}.log`), '-o', options, 'start'),
      stop: () => control(data, '-m', 'immediate', 'stop'),
      /** Makes a replica the server that takes writes. */
      promote: () => control(data, 'promote'),
      /** SIGKILL of all its processes, as when its machine loses power; they are gone when it resolves. */
      kill: async () => {
        if (name === 'primary') stream?.close() // what is on its way is lost with the machine
        const postmaster = Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0])
        process.kill(postmaster, 'SIGSTOP') // it starts no child any more
        const children = readFileSync(`/proc/${postmaster}/task/${postmaster}/children`, 'latin1').trim().split(' ')
        const all = [postmaster, ...children.map(Number)]
        for (const pid of all) process.kill(pid, 'SIGKILL')
        await until(() => !all.some(isAtWork))
        // PostgreSQL does not start beside a former postmaster that init has not collected yet.
        await rm(join(data, 'postmaster.pid'))
        await until(async () => !(await isListening(port)))
      },
    }
  }
  const [primary, replica] = [await clusterAt('primary'), await clusterAt('replica')]
  await initialise(join(folder, 'primary'))
  await primary.start()
  stream = delayMs > 0 ? await startSlowStream(primary.port, delayMs) : null
  const end = async () => {
    stream?.close()
    for (const { stop } of [replica, primary]) await stop().catch(() => {}) // it may be stopped already
    await rm(folder, { recursive: true, force: true })
  }
  try {
    const from = ['-h', '127.0.0.1', '-p', String(stream?.port ?? primary.port), '-U', 'postgres']
    await run('pg_basebackup', ...from, '-D', join(folder, 'replica'), '-R', '-X', 'stream', '-c', 'fast', '-N')
    await replica.start()
    if (synchronous) {
      const names = `alter system set synchronous_standby_names = '*'`
      await run('psql', '-qX', ...from, '-d', 'postgres', '-c', names, '-c', 'select pg_reload_conf()')
    }
  } catch (error) {
    await end()
    throw error
  }
  const hosts = [primary, replica].map(({ port }) => `127.0.0.1:${port}`).join(',')
  return { primary, replica, url: `postgres://postgres@${hosts}/postgres?target_session_attrs=read-write`, end }
}

/** Starts one server with settings of postgresql.conf, such as `shared_buffers`. */
export async function startPostgres(settings: Readonly<Record<string, string>>) {
  const { folder, control, initialise } = openFolder()
  const [data, port] = [join(folder, 'data'), await freePort()]
  const end = async () => {
    await control(data, '-m', 'immediate', 'stop').catch(() => {}) // it may not have started
    await rm(folder, { recursive: true, force: true })
  }
  try {
    await initialise(data)
    await control(data, '-l', join(folder, 'log'), '-o', optionsOf(port, settings), 'start')
  } catch (error) {
    await end()
    throw error
  }
  return { url: `postgres://postgres@127.0.0.1:${port}/postgres`, end }
}

/** Makes a folder for data of servers, with the programs of PostgreSQL, which run as its account. */
function openFolder() {
  if (bin === undefined) throw new Error('There are no PostgreSQL server binaries in /usr/lib/postgresql.')
  const user = postgresUser()
  const folder = mkdtempSync(join(tmpdir(), 'touchstone-cluster-'))
  if ('uid' in user) chownSync(folder, user.uid, user.gid)
  const run = (program: string, ...args: string[]) =>
    promisify(execFile)(join(bin, program), args, { ...limits, ...user, cwd: folder })
  return {
    folder,
    run,
    control: async (data: string, ...args: string[]) =>
      void (await run('pg_ctl', '-D', data, '-w', '-t', '100', '-s', ...args)),
    initialise: async (data: string) =>
      void (await run('initdb', '-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '-N')),
  }
}

function optionsOf(port: number, settings: Readonly<Record<string, string>>): string {
  const all = { listen_addresses: '127.0.0.1', unix_socket_directories: '', ...settings }
  return [`-p ${port}`, ...Object.entries(all).map(([name, value]) => `-c ${name}=${value}`)].join(' ')
}

/** Passes a stream on, each part of the answers so much later. */
async function startSlowStream(port: number, delayMs: number) {
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1')
    for (const one of [near, far]) {
      sockets.add(one)
      one.on('error', () => {})
      one.on('close', () => [near, far].forEach((other) => other.destroy()))
    }
    near.pipe(far)
    far.on('data', (part) => setTimeout(() => near.write(part), delayMs))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const close = () => {
    server.close()
    for (const socket of sockets) socket.destroy()
  }
  return { port: (server.address() as AddressInfo).port, close }
}

/** Returns whether a process runs; one that ended and was not collected has an empty command line. */
function isAtWork(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1') !== ''
  } catch {
    return false
  }
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}
