/** Registration files (ERC-8004, «Agent URI and Agent Registration File»): those of any agent, and the service's own. */
import { checksumAddress, cleanText, type Hex, untrustedOf, verdictChainId } from '@touchstone/verdict'
import { decodePercent } from '../../lib/bytes.ts'
import { isObject, parseJsonObject, type JsonObject } from '../../lib/json.ts'
import { modernVersion } from '../mcp/protocol.ts'

/** The text of an agent about itself, cleaned (spec §2.3). Missing and invalid fields are left out. */
export type AgentText = {
  readonly name?: string
  readonly description?: string
  readonly image?: string
  readonly services?: readonly { readonly name: string; readonly endpoint: string; readonly version?: string }[]
  readonly x402_support?: boolean
  readonly active?: boolean
  readonly supported_trust?: readonly string[]
}

export type AgentFile = {
  readonly text: AgentText
  /** Returns whether the file names this agent, by its number and its registry (`eip155:…`). */
  readonly names: (agentId: bigint, registry: string) => boolean
  /** Hosts of its https endpoints, without repetition. */
  readonly hosts: readonly string[]
}

export const maxRegistrationBytes = 65_536
const [maxServices, maxRegistrations, maxTrusts] = [20, 50, 10]
const maxLength = { name: 100, endpoint: 2048, version: 50, trust: 100 }

/** Decodes a `data:` URI (RFC 2397), or returns null for another URI, another media type or too many bytes. */
export function decodeDataUri(uri: string): string | null {
  const match = /^data:([^,]{0,200}),/is.exec(uri)
  if (match === null || uri.length > 3 * maxRegistrationBytes) return null
  const [type = '', ...parameters] = (match[1] ?? '').toLowerCase().split(';')
  if (type !== '' && type !== 'application/json' && type !== 'text/plain') return null
  const body = uri.slice(match[0].length)
  const text = parameters.includes('base64') ? Buffer.from(body, 'base64').toString() : decodePercent(body)
  return text === null || Buffer.byteLength(text) > maxRegistrationBytes ? null : text
}

/** Parses a registration file as hostile data, or returns null if the text is not a JSON object. */
export function parseAgentFile(text: string): AgentFile | null {
  const file = parseJsonObject(text)
  if (file === null) return null
  const services = parseServices(file['services'] ?? file['endpoints']) // drafts of the ERC said «endpoints»
  const { name, description, image } = untrustedOf(file)
  const support = file['x402Support'] ?? file['x402support']
  const trusts = parseTexts(file['supportedTrust'])
  return {
    text: {
      ...(name !== undefined && { name }),
      ...(description !== undefined && { description }),
      ...(image !== undefined && { image }),
      ...(services.length > 0 && { services }),
      ...(typeof support === 'boolean' && { x402_support: support }),
      ...(typeof file['active'] === 'boolean' && { active: file['active'] }),
      ...(trusts.length > 0 && { supported_trust: trusts }),
    },
    names: (agentId, registry) => registrationsOf(file).some((one) => isOf(one, agentId, registry)),
    hosts: [...new Set(services.flatMap(({ endpoint }) => hostOf(endpoint) ?? []))],
  }
}

/** Returns host and port of an https URL. */
export function hostOf(url: string): string | null {
  const parsed = URL.parse(url)
  return parsed?.protocol === 'https:' ? parsed.host : null
}

function parseServices(value: unknown) {
  const list: readonly unknown[] = Array.isArray(value) ? value.slice(0, maxServices) : []
  return list.filter(isObject).flatMap((one) => {
    const [name, endpoint, version] = (['name', 'endpoint', 'version'] as const).map((key) => {
      const text = one[key]
      return typeof text === 'string' ? cleanText(text, { max: maxLength[key] }) : ''
    }) as [string, string, string]
    return name === '' || endpoint === '' ? [] : [{ name, endpoint, ...(version !== '' && { version }) }]
  })
}

function parseTexts(value: unknown): string[] {
  const list: readonly unknown[] = Array.isArray(value) ? value.slice(0, maxTrusts) : []
  return list.flatMap((one) => (typeof one === 'string' ? cleanText(one, { max: maxLength.trust }) || [] : []))
}

function registrationsOf(file: JsonObject): readonly unknown[] {
  const list = file['registrations']
  return Array.isArray(list) ? list.slice(0, maxRegistrations) : []
}

function isOf(one: unknown, agentId: bigint, registry: string): boolean {
  if (!isObject(one)) return false
  const { agentId: id, agentRegistry } = one
  // A greater number was rounded, and may be that of another agent.
  const sameId = (typeof id === 'string' || Number.isSafeInteger(id)) && String(id) === agentId.toString()
  return sameId && typeof agentRegistry === 'string' && agentRegistry.toLowerCase() === registry.toLowerCase()
}

const registrationType = 'https://eips.ethereum.org/EIPS/eip-8004#registration-v1'

export type OwnAgent = {
  /** An origin with no slash at the end, like `gatewayUrl`. */
  readonly baseUrl: string
  /** Null if the gateway sells nothing. */
  readonly gatewayUrl: string | null
  readonly name: string
  readonly description: string
  /** The agent's number in `identity`; null while it is not registered. */
  readonly agentId: bigint | null
  readonly identity: Hex
}

export function registrationFile({ baseUrl, gatewayUrl, name, description, agentId, identity }: OwnAgent): object {
  return {
    type: registrationType,
    name,
    description,
    image: `${baseUrl}/assets/latest/icon.svg`,
    services: [
      { name: 'web', endpoint: `${baseUrl}/` },
      { name: 'A2A', endpoint: `${baseUrl}/.well-known/agent-card.json`, version: '1.0' },
      { name: 'MCP', endpoint: `${baseUrl}/mcp`, version: modernVersion },
      { name: 'OpenAPI', endpoint: `${baseUrl}/openapi.json`, version: '3.1' },
      ...(gatewayUrl === null ? [] : [{ name: 'x402', endpoint: `${gatewayUrl}/verify`, version: '1' }]),
    ],
    x402Support: gatewayUrl !== null,
    active: true,
    registrations: agentId === null ? [] : [{ agentId: toJsonId(agentId), agentRegistry: registryName(identity) }],
    supportedTrust: ['reputation'],
  }
}

/** Returns the `{namespace}:{chainId}:{identityRegistry}` of the ERC. */
export function registryName(identity: Hex): string {
  return `eip155:${verdictChainId}:${checksumAddress(identity)}`
}

/** Returns a number as in the ERC's example, or decimal text if a JSON number is too small. */
function toJsonId(agentId: bigint): number | string {
  return agentId <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(agentId) : agentId.toString()
}
