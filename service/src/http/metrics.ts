/**
 * What a host answers, counted for its operator: by route and status, with times; and the private door where the numbers are read.
 * A route is a name of a closed list, so that no path, id or text of a caller becomes a label.
 */
import type { RequestListener } from 'node:http'

/** Upper bounds of the times, in seconds. */
export const durationBuckets = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
] as const

/** A path and the name it is counted under; one that ends with a slash stands for all below it. */
export type RouteNames = readonly (readonly [path: string, name: string])[]

/** Answers of one route with one status; `closed`: the client went before the answer was complete. `buckets` are not cumulative. */
export type RequestCount = Readonly<{
  route: string
  status: number | 'closed'
  requests: number
  seconds: number
  buckets: readonly number[]
}>

export type RequestMeter = Readonly<{
  /** The same listener, counted. */
  measured: (listener: RequestListener) => RequestListener
  read: () => readonly RequestCount[]
}>

export function createRequestMeter(routes: RouteNames): RequestMeter {
  const counts = new Map<string, Map<RequestCount['status'], Counting>>()

  function count(route: string, status: RequestCount['status'], milliseconds: number): void {
    let ofRoute = counts.get(route)
    if (ofRoute === undefined) counts.set(route, (ofRoute = new Map()))
    let row = ofRoute.get(status)
    if (row === undefined) {
      row = { route, status, requests: 0, seconds: 0, buckets: durationBuckets.map(() => 0) }
      ofRoute.set(status, row)
    }
    const seconds = milliseconds / 1000
    row.requests += 1
    row.seconds += seconds
    let bucket = 0
    while (bucket < durationBuckets.length && seconds > (durationBuckets[bucket] ?? 0)) bucket += 1
    if (bucket < durationBuckets.length) row.buckets[bucket] = (row.buckets[bucket] ?? 0) + 1
  }

  return {
    measured: (listener) => (request, response) => {
      const began = performance.now()
      const route = routeOf(routes, request.url ?? '')
      listener(request, response)
      // What is answered at once, as every prepared answer is, costs no listener.
      if (response.writableEnded) return count(route, response.statusCode, performance.now() - began)
      response.once('close', () =>
        count(route, response.writableFinished ? response.statusCode : 'closed', performance.now() - began),
      )
    },
    read: () => [...counts.values()].flatMap((ofRoute) => [...ofRoute.values()]),
  }
}

type Counting = RequestCount & { requests: number; seconds: number; readonly buckets: number[] }

function routeOf(routes: RouteNames, target: string): string {
  for (const [path, name] of routes) {
    if (!target.startsWith(path)) continue
    if (path.length > 1 && path.endsWith('/')) return name
    if (target.length === path.length || target[path.length] === '?') return name
  }
  return 'other'
}

/** GET /metrics, for a port that only the operator's own network reaches. Whoever asks meanwhile gets the same scrape. */
export function metricsListener({
  scrape,
  contentType,
  onFault,
}: {
  readonly scrape: () => Promise<string>
  readonly contentType: string
  readonly onFault: (error: unknown) => void
}): RequestListener {
  let flight: Promise<string> | undefined
  return (request, response) => {
    const tell = (status: number, type: string, body: string) =>
      response
        .writeHead(status, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(body), ...always })
        .end(request.method === 'HEAD' ? undefined : body)
    const refuse = (status: number, error: string) => tell(status, 'application/json', JSON.stringify({ error }))
    response.on('error', () => {})
    if (request.url?.split('?', 1)[0] !== '/metrics') return void refuse(404, 'The metrics are at /metrics.')
    if (request.method !== 'GET' && request.method !== 'HEAD') return void refuse(405, 'This route answers GET, HEAD.')
    flight ??= scrape().finally(() => (flight = undefined))
    flight.then(
      (text) => tell(200, contentType, text),
      (error: unknown) => {
        onFault(error)
        refuse(500, 'The metrics could not be read.')
      },
    )
  }
}

const always = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' } as const
