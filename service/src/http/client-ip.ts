/**
 * The client of a request for its quota: the IP address, IPv6 by its /64 (spec §8).
 * `X-Forwarded-For` counts only where the peer is a configured proxy, and only up to the first address that is not one.
 */
import { BlockList, isIP } from 'node:net'

export type ClientKey = (peer: string | undefined, forwardedFor: string | undefined) => string
export type ClientAddress = ClientKey

/** `trustedProxies` are addresses or CIDR ranges, such as `10.0.0.0/8`. Throws for a text that is neither. */
export function clientKeys(trustedProxies: readonly string[]): ClientKey {
  const addressOf = clientAddresses(trustedProxies)
  return (peer, forwardedFor) => keyOf(addressOf(peer, forwardedFor))
}

/** Returns the whole address of the client, by the same rules. */
export function clientAddresses(trustedProxies: readonly string[]): ClientAddress {
  if (trustedProxies.length === 0) return plain
  const isTrusted = createTrust(trustedProxies)
  return (peer, forwardedFor) => {
    let client = plain(peer)
    if (forwardedFor === undefined || !isTrusted(client)) return client
    for (const hop of forwardedFor.slice(-2_000).split(',').reverse()) {
      const address = plain(hop.trim())
      if (isIP(address) === 0) break
      client = address
      if (!isTrusted(address)) break
    }
    return client
  }
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
    const [address = '', bits] = range.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (isIP(address) === 0 || (bits !== undefined && !/^\d{1,3}$/.test(bits)))
      throw new RangeError(`"${range}" is not an address or CIDR range.`)
    list.addSubnet(address, bits === undefined ? (family === 'ipv6' ? 128 : 32) : Number(bits), family)
  }
  return list
}

/** An IPv4 client of a dual-stack socket arrives as `::ffff:192.0.2.1`. */
function plain(address: string | undefined): string {
  if (address === undefined) return ''
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}

function keyOf(address: string): string {
  return address.includes(':') ? network64(address) : address
}

/** Returns the first four groups of an IPv6 address, without its zone. */
function network64(address: string): string {
  const [head = '', tail] = (address.split('%')[0] ?? '').split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const gap = tail === undefined ? 0 : 8 - left.length - right.length - (right.at(-1)?.includes('.') ? 1 : 0)
  const groups = [...left, ...Array<string>(Math.max(gap, 0)).fill('0'), ...right]
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`
}
