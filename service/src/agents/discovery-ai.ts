/** `/.well-known/ai-catalog.json` (AI Catalog 1.0 of the Agent Card working group): the MCP server and the A2A agent of this host. */
import type { Discovery } from './discovery.ts'

/** The cards themselves name and describe what they are about, so that nothing is said twice. */
export function aiCatalog({ urls, operator }: Pick<Discovery, 'urls' | 'operator'>) {
  const base = urls.verification
  const name = `urn:air:${new URL(base).hostname}:asset-verification`
  return {
    specVersion: '1.0',
    host: { displayName: operator, documentationUrl: `${base}/docs` },
    entries: [
      { identifier: `${name}:mcp`, type: 'application/mcp-server-card+json', url: `${base}/mcp/server-card` },
      {
        identifier: `${name}:a2a`,
        type: 'application/a2a-agent-card+json',
        url: `${base}/.well-known/agent-card.json`,
      },
    ],
  }
}
