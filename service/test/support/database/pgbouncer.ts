/** Debian's PgBouncer in transaction mode before a PostgreSQL, on a free port, with a configuration of its own. */
import { spawn, type ChildProcess } from 'node:child_process'
import { chownSync, existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { testFolder } from '../folder.ts'
import { freePort } from '../free-port.ts'
import { killProcess } from '../processes/kill.ts'
import { postgresUser } from './postgres-cluster.ts'

const program = '/usr/sbin/pgbouncer'

/** A reason where PgBouncer is not installed, unless `REQUIRE_SERVICES=1` asks for it. */
export const pgbouncerSkip: string | false =
  process.env['REQUIRE_SERVICES'] === '1' || existsSync(program) ? false : `no ${program}`

export type PgBouncer = Awaited<ReturnType<typeof startPgBouncer>>

/** `settings` are lines of its section `[pgbouncer]`, `database` are parameters behind host and port. */
export function startPgBouncer(
  target: string,
  options: { poolSize?: number; settings?: readonly string[]; database?: string } = {},
) {
  const { hostname, port } = new URL(target)
  const { poolSize = 4, settings = [], database = '' } = options
  return startConfigured(
    target,
    `[databases]
* = host=${hostname} port=${port || '5432'} ${database}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = 6432
unix_socket_dir =
auth_type = trust
auth_file = /etc/pgbouncer/users.txt
pool_mode = transaction
default_pool_size = ${poolSize}
max_client_conn = 500
server_login_retry = 1
${settings.join('\n')}
`,
  )
}

/** `configuration` names the port 6432 and /etc/pgbouncer/users.txt, which become its own. */
export async function startConfigured(target: string, configuration: string, password = '') {
  const { pathname, username } = new URL(target)
  const folder = testFolder()
  const port = await freePort()
  const user = postgresUser()
  const [file, users] = [join(folder, 'pgbouncer.ini'), join(folder, 'users.txt')]
  writeFileSync(users, `"${username}" "${password}"\n`)
  writeFileSync(file, configuration.replace('6432', String(port)).replace('/etc/pgbouncer/users.txt', users))
  if ('uid' in user) for (const path of [folder, file, users]) chownSync(path, user.uid, user.gid)
  let child: ChildProcess | undefined
  let isUp = false

  async function start(): Promise<void> {
    const started = spawn(program, [file], { ...user, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
    child = started
    let said = ''
    await new Promise<void>((resolve, reject) => {
      started.stderr?.on('data', (chunk: Buffer) => {
        said = (said + chunk.toString()).slice(-4_000)
        if (!said.includes('process up')) return
        isUp = true
        resolve()
      })
      started.once('error', reject)
      started.once('exit', () => reject(new Error(`PgBouncer does not start: ${said}`)))
    })
  }

  function kill(): Promise<void> {
    isUp = false
    return killProcess(child)
  }
  /** A signal before it is up would end it. */
  const signal = (name: NodeJS.Signals) => void (isUp && child?.kill(name))

  await start()
  return {
    url: `postgres://${username}${password && `:${password}`}@127.0.0.1:${port}${pathname}`,
    /** Again on the same port. */
    start,
    kill,
    /** Gives clients no connection to the server, as the command PAUSE. Does nothing while it is away. */
    pause: () => signal('SIGUSR1'),
    resume: () => signal('SIGUSR2'),
    close: kill,
  }
}
