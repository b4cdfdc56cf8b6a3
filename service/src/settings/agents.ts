/** Settings of the doors for agents: MCP, A2A, the agent registry (spec §4.2, §4.3, §9). */
import { address, choice, isUrl, list, optional, setting, whole } from './kinds.ts'

export const agentSettings = {
  RATE_LIMIT_MCP: whole(
    0,
    1_000_000_000,
    20,
    'Tool calls by MCP, and requests by A2A, that a client IP may make in a window; 0: no limit.',
  ),
  MCP_ORIGINS: list(
    'origins such as https://chat.example.com, or *',
    (text) => text === '*' || isUrl(text, ['http', 'https']),
    'Origins of browser pages that may ask MCP, besides this host’s own.',
  ),
  AGENT_ID: optional(whole(0, 999_999_999_999, 0, 'This service’s number in the ERC-8004 identity registry.')),
  AGENT_IDENTITY_REGISTRY: address(
    '0x8004a818bfb912233c491871b3d84c89a494bd9e',
    'ERC-8004 identity registry; the default is the one on Base Sepolia.',
  ),
  AGENT_REPUTATION_REGISTRY: address(
    '0x8004b663056a597dffe9eccc1965a193b7388713',
    'ERC-8004 reputation registry; the default is the one on Base Sepolia.',
  ),
  AGENT_REVIEWERS: list(
    'addresses',
    (text) => /^0x[0-9a-fA-F]{40}$/.test(text),
    'Reviewers whose feedback counts in reputation lookups; empty: everybody’s, which anyone can make up.',
  ),
  AGENT_REMOTE_FILES: choice(
    ['off', 'on'],
    'on: registration files of looked-up agents are fetched from public https addresses.',
  ),
  SECURITY_CONTACT: optional(
    setting(
      '',
      'a mailto: or https: URL',
      (text) => (/^(?:mailto:[^\s<>]+@[^\s<>]+|https:\/\/[^\s<>]+)$/.test(text) ? text : null),
      'Where vulnerabilities are reported, for /.well-known/security.txt; empty: there is no such file.',
    ),
  ),
} as const
