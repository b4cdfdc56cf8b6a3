/**
 * Starts and ends the service: its parts behind their listeners.
 */
import type { RequestListener } from 'node:http'
import type { Writer } from './chain/writer.ts'
import type { Config } from './config.ts'
import { reasonOf } from './errors.ts'
import { clientKeys } from './http/client-key.ts'
import { createRateLimiter } from './http/rate-limit.ts'
import { listen } from './http/server.ts'
import type { Log } from './log.ts'
import { openParts, type Parts } from './parts.ts'
import { verificationListener } from './verification/host.ts'

export type Service = AsyncDisposable & {
  /** Where the verification host is reached, without a slash at the end. */
  readonly verificationUrl: string
  readonly parts: Parts
  /** Stops accepting, answers what was accepted, closes every part; at most `withinMs` for the requests under way. */
  readonly close: (withinMs?: number) => Promise<void>
}

/** Starts the service. What cannot be started throws one sentence, and whatever was open by then is closed. */
export async function startService(config: Config, log: Log): Promise<Service> {
  await using opened = new AsyncDisposableStack()
  const parts = opened.use(await openParts(config, log))
  const { limits, hosts } = config
  const limiterOf = (limit: number) =>
    limit === 0 ? undefined : createRateLimiter({ limit, windowSeconds: limits.windowSeconds })
  // Links name the port, which is known only now; no request can have come in before this turn ends.
  let answer: RequestListener = () => {}
  const listener = await listen({
    name: 'verification host',
    host: hosts.bind,
    port: hosts.verificationPort,
    onRequest: (request, response) => answer(request, response),
  })
  const verificationUrl = hosts.baseUrl ?? `http://127.0.0.1:${listener.port}`
  answer = verificationListener({
    ...parts,
    baseUrl: verificationUrl,
    limiter: limiterOf(limits.asset),
    tapLimiter: limiterOf(limits.tap),
    clientKey: clientKeys(limits.trustedProxies),
    log: log.child('verification'),
  })
  log.info('verification host listens', { port: listener.port })
  opened.adopt(keepRecovering(parts.writer, log), clearInterval)

  const rest = opened.move()
  let closing: Promise<void> | undefined
  const close = (withinMs?: number) => (closing ??= listener.close(withinMs).then(() => rest.disposeAsync()))
  return { verificationUrl, parts, close, [Symbol.asyncDispose]: () => close() }
}

/** Writes that were not mined when they were answered, or that a crash left behind, are settled or sent again. */
function keepRecovering(writer: Writer, log: Log): NodeJS.Timeout {
  const recover = () =>
    void writer.recover().catch((error: unknown) => log.warn('writes not recovered', { reason: reasonOf(error) }))
  recover()
  return setInterval(recover, 30_000).unref()
}
