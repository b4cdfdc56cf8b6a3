/**
 * Fetches a registration file from an untrusted URL. Https only, no private address, no redirect, at most 64 KiB, 3 s in all. The operator
 * must switch it on, because every caller of a keyless route can make the service send such a request.
 */
import { lookup as systemLookup, type LookupAddress } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { Agent, buildConnector, request } from 'undici'
import { createTrust } from '../../http/client-ip.ts'
import { textWithin } from '../../lib/bytes.ts'
import { maxRegistrationBytes } from './registration-file.ts'

export type RemoteFiles = ReturnType<typeof createRemoteFiles>

type RemoteFileOptions = {
  readonly timeoutMs?: number
  /** Resolves names; its results are checked. */
  readonly lookup?: LookupFunction
  /** Connects to an address that passed the check. */
  readonly connect?: buildConnector.connector
}

export function createRemoteFiles({
  timeoutMs = 3_000,
  lookup = systemLookup as LookupFunction,
  connect = buildConnector({ lookup: publicOnly(lookup), timeout: timeoutMs }),
}: RemoteFileOptions = {}) {
  const dispatcher = new Agent({
    connect,
    connections: 4,
    pipelining: 1,
    keepAliveTimeout: 1_000,
    maxRequestsPerClient: 1,
  })
  return {
    /** Returns null for a URL that is not allowed and for every failure, because the server is untrusted. */
    async text(url: string): Promise<string | null> {
      if (!isAllowed(url)) return null
      const signal = AbortSignal.timeout(timeoutMs)
      const headers = { accept: 'application/json', 'accept-encoding': 'identity' }
      try {
        const answer = await request(url, { dispatcher, signal, headers, headersTimeout: 0, bodyTimeout: 0 })
        answer.body.on('error', () => {}) // an unread body emits one
        if (answer.statusCode === 200 && (answer.headers['content-encoding'] ?? 'identity') === 'identity')
          return await textWithin(answer.body, maxRegistrationBytes) // stopping destroys the body
        answer.body.destroy()
        return null
      } catch {
        return null
      }
    },
    close: () => dispatcher.destroy(),
  }
}

/** Checks port and host. The addresses of a name are checked when it is resolved for the connection. */
function isAllowed(url: string): boolean {
  if (!URL.canParse(url)) return false
  const { protocol, username, password, port, hostname } = new URL(url)
  if (protocol !== 'https:' || username !== '' || password !== '' || port !== '') return false
  const literal = hostname.replace(/^\[|\]$/g, '')
  return isIP(literal) === 0 ? !/(?:^|\.)localhost\.?$/.test(hostname) : isPublicAddress(literal)
}

/** Wraps the lookup of a connection: it fails if any address of the name is private. There is no second lookup that could differ. */
function publicOnly(lookup: LookupFunction): LookupFunction {
  return (hostname, options, done) =>
    lookup(hostname, options, (error, found, family) => {
      const addresses: readonly LookupAddress[] = Array.isArray(found)
        ? found
        : [{ address: found, family: family ?? 0 }]
      if (error === null && !addresses.every(({ address }) => isPublicAddress(address)))
        return done(new Error('a private address'), '', 0)
      done(error, found, family)
    })
}

/** Special-purpose and private networks (IANA registries; RFC 6890). */
const special =
  '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3 2001::/23 2001:db8::/32 2002::/16 3fff::/20'
/** In IPv6 only 2000::/3 is public, except its special networks (protocols, documentation, embedded IPv4). */
const isInPublicV6 = createTrust(['2000::/3'])
const isSpecial = createTrust(special.split(' '))

export function isPublicAddress(address: string): boolean {
  return (isIP(address) === 4 || isInPublicV6(address)) && !isSpecial(address)
}
