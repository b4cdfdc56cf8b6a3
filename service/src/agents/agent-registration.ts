/** The service's own registration file (ERC-8004, «Agent URI and Agent Registration File»): who it is, where it answers. */
import { checksumAddress, verdictChainId, type Hex } from '@touchstone/verdict'
import { modernVersion } from './mcp-protocol.ts'

const registrationType = 'https://eips.ethereum.org/EIPS/eip-8004#registration-v1'

export type OwnAgent = {
  /** Without a slash at the end, as the next one. */
  readonly baseUrl: string
  /** Null where nothing is sold. */
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
    registrations: agentId === null ? [] : [{ agentId: numberOf(agentId), agentRegistry: registryName(identity) }],
    supportedTrust: ['reputation'],
  }
}

/** `{namespace}:{chainId}:{identityRegistry}` of the ERC. */
export function registryName(identity: Hex): string {
  return `eip155:${verdictChainId}:${checksumAddress(identity)}`
}

/** A number as in the ERC's example; a decimal string where a JSON number would not hold it. */
function numberOf(agentId: bigint): number | string {
  return agentId <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(agentId) : agentId.toString()
}
