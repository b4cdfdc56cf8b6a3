/** Asks one chain endpoint, or several of which a number must agree. */
import { VerdictError } from '../lib/errors.ts'
import type { FetchOptions } from '../lib/fetch-json.ts'
import { parseUrl } from '../lib/url.ts'
import { type Check, type Outcome, type Report, undecided } from './report.ts'

/** The endpoints of the chain that are asked. */
export type Endpoints = FetchOptions &
  Readonly<{
    /**
     * A JSON-RPC endpoint that you trust: a lying one deceives `recheck`. Or several of different hosts, of which `agree` must find the
     * same.
     */
    rpcUrl: string | readonly string[]
    /** How many of several endpoints must agree: all of them by default, at least one. */
    agree?: number | undefined
    /**
     * Seconds that the block may be older than the latest one. 3600 by default, because the record may have changed since; any age for a
     * bundle, which is kept. `Infinity` is for a verdict that you kept.
     */
    maxAgeSeconds?: number | undefined
  }>

/** `maxAgeSeconds` of a verdict: more than a chain takes to finalise a block. */
export const defaultMaxAgeSeconds = 3600

/**
 * Runs a check at each endpoint. The outcome is the one that `agree` endpoints come to, `differs` as soon as too many found a difference
 * for that, else `undecided`. Throws the fault of the first endpoint when none answered, and a `TypeError` for URLs or a number that do not fit.
 */
export async function askEndpoints(
  { rpcUrl, agree }: Endpoints,
  check: (url: string) => Promise<Report>,
): Promise<Report> {
  const urls = typeof rpcUrl === 'string' ? [rpcUrl] : rpcUrl
  const needed = agree ?? urls.length
  if (urls.length === 0 || !Number.isInteger(needed) || needed < 1 || needed > urls.length)
    throw new TypeError(`Give at least one RPC URL, and a number that must agree from 1 to ${urls.length}.`)
  const hosts = urls.map(endpointHost)
  const again = hosts.findIndex((host, index) => hosts.indexOf(host) < index)
  if (again !== -1)
    throw new TypeError(
      `RPC URLs ${hosts.indexOf(hosts[again] ?? '') + 1} and ${again + 1} name the same provider, which would agree with itself. Name each once.`,
    )
  const settled = await Promise.allSettled(urls.map(check))
  const reports = settled.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []))
  const [first] = reports
  if (first === undefined) throw settled.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []))[0]
  const count = (outcome: Outcome) => reports.filter((report) => report.outcome === outcome).length
  const outcome: Outcome =
    count('agrees') >= needed ? 'agrees' : urls.length - count('differs') < needed ? 'differs' : 'undecided'
  if (urls.length === 1) return first
  const shown = reports.find((report) => report.outcome === outcome) ?? first
  const rows = settled.map((answer, index) => endpointRow(answer, `endpoint ${index + 1} of ${urls.length}`))
  return { ok: outcome === 'agrees', outcome, checks: [...shown.checks, ...rows] }
}

/**
 * The provider behind an RPC URL: its host and port, in one spelling. Scheme, path and key do not make another provider. A text that is
 * no URL is returned as it is.
 */
export function endpointHost(url: string): string {
  const parsed = parseUrl(url)
  if (parsed === null) return url
  const { hostname, port } = parsed
  const name = hostname.replace(/\.$/, '').replace(mappedAddress, dotted).replace(thisMachine, 'localhost')
  return `${name}:${/^(?:80|443)$/.test(port) ? '' : port}`
}

/** An IPv4 address in the notation of IPv6 (RFC 4291, 2.5.5.2), as URLs write it. */
const mappedAddress = /^\[::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/

function dotted(_match: string, ...halves: string[]): string {
  const numbers = halves.slice(0, 2).map((half) => Number.parseInt(half, 16))
  return numbers.flatMap((number) => [number >> 8, number & 255]).join('.')
}

const thisMachine = /^(?:127(?:\.\d+){3}|0\.0\.0\.0|\[::1?\])$/

/** The URL is left out: it may hold a key. */
function endpointRow(answer: PromiseSettledResult<Report>, field: string): Check {
  if (answer.status === 'rejected')
    return undecided(field, 'this verdict', answer.reason instanceof VerdictError ? answer.reason.code : 'no answer')
  const { ok, outcome, checks } = answer.value
  const wrong = checks.filter((check) => !check.ok).map((check) => check.field)
  const found = ok ? 'agrees' : `${outcome}: ${wrong.join(', ')}`
  return { field, ok, ...(outcome === 'undecided' && { undecided: true as const }), claimed: 'this verdict', found }
}
