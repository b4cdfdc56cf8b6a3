/** The country of a client, as a proxy of the operator names it in a header. The header of any other peer is ignored, as for `X-Forwarded-For`. */
import { createTrust } from './client-ip.ts'

export type ClientCountry = (
  peer: string | undefined,
  header: (name: string) => string | undefined,
) => string | undefined

/** Returns two capitals (ISO 3166-1), or undefined for another peer, text or setting. `XX` stands for an unknown country. */
export function clientCountries(headerName: string | null, trustedProxies: readonly string[]): ClientCountry {
  if (headerName === null || trustedProxies.length === 0) return () => undefined
  const isTrusted = createTrust(trustedProxies)
  const name = headerName.toLowerCase()
  return (peer, header) => {
    const value = header(name)?.trim().toUpperCase()
    return value !== undefined && /^(?!XX)[A-Z]{2}$/.test(value) && isTrusted(peer) ? value : undefined
  }
}
