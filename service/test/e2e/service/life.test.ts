/** The life of a service over real HTTP (spec §4.1, §7, §8). It covers the start, the limits, and SIGTERM under load. */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { closeSync, constants, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { readConfig } from '../../../src/app/config/config.ts'
import { hosts } from '../../../src/app/hosts.ts'
import { openLimits } from '../../../src/app/limits.ts'
import { startService } from '../../../src/app/service.ts'
import { listen } from '../../../src/http/listener.ts'
import { createLog } from '../../../src/lib/log.ts'
import { copyEmptyPglite } from '../../support/database/pglite.ts'
import { testFolder } from '../../support/folder.ts'
import { freePort } from '../../support/free-port.ts'
import { cli, inherited, touchstone, untilSaid } from '../../support/processes/cli.ts'
import { startLoad } from '../../support/processes/workers.ts'
import { until } from '../../support/wait.ts'
import { startWorld, type World } from '../../support/world.ts'

const quiet = createLog(() => {}, 'silent')
const opened = new AsyncDisposableStack()
let world: World
before(async () => {
  world = await startWorld()
  opened.defer(() => world.end())
  for (let index = 0; index < 20; index += 1) await world.mint()
})
after(() => opened.disposeAsync())

/** Listeners are open before the hosts behind them are. */
it('answers the first request that a listener accepts, however early', async () => {
  const dataDir = testFolder()
  await copyEmptyPglite(join(dataDir, 'store'))
  const port = await freePort()
  const settings = { ...world.settings, DATA_DIR: dataDir, GRAPHQL_PORT: String(port) }
  let open = false
  const starting = startService(readConfig(settings), quiet).finally(() => (open = true))
  let answered: number | undefined
  let early = false
  for (let tries = 0; tries < 20_000 && answered === undefined; tries += 1) {
    early = !open
    answered = await fetch(`http://127.0.0.1:${port}/graphql`, { signal: AbortSignal.timeout(240_000) }).then(
      ({ status }) => status,
      (error: Error) => {
        if (error.name === 'TimeoutError') throw error
        return undefined
      },
    )
    if (answered === undefined) await delay(1)
  }
  assert.equal(answered, 401)
  assert.ok(early, 'the service was open before the first request')
  await (await starting).close(200)
})

describe('the limit of keyless reads', () => {
  /** Serves the components of the world once more with other limits. */
  async function readerOf(env: Record<string, string>, log = quiet) {
    const config = readConfig({ ...world.settings, ...env })
    const limits = opened.use(await openLimits(config, log))
    const { components, urls } = world
    const { onRequest } = await hosts.verification({ config, components, urls, limits, metrics: undefined, log })
    const { port, close } = await listen({ name: 'verification host', host: '127.0.0.1', port: 0, onRequest })
    opened.defer(() => close(0))
    return (path: string, headers: Record<string, string> = {}) => fetch(`http://127.0.0.1:${port}${path}`, { headers })
  }

  it('holds exactly under 200 parallel requests, says when to come back, and counts errors too', async () => {
    const read = await readerOf({ RATE_LIMIT_ASSET: '60' })
    await read('/api/asset/nonsense')
    const replies = await Promise.all(Array.from({ length: 200 }, () => read('/api/asset/1')))
    const counts = Object.groupBy(replies, ({ status }) => String(status))
    assert.deepEqual([counts['200']?.length, counts['429']?.length], [59, 141])
    const remaining = (counts['200'] ?? []).map(({ headers }) => Number(headers.get('x-ratelimit-remaining')))
    assert.deepEqual(
      remaining.toSorted((a, b) => a - b),
      Array.from({ length: 59 }, (_, index) => index),
    )
    for (const { headers } of replies) {
      assert.equal(headers.get('x-ratelimit-limit'), '60')
      assert.match(headers.get('x-ratelimit-reset') ?? '', /^([1-9]|[1-5]\d|60)$/)
    }
    const [refused] = counts['429'] ?? []
    assert.equal(refused?.headers.get('retry-after'), refused?.headers.get('x-ratelimit-reset'))
    assert.equal(refused?.headers.get('cache-control'), 'no-store')
    assert.equal(refused?.headers.get('access-control-allow-origin'), '*')
    const body = (await refused?.json()) as { version: string; error: { code: string } }
    assert.deepEqual([body.version, body.error.code], ['1', 'RATE_LIMITED'])
  })

  it('is not escaped by a forged X-Forwarded-For, and counts clients apart behind a trusted proxy', async () => {
    const statuses = async (read: Awaited<ReturnType<typeof readerOf>>, ...clients: string[]) => {
      const found: number[] = []
      for (const client of clients) found.push((await read('/api/asset/999', { 'X-Forwarded-For': client })).status)
      return found
    }
    const direct = await readerOf({ RATE_LIMIT_ASSET: '2' })
    assert.deepEqual(await statuses(direct, '203.0.113.1', '203.0.113.2', '203.0.113.3'), [404, 404, 429])
    const proxied = await readerOf({ RATE_LIMIT_ASSET: '1', TRUSTED_PROXIES: '127.0.0.1' })
    assert.deepEqual(await statuses(proxied, '203.0.113.1', '203.0.113.2', '203.0.113.1'), [404, 404, 429])
    assert.deepEqual(await statuses(proxied, '2001:db8::1', '2001:db8::ffff:2', '2001:db8:0:1::1'), [404, 429, 404])
  })

  it('is one for all clients of a trusted proxy that names none, which the log says once', async () => {
    const lines: string[] = []
    const env = { RATE_LIMIT_ASSET: '1', TRUSTED_PROXIES: '127.0.0.1' }
    const read = await readerOf(
      env,
      createLog((line) => lines.push(line)),
    )
    const statuses = []
    for (const client of ['unknown', '_hidden'])
      statuses.push((await read('/api/asset/999', { 'X-Forwarded-For': client })).status)
    assert.deepEqual(statuses, [404, 429])
    assert.equal(lines.filter((line) => line.includes('names no address in X-Forwarded-For')).length, 1)
  })
})

it('ends the subscription of an A2A client when it stops, and does not wait for it', async () => {
  const config = readConfig(world.settings)
  const limits = opened.use(await openLimits(config, quiet))
  const { components, urls } = world
  const host = await hosts.verification({ config, components, urls, limits, metrics: undefined, log: quiet })
  const { port, close } = await listen({ name: 'a host', host: '127.0.0.1', port: 0, onRequest: host.onRequest })
  const headers = { 'A2A-Version': '1.0', 'Content-Type': 'application/json' }
  const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'verify' }] }
  const url = `http://127.0.0.1:${port}/a2a/v1`
  const sent = await fetch(`${url}/message:send`, { method: 'POST', headers, body: JSON.stringify({ message }) })
  const { task } = (await sent.json()) as { task: { id: string } }
  const stream = await fetch(`${url}/tasks/${task.id}:subscribe`, { headers })
  host.stop?.()
  const closed = close(20_000)
  assert.match(await stream.text(), /TASK_STATE_INPUT_REQUIRED/)
  await closed
})

