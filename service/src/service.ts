/**
 * Starts and ends the service: its parts behind the listeners of the roles that this process has (spec §1).
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Writer } from './chain/writer.ts'
import type { Config } from './config.ts'
import { reasonOf } from './errors.ts'
import { listen, type OnUpgrade } from './http/server.ts'
import { settleTicks } from './http/settle-ticks.ts'
import type { Log } from './log.ts'
import { openParts, type Parts } from './parts.ts'
import { openLimits, type Limits } from './service-limits.ts'
import { createMetrics, type Metrics } from './service-metrics.ts'
import { programVersion } from './version.ts'
import { hosts, type HostName, type OpenHost } from './service-hosts.ts'

export type Service = AsyncDisposable & {
  /** Where each host is reached, without a slash at the end; also of those that another process serves, when it is configured. */
  readonly urls: Readonly<Record<HostName, string>>
  readonly parts: Parts
  /** Takes no new connection from now on; the open ones are served as before. */
  readonly stopAccepting: () => void
  /** Stops accepting, answers what was accepted, closes every part; at most `withinMs` for the requests under way. */
  readonly close: (withinMs?: number) => Promise<void>
}

/** Starts the service. What cannot be started throws one sentence, and whatever was open by then is closed. */
export async function startService(config: Config, log: Log): Promise<Service> {
  await settleTicks()
  await using opened = new AsyncDisposableStack()
  const parts = opened.use(await openParts(config, log))
  const limits = opened.use(await openLimits(config, log.child('limits')))
  const names = (Object.keys(hosts) as HostName[]).filter((name) => config.roles.has(name))
  // Links name the ports, which are known only when all listen: a request that comes before its host is open waits for it.
  const doors = await Promise.all(names.map(async (name) => ({ name, ...(await openDoor(name, config)) })))
  for (const { close } of doors) opened.defer(() => close(0))
  const urls = urlsOf(config, doors)
  const metrics = await openMetrics(config, parts, limits, log, opened)
  const shown = metrics === undefined ? parts : { ...parts, presentTap: counted(parts.presentTap, metrics) }
  const open: OpenHost[] = []
  for (const { name, serve, port } of doors) {
    const host = await hosts[name]({ config, parts: shown, urls, limits, metrics, log: log.child(name) })
    opened.defer(() => host.close?.())
    open.push(host)
    serve({ ...host, onRequest: metrics?.measured(name, host.onRequest) ?? host.onRequest })
    log.info(`${name} host listens`, { port })
  }
  if (config.roles.has('indexer')) parts.indexer.start()
  opened.adopt(keepRecovering(parts.writer, log), clearInterval)

  const rest = opened.move()
  let closing: Promise<void> | undefined
  async function end(withinMs?: number): Promise<void> {
    for (const host of open) host.stop?.()
    await Promise.all(doors.map(({ close }) => close(withinMs)))
    await rest.disposeAsync()
  }
  const close = (withinMs?: number) => (closing ??= end(withinMs))
  const stopAccepting = () => doors.forEach((door) => door.stopAccepting())
  return { urls, parts, stopAccepting, close, [Symbol.asyncDispose]: () => close() }
}

/** On a port of its own, where one is configured. */
async function openMetrics(
  { metricsPort, hosts: { bind } }: Config,
  { reader, source, indexer }: Parts,
  limits: Limits,
  log: Log,
  opened: AsyncDisposableStack,
): Promise<Metrics | undefined> {
  if (metricsPort === null) return undefined
  const metrics = createMetrics({ version: programVersion, log: log.child('metrics') })
  metrics.watch({ reader, chain: source, indexer, limits })
  const { port, close } = await listen({
    name: 'metrics',
    host: bind,
    port: metricsPort,
    exclusive: metricsPort === 0,
    onRequest: metrics.listener,
  })
  opened.defer(() => close(0))
  log.info('metrics listen', { port })
  return metrics
}

function counted(presentTap: Parts['presentTap'], { countTap }: Metrics): Parts['presentTap'] {
  return async (request) => {
    const presented = await presentTap(request).catch((error: unknown) => {
      countTap('failed')
      throw error
    })
    countTap(presented.kind)
    return presented
  }
}

/** So many requests wait for a host that is not open yet; what comes beyond them is told to come again. */
const mostWaiting = 1_000

async function openDoor(name: HostName, { hosts: { bind, ...places } }: Config) {
  const waiting: [IncomingMessage, ServerResponse][] = []
  let answer: RequestListener = (request, response) => {
    if (waiting.length < mostWaiting) waiting.push([request, response])
    else response.writeHead(503, { 'Retry-After': '1', 'Cache-Control': 'no-store', 'Content-Length': '0' }).end()
  }
  let upgrade: OnUpgrade = (_request, socket) => socket.destroy()
  const listener = await listen({
    name: `${name} host`,
    host: bind,
    port: places[name].port,
    onRequest: (request, response) => answer(request, response),
    ...(name === 'graphql' && { onUpgrade: (request, socket, head) => upgrade(request, socket, head) }),
  })
  return {
    ...listener,
    serve: (host: OpenHost): void => {
      answer = host.onRequest
      if (host.onUpgrade !== undefined) upgrade = host.onUpgrade
      for (const [request, response] of waiting.splice(0)) answer(request, response)
    },
  }
}

function urlsOf(
  { hosts: { bind: _bind, ...places } }: Config,
  doors: readonly { readonly name: HostName; readonly port: number }[],
): Record<HostName, string> {
  const urlOf = (name: HostName) =>
    places[name].url ?? `http://127.0.0.1:${doors.find((door) => door.name === name)?.port ?? places[name].port}`
  return { verification: urlOf('verification'), gateway: urlOf('gateway'), graphql: urlOf('graphql') }
}

/** Writes that were not mined when they were answered, or that a crash left behind, are settled or sent again. */
function keepRecovering(writer: Writer, log: Log): NodeJS.Timeout {
  const recover = () =>
    void writer.recover().catch((error: unknown) => log.warn('writes not recovered', { reason: reasonOf(error) }))
  recover()
  return setInterval(recover, 30_000).unref()
}
