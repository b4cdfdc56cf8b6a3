/** Starts and stops the service: its components behind the listeners of the roles of this process (spec §1). */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { auditHead, formatHead } from '../db/audit.ts'
import { createBlockAnnouncements } from '../chain/indexer/announcements.ts'
import { brokenSegment } from '../hosts/verification/routes/asset.ts'
import { listen, type OnUpgrade, watchFileDescriptors } from '../http/listener.ts'
import { singleFlight } from '../lib/async/single-flight.ts'
import { reasonOf } from '../lib/errors.ts'
import { type Log, withErrorCount } from '../lib/log.ts'
import { programVersion } from '../lib/version.ts'
import { didOf } from '../passport/did-document.ts'
import { auditHeadFile, createHeadSigner } from './audit-heads.ts'
import { type ComponentOverrides, openComponents, type ServiceComponents } from './components.ts'
import { type Config, localUrl } from './config/config.ts'
import type { HostName } from '../discovery/instance.ts'
import { hosts, type OpenHost } from './hosts.ts'
import { sharedRoles } from './keys.ts'
import { type Limits, openLimits } from './limits.ts'
import { createMetrics, type Metrics } from './metrics.ts'
import type { Tracing } from './tracing/tracing.ts'

export type Service = AsyncDisposable & {
  /** URLs of the hosts, without a slash at the end. Also of hosts that another process serves, where they are configured. */
  readonly urls: Readonly<Record<HostName, string>>
  readonly components: ServiceComponents
  /** Accepts no new connection; open ones are served. */
  readonly stopAccepting: () => void
  /** Stops accepting, answers what was accepted, closes every component. Requests in flight get at most `withinMs`. */
  readonly close: (withinMs?: number) => Promise<void>
}

/** Starts the service. Throws one sentence when it cannot start, after closing what was open. */
export async function startService(config: Config, output: Log, overrides: ComponentOverrides = {}): Promise<Service> {
  let errors = 0
  const log = withErrorCount(output, () => (errors += 1))
  await warmUpNextTick()
  await using opened = new AsyncDisposableStack()
  const tracing = await openTraces(config, log, opened)
  const parts = opened.use(await openComponents(config, log, overrides))
  const components = { ...parts, issuer: await parts.issuerKeys() }
  const limits = opened.use(await openLimits(config, log.child('limits')))
  const names = (Object.keys(hosts) as HostName[]).filter((name) => config.roles.has(name))
  // Links name the ports, which are known only when all listen. A request that comes before its host is open waits.
  const opening = names.map(async (name) => {
    const listener = await openListener(name, config, log.child(name))
    opened.defer(() => listener.close(0))
    return { name, ...listener }
  })
  await Promise.allSettled(opening) // where one fails, the others are closed too
  const listeners = await Promise.all(opening)
  const logLack = (code: string) =>
    log.error('connections are refused: no file descriptor is left', { code, remedy: moreDescriptors })
  opened.adopt(watchFileDescriptors(logLack), clearInterval)
  const urls = publicUrls(config, listeners)
  const metrics = await openMetrics({ config, components, limits, tracing, errors: () => errors, log, opened })
  const counted =
    metrics === undefined ? components : { ...components, resolveTap: countTaps(components.resolveTap, metrics) }
  const open: OpenHost[] = []
  for (const { name, serve, port } of listeners) {
    const host = await hosts[name]({ config, components: counted, urls, limits, metrics, log: log.child(name) })
    opened.defer(() => host.close?.())
    open.push(host)
    const onRequest = tracing?.traced(name, host.onRequest) ?? host.onRequest
    serve({ ...host, onRequest: metrics?.measured(name, onRequest) ?? onRequest })
    log.info(`${name} host listens`, { port })
  }
  if (config.roles.has('indexer')) {
    components.indexer.start()
    const announced = { urls: config.chain.wsUrls, onBlock: components.indexer.wake, log: log.child('indexer') }
    opened.adopt(createBlockAnnouncements(announced), (it) => it.close())
    opened.adopt(logAuditHead(components, log), clearInterval)
  }
  // The processes that sign passports have the keys.
  if (config.passport.signing && config.roles.has('verification'))
    opened.adopt(keepSigningHeads(config, components, urls, log), clearInterval)
  opened.adopt(keepRecovering(components, log), clearInterval)
  opened.defer(keepTakingBackTaps(components, log))
  warnOfSharedKeys(config, components, log)

  const resources = opened.move()
  let closing: Promise<void> | undefined
  async function end(withinMs?: number): Promise<void> {
    for (const host of open) host.stop?.()
    await Promise.all(listeners.map((listener) => listener.close(withinMs)))
    await resources.disposeAsync()
  }
  const close = (withinMs?: number) => (closing ??= end(withinMs))
  const stopAccepting = () => listeners.forEach((listener) => listener.stopAccepting())
  return { urls, components, stopAccepting, close, [Symbol.asyncDispose]: () => close() }
}

