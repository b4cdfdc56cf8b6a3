/**
 * A Citus cluster on loopback, of one coordinator and some workers. It needs a build of Citus beside this checkout. `TEST_CITUS` is the
 * folder of its program `cluster`; it needs Debian's PostgreSQL 15.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { freePorts } from '../free-port.ts'

const build = resolve(process.env['TEST_CITUS'] ?? '../shared/citus')
const debian = { programs: '/usr/lib/postgresql/15', share: '/usr/share/postgresql/15' }

/** A sentence that says what a cluster lacks here; null when nothing. */
export function citusLacks(): string | null {
  const missing = [join(build, 'cluster'), join(debian.programs, 'bin/initdb')].find((path) => !existsSync(path))
  return missing === undefined ? null : `there is no ${missing}; TEST_CITUS names the folder of a build of Citus`
}

export type CitusCluster = Awaited<ReturnType<typeof startCitusCluster>>

/**
 * Starts a cluster, which ends with this process at the latest. `url` is that of the database `postgres` of the coordinator, `folder` is for
 * files of the run and goes with the cluster, and `env` are the settings by which tests open their databases on it.
 */
export async function startCitusCluster({ workers = 2 } = {}) {
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'touchstone-citus-'))
  chmodSync(folder, 0o755) // PostgreSQL runs as another user
  const port = await freePorts(1 + workers)
  const cluster = (command: string) =>
    execFileSync(join(build, 'cluster'), [command, join(folder, 'nodes'), String(port), String(workers)], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, LC_ALL: 'C.UTF-8' }, // the locale gives the databases their encoding
    })
  const stop = () => {
    process.off('exit', stop)
    cluster('stop')
    rmSync(folder, { recursive: true, force: true })
  }
  process.once('exit', stop)
  cluster('start')
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  const workerPorts = Array.from({ length: workers }, (_, index) => port + 1 + index)
  return { url, workerPorts, folder, env: { TEST_CITUS_URL: url, TEST_CITUS_WORKERS: workerPorts.join() }, stop }
}

/** Copies PostgreSQL with Citus into a folder, and returns the folder of its programs. The machine's own stays as it is. */
export function installCitus(folder: string): string {
  const programs = join(folder, 'usr/lib/postgresql/15')
  const share = join(folder, 'usr/share/postgresql/15')
  mkdirSync(programs, { recursive: true })
  for (const part of ['bin', 'lib']) cpSync(join(debian.programs, part), join(programs, part), { recursive: true })
  cpSync(debian.share, share, { recursive: true, dereference: true })
  cpSync(join(build, 'lib'), join(programs, 'lib'), { recursive: true })
  cpSync(join(build, 'extension'), join(share, 'extension'), { recursive: true })
  return join(programs, 'bin')
}
