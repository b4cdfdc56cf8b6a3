/**
 * Counts the responses of a host by route and status, with durations, and serves the metrics on a private listener.
 * A route is a name of a closed list, so that no path, id or text of a caller becomes a label.
 */
import type { RequestListener, ServerResponse } from 'node:http'
import { singleFlight } from '../lib/async/single-flight.ts'
import { mediaRanges, namedQuality, qualityOf } from './accept.ts'
import { parseRequestTarget } from './request.ts'
import { sendError } from './responses.ts'

/** Upper bounds of the durations, in seconds. */
export const durationBuckets = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
] as const

/** A path and its route name; a path that ends with a slash matches everything below it. */
export type RouteNames = readonly (readonly [path: string, name: string])[]

/** Responses of one route with one status. `closed`: the client disconnected first. `buckets` are not cumulative. */
export type RequestCount = Readonly<{
  route: string
  status: number | 'closed'
  requests: number
  seconds: number
  buckets: readonly number[]
  /** The last traced request of each bucket, and of those above all bounds. */
  exemplars: readonly (Exemplar | undefined)[]
}>

/** A traced request; `at` is its end in unix seconds. */
export type Exemplar = Readonly<{ traceId: string; seconds: number; at: number }>

/** `traceOf` returns the trace of a request that is traced. */
export function createRequestMeter(routes: RouteNames, traceOf?: (response: ServerResponse) => string | undefined) {
  const counts = new Map<string, Map<RequestCount['status'], Counting>>()

  function count(route: string, status: RequestCount['status'], milliseconds: number, traceId?: string): void {
    let ofRoute = counts.get(route)
    if (ofRoute === undefined) counts.set(route, (ofRoute = new Map()))
    let row = ofRoute.get(status)
    if (row === undefined) {
      row = { route, status, requests: 0, seconds: 0, buckets: durationBuckets.map(() => 0), exemplars: [] }
      ofRoute.set(status, row)
    }
    const seconds = milliseconds / 1000
    row.requests += 1
    row.seconds += seconds
    let bucket = 0
    while (bucket < durationBuckets.length && seconds > (durationBuckets[bucket] ?? 0)) bucket += 1
    if (bucket < durationBuckets.length) row.buckets[bucket] = (row.buckets[bucket] ?? 0) + 1
    if (traceId !== undefined) row.exemplars[bucket] = { traceId, seconds, at: Date.now() / 1000 }
  }

  return {
    /** Returns a listener that counts the responses of another. */
    measured:
      (listener: RequestListener): RequestListener =>
      (request, response) => {
        const began = performance.now()
        const [, route] = routeOf(routes, request.url ?? '')
        listener(request, response)
        // A synchronous response, such as a prepared one, costs no event listener.
        if (response.writableEnded)
          return count(route, response.statusCode, performance.now() - began, traceOf?.(response))
        response.once('close', () => {
          const status = response.writableFinished ? response.statusCode : 'closed'
          count(route, status, performance.now() - began, traceOf?.(response))
        })
      },
    read: (): readonly RequestCount[] => [...counts.values()].flatMap((ofRoute) => [...ofRoute.values()]),
  }
}

type Counting = RequestCount & {
  requests: number
  seconds: number
  readonly buckets: number[]
  readonly exemplars: (Exemplar | undefined)[]
}

/** Returns the first route of the list that matches a request target. */
export function routeOf(routes: RouteNames, target: string): RouteNames[number] {
  for (const route of routes) {
    const [path] = route
    if (!target.startsWith(path)) continue
    if (path.length > 1 && path.endsWith('/')) return route
    if (target.length === path.length || target[path.length] === '?') return route
  }
  return other
}

const other = ['', 'other'] as const

type MetricsSource = {
  /** `openMetrics`: in the form that has exemplars. */
  readonly scrape: (openMetrics: boolean) => Promise<{ readonly text: string; readonly contentType: string }>
  readonly onFault: (error: unknown) => void
}

/** Answers GET /metrics, on a port that only the operator's network reaches. Concurrent requests share one scrape. */
export function metricsListener({ scrape, onFault }: MetricsSource): RequestListener {
  const scrapeOnce = singleFlight(scrape, (openMetrics) => openMetrics)
  return (request, response) => {
    response.on('error', () => {})
    const { path } = parseRequestTarget(request.url ?? '')
    if (path !== '/metrics') return sendError(response, 404, 'The metrics are at /metrics.')
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return sendError(response, 405, 'This route answers GET, HEAD.', { Allow: 'GET, HEAD' })
    scrapeOnce(prefersOpenMetrics(request.headers.accept ?? null)).then(
      ({ text, contentType }) => {
        const headers = { 'Content-Type': contentType, 'Content-Length': Buffer.byteLength(text) }
        response
          .writeHead(200, { ...headers, 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' })
          .end(text)
      },
      (error: unknown) => {
        onFault(error)
        sendError(response, 500, 'The metrics could not be read.')
      },
    )
  }
}

/** Prometheus names both forms, and weighs them by what it is set to store. */
function prefersOpenMetrics(accept: string | null): boolean {
  const ranges = mediaRanges(accept)
  const quality = namedQuality(ranges, 'application/openmetrics-text')
  return quality > 0 && quality >= qualityOf(ranges, 'text/plain')
}
