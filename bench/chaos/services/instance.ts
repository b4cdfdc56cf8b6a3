/** One `touchstone serve` with every role, kept alive as systemd's `Restart=always` would: a second after it ended it is started again. */
import { fileURLToPath } from 'node:url'
import { setTimeout as delay } from 'node:timers/promises'
import { run, type Running } from '../../lib/program.ts'

export type Urls = {
  readonly verification: string
  readonly gateway: string
  readonly graphql: string
  readonly metrics: string
}
export type Instance = {
  readonly name: string
  /** URLs of its last start; a restart changes the ports. */
  readonly urls: () => Urls
  readonly pid: () => number
  /** Resolves when every host listens. */
  readonly start: () => Promise<void>
  /** SIGKILL; `restart: false` keeps it down until `start`. */
  readonly kill: (options?: { readonly restart: boolean }) => Promise<void>
  /** SIGTERM, and down until `start`. */
  readonly stop: () => Promise<void>
  /** For a process: SIGUSR2 makes the clock hook read again. */
  readonly signal: (name: NodeJS.Signals) => void
  /** Number of times it ended by itself. */
  readonly crashes: () => number
  /** Resolves when the process of the last start has printed a match. Rejects when it ends without one, or after a minute. */
  readonly prints: (pattern: RegExp) => Promise<void>
  /** Warnings and errors that it logged last. */
  readonly troubles: (most: number) => string[]
}

const cli = fileURLToPath(new URL('../../../service/src/cli.ts', import.meta.url))
const restartMs = 1_000
const startMs = 60_000
const hosts = ['verification host', 'gateway host', 'graphql host', 'metrics'] as const

/** Starts an instance. Its environment is asked for at each start; `args` come behind `serve`. */
export function createInstance({
  name,
  env,
  args = () => [],
  nodeFlags = () => [],
  core,
}: {
  readonly name: string
  readonly env: () => Record<string, string>
  readonly args?: () => readonly string[]
  readonly nodeFlags?: () => readonly string[]
  /** Left out: any core. */
  readonly core?: number | undefined
}): Instance {
  let process: Running | undefined
  let wanted = false
  let stopping = false
  let crashes = 0
  let ready = Promise.resolve()
  let urls: Urls = { verification: '', gateway: '', graphql: '', metrics: '' }
  const said: string[] = []

  function launch(): void {
    stopping = false
    const flags = ['--disable-warning=ExperimentalWarning', ...nodeFlags()]
    const command = globalThis.process.execPath
    const started = run({
      command,
      args: [...flags, cli, 'serve', ...args()],
      env: env(),
      ...(core !== undefined && { core }),
    })
    process = started
    ready = listening(started)
    ready.catch(() => {})
    void started.ended.then(async () => {
      said.push(...started.said().split('\n').slice(-200))
      said.splice(0, said.length - 1_000)
      if (!stopping) crashes += 1
      await delay(restartMs)
      if (wanted && process === started) launch()
    })
  }

  async function listening({ line }: Running): Promise<void> {
    const [verification, gateway, graphql, metrics] = (await Promise.all(
      hosts.map(async (host) => {
        const [, port] = await line(new RegExp(`"event":"${host} listens?"[^}]*"port":(\\d+)`), startMs)
        return `http://127.0.0.1:${port}`
      }),
    )) as [string, string, string, string]
    urls = { verification, gateway, graphql, metrics }
    const workers = args()[args().indexOf('--workers') + 1]
    if (args().includes('--workers'))
      await line(new RegExp(`"event":"worker serves","place":${Number(workers) - 1}`), startMs)
  }

  async function end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    stopping = true
    process?.signal(signal)
    await process?.ended
  }

  return {
    name,
    urls: () => urls,
    pid: () => process?.pid ?? 0,
    async start() {
      wanted = true
      launch()
      await ready
    },
    async kill({ restart } = { restart: true }) {
      wanted = restart
      await end('SIGKILL')
    },
    async stop() {
      wanted = false
      await end('SIGTERM')
    },
    signal: (signal) => process?.signal(signal),
    crashes: () => crashes,
    prints: async (pattern) => void (await process?.line(pattern, startMs)),
    troubles: (most) =>
      [...said, ...(process?.said() ?? '').split('\n')]
        .filter((line) => line !== '' && !line.includes('"level":"info"'))
        .slice(-most),
  }
}
