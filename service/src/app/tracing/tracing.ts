/**
 * Traces of requests (OpenTelemetry), where a collector is configured. Each request is a trace of its own, or a part of the one that a
 * trusted proxy names in `traceparent` (W3C Trace Context). Nothing of it is sent to providers, facilitators or clients.
 */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { type Context, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, type Tracer } from '@opentelemetry/api'
import { parseTraceParent } from '@opentelemetry/core'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { HostName } from '../../discovery/instance.ts'
import { createTrust } from '../../http/client-ip.ts'
import { routeOf } from '../../http/metrics.ts'
import { getHeader, requestIdFor } from '../../http/request.ts'
import { withDeadline } from '../../lib/async/deadline.ts'
import { type Span, withSpan } from '../../lib/async/span.ts'
import type { Log } from '../../lib/log.ts'
import { programVersion } from '../../lib/version.ts'
import type { TraceSettings } from '../config/trace-settings.ts'
import { routeNames } from '../route-names.ts'
import { createExport } from './export.ts'

export type Tracing = Readonly<{
  /** Returns a listener that traces the requests of another. */
  traced: (host: HostName, listener: RequestListener) => RequestListener
  /** Returns the id of the trace of a response; undefined where it is not traced. */
  traceOf: (response: ServerResponse) => string | undefined
  /** Spans since the start, by what became of them. */
  stats: () => Readonly<Record<'exported' | 'failed' | 'dropped', number>>
  /** Exports what waits, for two seconds at most. */
  close: () => Promise<void>
}>

type TracingOptions = Readonly<{
  settings: TraceSettings & { readonly endpoint: string }
  /** Proxies whose `traceparent` counts: addresses and CIDR ranges. */
  trustedProxies: readonly string[]
  log: Log
}>

const closingMs = 2_000

export function openTracing({ settings, trustedProxies, log }: TracingOptions): Tracing {
  const { processor, stats, abort } = createExport({ ...settings, log })
  const provider = new TracerProvider({
    sampler: samplerOf(settings),
    spanProcessors: [processor],
    resource: resourceFromAttributes({
      'service.name': settings.serviceName,
      'service.version': programVersion,
      'service.instance.id': randomUUID(),
      ...settings.resource,
    }),
  })
  const tracer = provider.getTracer('touchstone', programVersion)
  const isTrusted = trustedProxies.length === 0 ? () => false : createTrust(trustedProxies)
  const traceIds = new WeakMap<ServerResponse, string>()

  function parentOf(request: IncomingMessage): Context {
    const header = isTrusted(request.socket.remoteAddress) ? getHeader(request, 'traceparent') : undefined
    const parent = header === undefined ? null : parseTraceParent(header)
    return parent === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, { ...parent, isRemote: true })
  }

  return {
    traced: (host, listener) => (request, response) => {
      const [path, route] = routeOf(routeNames[host], request.url ?? '')
      const method = methods.has(request.method ?? '') ? (request.method ?? '') : '_OTHER'
      const attributes = { 'http.request.method': method, 'http.route': path, 'touchstone.host': host }
      const name = `${method === '_OTHER' ? 'HTTP' : method} ${path || route}`
      const root = tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, parentOf(request))
      if (!root.isRecording()) return listener(request, response)
      root.setAttribute('touchstone.request_id', identify(request))
      traceIds.set(response, root.spanContext().traceId)
      response.once('close', () => {
        root.setAttribute('http.response.status_code', response.statusCode)
        if (!response.writableFinished) root.setAttribute('error.type', 'closed')
        else if (response.statusCode >= 500) root.setStatus({ code: SpanStatusCode.ERROR })
        root.end()
      })
      const context = trace.setSpan(ROOT_CONTEXT, root)
      withSpan(spanOf(tracer, context), () => listener(request, response))
    },
    traceOf: (response) => traceIds.get(response),
    stats,
    close: async () => {
      await withDeadline(provider.shutdown(), closingMs, { onTimeout: abort }).catch(() => {})
    },
  }
}

const methods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'OPTIONS', 'PUT', 'DELETE', 'PATCH'])

/** Gives a request that has no usable id the one that its answer will have, and returns it. */
function identify(request: IncomingMessage): string {
  const given = getHeader(request, 'x-request-id')
  const id = requestIdFor(given)
  if (id !== given) {
    if (given === undefined) request.rawHeaders.push('X-Request-Id', id)
    request.headers['x-request-id'] = id
  }
  return id
}

const contexts = new WeakMap<Span, Context>()

function spanOf(tracer: Tracer, context: Context): Span {
  const own = trace.getSpan(context)
  const span: Span = {
    child: ({ name, kind, attributes = {} }) => {
      const options = { attributes, kind: kind === 'client' ? SpanKind.CLIENT : SpanKind.INTERNAL }
      return spanOf(tracer, trace.setSpan(context, tracer.startSpan(name, options, context)))
    },
    set: (attributes) => void own?.setAttributes(attributes),
    link: (other) => {
      const linked = trace.getSpanContext(contexts.get(other) ?? ROOT_CONTEXT)
      if (linked !== undefined) own?.addLink({ context: linked })
    },
    fail: (errorType) => void own?.setAttribute('error.type', errorType).setStatus({ code: SpanStatusCode.ERROR }),
    end: () => own?.end(),
  }
  contexts.set(span, context)
  return span
}

function samplerOf({ sampler, ratio }: Pick<TraceSettings, 'sampler' | 'ratio'>): Sampler {
  const roots = {
    always_on: () => new AlwaysOnSampler(),
    always_off: () => new AlwaysOffSampler(),
    traceidratio: () => new TraceIdRatioBasedSampler(ratio),
  }
  const isParentBased = sampler.startsWith('parentbased_')
  const root = roots[sampler.replace('parentbased_', '') as keyof typeof roots]()
  return isParentBased ? new ParentBasedSampler({ root }) : root
}