const moreDescriptors = 'raise the limit of open files, such as LimitNOFILE of the unit or ulimit -n'

/** Most requests that wait for a host that is not open yet. Further ones get 503. */
const mostWaiting = 1_000

async function openListener(name: HostName, { hosts: { bind, ...places } }: Config, log: Log) {
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
    onFault: noteFault(log),
    ...(name === 'verification' && { onBroken: brokenSegment }),
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

function noteFault(log: Log) {
  return (error: unknown, requestId: string) => log.error('request failed', { reason: reasonOf(error), requestId })
}

function publicUrls(
  { hosts: { bind, ...places } }: Config,
  listeners: readonly { readonly name: HostName; readonly port: number }[],
): Record<HostName, string> {
  const ports = new Map(listeners.map(({ name, port }) => [name, port]))
  const urlOf = (name: HostName) => places[name].url ?? localUrl(bind, ports.get(name) ?? places[name].port)
  return { verification: urlOf('verification'), gateway: urlOf('gateway'), graphql: urlOf('graphql') }
}

/** Loads OpenTelemetry only where a collector is configured: it takes a tenth of a second and 27 MB. */
async function openTraces(
  { traces: settings, limits: { trustedProxies } }: Config,
  log: Log,
  opened: AsyncDisposableStack,
): Promise<Tracing | undefined> {
  const { endpoint } = settings
  if (endpoint === null) return undefined
  const { openTracing } = await import('./tracing/tracing.ts')
  const options = { settings: { ...settings, endpoint }, trustedProxies, log: log.child('traces') }
  return opened.adopt(openTracing(options), (it) => it.close())
}

type MetricsParts = {
  readonly config: Config
  readonly components: ServiceComponents
  readonly limits: Limits
  readonly tracing: Tracing | undefined
  readonly errors: () => number
  readonly log: Log
  readonly opened: AsyncDisposableStack
}

/** Opens /metrics on a port of its own, where one is configured. */
async function openMetrics(parts: MetricsParts): Promise<Metrics | undefined> {
  const { config, components, limits, tracing, errors, log, opened } = parts
  const { metricsPort, hosts: places } = config
  if (metricsPort === null) return undefined
  const { reader, source, indexSource, chainClients, indexer } = components
  const metrics = createMetrics({ version: programVersion, log: log.child('metrics'), traces: tracing })
  metrics.watch({ reader, chain: [source, indexSource], chainClients, indexer, limits, errors })
  const { port, close } = await listen({
    name: 'metrics',
    host: places.bind,
    port: metricsPort,
    exclusive: metricsPort === 0,
    onRequest: metrics.listener,
    onFault: noteFault(log.child('metrics')),
  })
  opened.defer(() => close(0))
  log.info('metrics listen', { port })
  return metrics
}

function countTaps(
  resolveTap: ServiceComponents['resolveTap'],
  { countTap }: Metrics,
): ServiceComponents['resolveTap'] {
  return async (request) => {
    if (request.consume === false) return resolveTap(request)
    const presented = await resolveTap(request).catch((error: unknown) => {
      countTap('failed')
      throw error
    })
    countTap(presented.kind)
    return presented
  }
}

const dayMs = 86_400_000

/** Writes the head of the audit trail to the log, at the start and once a day. Logs are kept apart from the database. */
function logAuditHead({ database }: ServiceComponents, log: Log): NodeJS.Timeout {
  const write = () =>
    void auditHead(database).then(
      (head) => log.info('audit head', { head: formatHead(head) }),
      (error: unknown) => log.warn('audit head not read', { reason: reasonOf(error) }),
    )
  write()
  return setInterval(write, dayMs).unref()
}

const hourMs = 3_600_000

/** Signs the head of the audit trail once a day, whenever this process started. */
function keepSigningHeads(
  { dataDir }: Config,
  { database, issuer }: ServiceComponents,
  { verification }: Service['urls'],
  log: Log,
): NodeJS.Timeout {
  const signer = createHeadSigner({ database, issuer, did: didOf(verification), path: auditHeadFile(dataDir), log })
  void signer.sign()
  return setInterval(() => void signer.sign(), hourMs).unref()
}

/** A stolen key has all roles of its account. The published keys of a demonstration are known to everybody anyway. */
function warnOfSharedKeys({ demo }: Config, { roleKeys }: ServiceComponents, log: Log): void {
  for (const roles of demo ? [] : sharedRoles(roleKeys))
    log.warn('roles share a key: give each one of its own (ISSUER_KEY and so on)', { roles: roles.join(', ') })
}

/**
 * Settles or sends again, every 30 seconds, writes that were not mined when they were answered. It does the same for writes that a crash
 * left behind. Then it carries out what was approved before a crash, whether or not all writes were recovered. A pass that takes longer, as
 * over a slow provider, is not joined by others.
 */
function keepRecovering(
  { writer, approvals }: Pick<ServiceComponents, 'writer' | 'approvals'>,
  log: Log,
): NodeJS.Timeout {
  const everyMs = 30_000
  const pass = singleFlight((signedMs: number) => writer.recover({ signedMs }).finally(approvals.resume))
  const recover = (signedMs: number) => {
    if (pass.inFlight(signedMs) !== undefined) return
    pass(signedMs).catch((error: unknown) => log.warn('writes not recovered', { reason: reasonOf(error) }))
  }
  recover(0)
  // Every process of a fleet makes these passes: a young write of another one needs no second look.
  return setInterval(() => recover(everyMs), everyMs).unref()
}

/**
 * Takes back the taps of batches that were revoked, also where the revoking command or process ended before. Every process looks once a
 * minute, because the one that indexes may lack the pepper of the tags. Returns the function that ends it.
 */
function keepTakingBackTaps({ revokedTaps }: Pick<ServiceComponents, 'revokedTaps'>, log: Log): () => Promise<void> {
  const ended = new AbortController()
  const pass = singleFlight(() => revokedTaps.settle(ended.signal))
  const look = () =>
    pass().catch((error: unknown) => {
      if (!ended.signal.aborted) log.warn('taps of revoked batches not taken back', { reason: reasonOf(error) })
    })
  void look()
  const timer = setInterval(look, 60_000).unref()
  return async () => {
    clearInterval(timer)
    ended.abort()
    await pass.inFlight()?.catch(() => {})
  }
}

/**
 * Node allocates an object for every `process.nextTick`, several for each request. V8 fixes its allocation strategy after the first
 * thousands of them. Ticks of a busy start lead to a strategy that costs a fifth of a cached read (`bench:read`, Node 24).
 */
const ticks = 5_000

/** Runs plain ticks for about a millisecond, before anything else starts. */
function warmUpNextTick(): Promise<void> {
  return new Promise((resolve) => {
    let left = ticks
    function tick(): void {
      left -= 1
      if (left > 0) process.nextTick(tick)
      else resolve()
    }
    tick()
  })
}
