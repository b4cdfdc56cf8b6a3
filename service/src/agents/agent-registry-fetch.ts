/**
 * Fetches a registration file that somebody else named: https only, no private address, no redirect, at most 64 KiB, 3 s in all. Off unless
 * the operator switches it on, because every caller of a keyless route makes the service send such a request.
 */
import { lookup as systemLookup, type LookupAddress } from 'node:dns'
import { BlockList, isIP } from 'node:net'
import type { LookupFunction } from 'node:net'
import { Agent, buildConnector, request } from 'undici'
import { textWithin } from '../bounded-text.ts'
import { mostFileBytes } from './agent-registry-file.ts'

export type RemoteFiles = {
  /** Null for a URL that is not allowed and for everything that is no such answer: a stranger's server decides what happens. */
  readonly text: (url: string) => Promise<string | null>
  readonly close: () => Promise<void>
}

export type RemoteFileOptions = {
  readonly timeoutMs?: number
  /** Names are resolved by it, and what it says is checked. */
  readonly lookup?: LookupFunction
  /** Connects to an address that was let through. */
  readonly connect?: buildConnector.connector
}

export function createRemoteFiles({
  timeoutMs = 3_000,
  lookup = systemLookup as LookupFunction,
  connect = buildConnector({ lookup: publicOnly(lookup), timeout: timeoutMs }),
}: RemoteFileOptions = {}): RemoteFiles {
  const dispatcher = new Agent({
    connect,
    connections: 4,
    pipelining: 1,
    keepAliveTimeout: 1_000,
    maxRequestsPerClient: 1,
  })
  return {
    async text(url) {
      if (!isAllowed(url)) return null
      const signal = AbortSignal.timeout(timeoutMs)
      const headers = { accept: 'application/json', 'accept-encoding': 'identity' }
      try {
        const answer = await request(url, { dispatcher, signal, headers, headersTimeout: 0, bodyTimeout: 0 })
        answer.body.on('error', () => {}) // a body that is left unread says so
        if (answer.statusCode === 200 && (answer.headers['content-encoding'] ?? 'identity') === 'identity')
          return await textWithin(answer.body, mostFileBytes) // leaving off destroys the body
        answer.body.destroy()
        return null
      } catch {
        return null
      }
    },
    close: () => dispatcher.destroy(),
  }
}

/** On the usual port, with a host that is no private address; what a name resolves to is looked at when it is connected to. */
function isAllowed(url: string): boolean {
  if (!URL.canParse(url)) return false
  const { protocol, username, password, port, hostname } = new URL(url)
  if (protocol !== 'https:' || username !== '' || password !== '' || port !== '') return false
  const literal = hostname.replace(/^\[|\]$/g, '')
  return isIP(literal) === 0 ? !/(?:^|\.)localhost\.?$/.test(hostname) : isPublicAddress(literal)
}

/** The lookup of a connection, which fails when any address of the name is private: no second lookup can say something else. */
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

/** Networks that are nobody's or this machine's neighbours (IANA special-purpose registries; RFC 6890). */
const privateV4 =
  '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3'
/** Of IPv6 only 2000::/3 is public, without what is special in it (protocols, documentation, IPv4 in disguise). */
const publicV6 = blockList('2000::/3')
const special = blockList(`${privateV4} 2001::/23 2001:db8::/32 2002::/16 3fff::/20`)

export function isPublicAddress(address: string): boolean {
  const version = isIP(address)
  if (version === 4) return !special.check(address, 'ipv4')
  return version === 6 && publicV6.check(address, 'ipv6') && !special.check(address, 'ipv6')
}

function blockList(networks: string): BlockList {
  const list = new BlockList()
  for (const network of networks.split(' ')) {
    const [address = '', bits] = network.split('/')
    list.addSubnet(address, Number(bits), isIP(address) === 6 ? 'ipv6' : 'ipv4')
  }
  return list
}
