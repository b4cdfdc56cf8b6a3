/**
 * The client of a request for its quota: the IP address, IPv6 by its /64 (spec §8).
 * `X-Forwarded-For` counts only where the peer is a configured proxy, and only up to the first address that is not one.
 */
import { BlockList, isIP } from 'node:net'

export type ClientKey = (peer: string | undefined, forwardedFor: string | undefined) => string
export type ClientAddress = ClientKey

/**
 * `trustedProxies` are addresses or CIDR ranges, such as `10.0.0.0/8`. Throws for a text that is neither. `onUnreadable` is called for a
 * trusted proxy that names no address.
 */
export function clientKeys(trustedProxies: readonly string[], onUnreadable?: () => void): ClientKey {
  const addressOf = clientAddresses(trustedProxies, onUnreadable)
  return (peer, forwardedFor) => keyOf(addressOf(peer, forwardedFor))
}

/** Returns the whole address of the client, by the same rules. */
export function clientAddresses(trustedProxies: readonly string[], onUnreadable = () => {}): ClientAddress {
  if (trustedProxies.length === 0) return plain
  const isTrusted = createTrust(trustedProxies)
  return (peer, forwardedFor) => {
    let client = plain(peer)
    if (forwardedFor === undefined || !isTrusted(client)) return client
    for (const hop of forwardedFor.slice(-2_000).split(',').reverse()) {
      const address = plain(addressOf(hop))
      if (isIP(address) === 0) {
        onUnreadable()
        break
      }
      client = address
      if (!isTrusted(address)) break
    }
    return client
  }
}

/** Some proxies write a port behind the address, and IPv6 in brackets or quotes. */
const hopPattern = /^(?:\[([^\]]+)\]|([\d.]+))(?::\d+)?$/

function addressOf(hop: string): string {
  const text = hop.trim().replace(/^"(.*)"$/, '$1')
  const [, inBrackets, ipv4] = hopPattern.exec(text) ?? []
  return inBrackets ?? ipv4 ?? text
}

/** Returns whether an address, or a peer, is in one of the ranges. Throws for a text that is neither address nor CIDR range. */
export function createTrust(ranges: readonly string[]): (address: string | undefined) => boolean {
  const trusted = toBlockList(ranges)
  return (given) => {
    const address = plain(given)
    return isIP(address) !== 0 && trusted.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
  }
}

function toBlockList(ranges: readonly string[]): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [address = '', bits, ...rest] = range.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (isIP(address) === 0 || rest.length > 0 || (bits !== undefined && !/^\d{1,3}$/.test(bits)))
      throw new RangeError(`"${range}" is not an address or CIDR range.`)
    list.addSubnet(address, bits === undefined ? (family === 'ipv6' ? 128 : 32) : Number(bits), family)
  }
  return list
}

/** Begins addresses that stand for an IPv4 one: of a dual-stack socket (RFC 4291), and of NAT64 (RFC 6052). */
const wrappers = ['0:0:0:0:0:ffff', '64:ff9b:0:0:0:0']

function plain(address = ''): string {
  // The text of a dual-stack socket comes with each request; few others can have a wrapper.
  if (address.startsWith('::ffff:') && isIP(address.slice(7)) === 4) return address.slice(7)
  if (!/^0*(?:64)?:/.test(address) || isIP(address) === 0) return address
  const groups = groupsOf(address)
  if (!wrappers.includes(firstOf(groups, 6))) return address
  const bytes = groups.slice(6).flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 0xff])
  return bytes.join('.')
}

function keyOf(address: string): string {
  return address.includes(':') && isIP(address) === 6 ? `${firstOf(groupsOf(address), 4)}::/64` : address
}

function firstOf(groups: readonly string[], count: number): string {
  return groups
    .slice(0, count)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')
}

/** Returns the eight groups of an IPv6 address, without its zone. */
function groupsOf(address: string): readonly string[] {
  const [text = ''] = address.split('%')
  const whole = text.includes('.') ? text.replace(/[\d.]+$/, groupsOfIpv4) : text
  const [left = [], right = []] = whole.split('::').map((half) => (half === '' ? [] : half.split(':')))
  return [...left, ...Array<string>(8 - left.length - right.length).fill('0'), ...right]
}

function groupsOfIpv4(ipv4: string): string {
  const [a = 0, b = 0, c = 0, d = 0] = ipv4.split('.').map(Number)
  return [a * 256 + b, c * 256 + d].map((group) => group.toString(16)).join(':')
}