it('fails no accepted request, and ends while clients keep asking', async () => {
  const dataDir = testFolder()
  await copyEmptyPglite(join(dataDir, 'store'))
  const service = touchstone(['serve'], { ...world.settings, DATA_DIR: dataDir })
  const listens = 'verification host listens'
  await untilSaid(service, listens)
  const port = Number(new RegExp(`"${listens}".*?"port":(\\d+)`).exec(service.said())?.[1])
  const load = startLoad({ port, pathOf: (n) => `/api/asset/${(n % 20) + 1}`, clients: 32, pauseMs: 0 })
  // A 502 and a 408 are answers as well: a busy machine starves the chain, or the service. A stop at such a moment would cut
  // what waits for it.
  const failures = () => load.failures.filter((outcome) => outcome !== '502' && outcome !== '408')
  await until(() => load.answered() >= 500 || failures().length > 0)
  await until(() => load.isBrisk() || failures().length > 0)
  service.child.kill('SIGTERM')
  assert.equal((await service.ended).exit, 0)
  await load.ended()
  assert.deepEqual(failures(), [])
})

for (const [sink, open] of [
  ['is not read', () => openFullPipe(join(testFolder(), 'log'))],
  ['is on a full disk', () => openSync('/dev/full', 'w')],
] as const)
  it(`serves and ends while its log ${sink}`, async () => {
    const dataDir = testFolder()
    await copyEmptyPglite(join(dataDir, 'store'))
    const port = await freePort()
    const full = open()
    const child = spawn(process.execPath, [cli, 'serve'], {
      env: { ...inherited, ...world.settings, DATA_DIR: dataDir, GRAPHQL_PORT: String(port), ONLY: 'graphql' },
      stdio: ['ignore', full, 'inherit'],
    })
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
    await until(async () => {
      assert.equal(child.exitCode, null, 'it ended by itself')
      return fetch(`http://127.0.0.1:${port}/health`).then(
        ({ ok }) => ok,
        () => false,
      )
    })
    child.kill('SIGTERM')
    assert.match(String(await ended), /^(?:0|143)$/) // 143: the host answers shortly before the start is over
    closeSync(full)
  })

/** Makes a pipe that takes no byte more and has no reader but this process. */
function openFullPipe(path: string): number {
  execFileSync('mkfifo', [path])
  const pipe = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  try {
    for (;;) writeSync(pipe, ' '.repeat(4_096))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
  }
  return pipe
}
