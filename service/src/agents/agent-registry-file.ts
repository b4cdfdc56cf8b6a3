/** The registration file of any agent (ERC-8004): whoever registered it wrote it, so it is read as hostile data (spec §2.3). */
import { cleanText, untrustedOf } from '@touchstone/verdict'

/** What an agent says of itself, cleaned. Fields that are missing or unusable are left out. */
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
  /** Does the file say that it is this agent's? Both as in the ERC: the number, and `eip155:…`. */
  readonly names: (agentId: bigint, registry: string) => boolean
  /** Hosts of its https endpoints, without repetition. */
  readonly hosts: readonly string[]
}

export const mostFileBytes = 65_536
const [mostServices, mostRegistrations, mostTrusts] = [20, 50, 10]
const longest = { name: 100, endpoint: 2048, version: 50, trust: 100 }

/** The text in a `data:` URI (RFC 2397); null for any other URI, another kind of data, or too much of it. */
export function textOfDataUri(uri: string): string | null {
  const match = /^data:([^,]{0,200}),/is.exec(uri)
  if (match === null || uri.length > 3 * mostFileBytes) return null
  const [type = '', ...parameters] = (match[1] ?? '').toLowerCase().split(';')
  if (type !== '' && type !== 'application/json' && type !== 'text/plain') return null
  const body = uri.slice(match[0].length)
  const text = parameters.includes('base64') ? Buffer.from(body, 'base64').toString() : percentDecoded(body)
  return text === null || Buffer.byteLength(text) > mostFileBytes ? null : text
}

/** Null for what is no JSON object. */
export function readAgentFile(text: string): AgentFile | null {
  const file = parsed(text)
  if (file === null) return null
  const services = servicesOf(file['services'] ?? file['endpoints']) // drafts of the ERC said «endpoints»
  const { name, description, image } = untrustedOf(file)
  const support = file['x402Support'] ?? file['x402support']
  const trusts = textsOf(file['supportedTrust'])
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

/** Host and port of an https URL. */
export function hostOf(url: string): string | null {
  if (!URL.canParse(url)) return null
  const { protocol, host } = new URL(url)
  return protocol === 'https:' ? host : null
}

type Json = Readonly<Record<string, unknown>>

function parsed(text: string): Json | null {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : null
  } catch {
    return null
  }
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function percentDecoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

function servicesOf(value: unknown) {
  const list: readonly unknown[] = Array.isArray(value) ? value.slice(0, mostServices) : []
  return list.filter(isObject).flatMap((one) => {
    const [name, endpoint, version] = (['name', 'endpoint', 'version'] as const).map((key) => {
      const text = one[key]
      return typeof text === 'string' ? cleanText(text, { max: longest[key] }) : ''
    }) as [string, string, string]
    return name === '' || endpoint === '' ? [] : [{ name, endpoint, ...(version !== '' && { version }) }]
  })
}

function textsOf(value: unknown): string[] {
  const list: readonly unknown[] = Array.isArray(value) ? value.slice(0, mostTrusts) : []
  return list.flatMap((one) => (typeof one === 'string' ? cleanText(one, { max: longest.trust }) || [] : []))
}

function registrationsOf(file: Json): readonly unknown[] {
  const list = file['registrations']
  return Array.isArray(list) ? list.slice(0, mostRegistrations) : []
}

function isOf(one: unknown, agentId: bigint, registry: string): boolean {
  if (!isObject(one)) return false
  const { agentId: id, agentRegistry } = one
  const sameId = (typeof id === 'number' || typeof id === 'string') && String(id) === agentId.toString()
  return sameId && typeof agentRegistry === 'string' && agentRegistry.toLowerCase() === registry.toLowerCase()
}
