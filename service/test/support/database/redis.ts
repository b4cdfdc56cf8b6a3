/** A Redis of a test, on a free port, without anything on disk. It can be killed, stopped and started again. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { freePort } from '../free-port.ts'
import { killProcess } from '../processes/kill.ts'

/** A reason where there is no `redis-server`, unless `REQUIRE_SERVICES=1` asks for it. */
export const skipRedis: string | false =
  process.env['REQUIRE_SERVICES'] === '1' || spawnSync('redis-server', ['--version']).status === 0
    ? false
    : 'no redis-server in PATH'

export type TestRedis = Awaited<ReturnType<typeof startRedis>>

export async function startRedis() {
  let port = 0
  let child: ChildProcess | undefined

  /** On the same port every time. The first time another process may take the port that was free, so it is tried again. */
  async function start(tries = 5): Promise<void> {
    if (port === 0 || child === undefined) port = await freePort()
    const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', '/tmp']
    const started = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'ignore'] })
    const isReady = await new Promise<boolean>((resolve) => {
      let said = ''
      started.stdout.on('data', (chunk: Buffer) => {
        said = (said + chunk.toString()).slice(-2_000)
        if (said.includes('Ready to accept connections')) resolve(true)
      })
      started.once('exit', () => resolve(false))
      started.once('error', () => resolve(false))
    })
    if (isReady) child = started
    else if (tries > 1) await start(tries - 1)
    else throw new Error('redis-server does not start')
  }

  const kill = () => killProcess(child)

  await start()
  return {
    url: `redis://127.0.0.1:${port}`,
    /** Again, with nothing of what it knew. */
    start: () => start(),
    kill,
    /** It keeps its connections and answers nothing until `resume`. */
    suspend: () => void child?.kill('SIGSTOP'),
    resume: () => void child?.kill('SIGCONT'),
  }
}
