/** A Redis that keeps nothing on disk. It can be killed and started again on the same port. */
import { tmpdir } from 'node:os'
import { run, type Running } from '../../lib/program.ts'
import { freePort } from '../../../service/test/support/free-port.ts'

export type OwnRedis = {
  readonly url: string
  readonly start: () => Promise<void>
  readonly kill: () => Promise<void>
}

/** An Error that says so where redis-server is not installed. */
export async function startOwnRedis(): Promise<OwnRedis> {
  const port = await freePort()
  const flags = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', tmpdir()]
  let server: Running | undefined
  async function start(): Promise<void> {
    server = run({ command: 'redis-server', args: flags })
    await server.line(/Ready to accept connections/, 20_000)
  }
  await start()
  return {
    url: `redis://127.0.0.1:${port}`,
    start,
    async kill() {
      server?.signal('SIGKILL')
      await server?.ended
    },
  }
}
