/** Revisions of MCP that the endpoint speaks, and its name in the protocol (spec §4.3). */

/** Requests of this revision carry everything with them; there is no handshake. */
export const modernVersion = '2026-07-28'
/** Revisions with a handshake, the newest first: whoever asks for another one is offered that. */
export const legacyVersions = ['2025-11-25', '2025-06-18', '2025-03-26'] as const

/** How the server calls itself, in the protocol and in its descriptors. */
export type McpIdentity = {
  /** Reverse-DNS, with exactly one slash, such as `com.example.verify/touchstone`. */
  readonly name: string
  readonly title: string
  /** At most 100 characters. */
  readonly description: string
  /** One version, no range. */
  readonly version: string
  /** Public URL of the host, without a slash at the end. */
  readonly baseUrl: string
}

/** The identity of this project at `baseUrl`. */
export function identityAt(baseUrl: string, version: string): McpIdentity {
  return {
    name: `${new URL(baseUrl).hostname.replace(/[[\]]/g, '').replaceAll(':', '.').split('.').reverse().join('.')}/touchstone`,
    title: 'Asset verification',
    description: 'Keyless, read-only lifecycle checks for products with an NFC tag. Testnet only, unaudited.',
    version,
    baseUrl,
  }
}
