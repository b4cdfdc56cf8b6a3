/** `/llms-full.txt`: the rules and every route with a command that works on this instance. Below 50 kB, so that it fits into a prompt. */
import { getAssetCall } from '@touchstone/verdict'
import type { Discovery } from './discovery.ts'
import { rulesText } from './llms.ts'

export function llmsFullText(of: Discovery): string {
  const { verification, gateway, graphql } = of.urls
  return `# Touchstone: every route, with its command

${rulesText(of)}${chainText(of)}
${restText(of)}
${tapText(verification)}
${agentsText(of)}
${gatewayText(gateway)}
## GraphQL (${graphql}/graphql)

Products, transfers and their events. POST JSON with \`query\` and \`variables\`, header \`Authorization: Bearer <API_KEY>\`; the operator makes keys with \`touchstone key create\`. Subscriptions (productTransferred, productVerified) are on the same path over WebSocket (graphql-transport-ws) with connection parameter \`authorization\`. Errors: \`errors[].extensions.code\`, one of UNAUTHENTICATED, FORBIDDEN, BAD_USER_INPUT, NOT_FOUND, RATE_LIMITED, TOO_COMPLEX, CHAIN_UNAVAILABLE, INTERNAL. A mutation that was refused says so in \`success: false\` and \`errors\`.

\`\`\`
curl ${graphql}/graphql -H 'Authorization: Bearer …' -H 'Content-Type: application/json' -d '{"query":"{ products(first: 2) { totalCount edges { node { id name verified } } } }"}'
\`\`\`

## Descriptions

\`\`\`
curl ${verification}/openapi.json
curl ${verification}/.well-known/api-catalog
curl ${verification}/.well-known/ai-catalog.json
\`\`\`
`
}

function chainText({ contract, rpcUrl, exampleTokenId }: Discovery): string {
  return `Without \`cast\`, the same read over JSON-RPC at the newest block; put \`"0x…"\`, the block of the verdict, in place of \`"latest"\`:

\`\`\`
curl ${rpcUrl} -H 'Content-Type: application/json' -d '{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"to":"${contract}","data":"${getAssetCall(exampleTokenId)}"},"latest"]}'
\`\`\`

The result is five words of 32 bytes: owner, timestamp, state, flags, reserved. State: 0 NONE, 1 MINTED, 2 BOUND, 3 ACTIVATED, 4 CLAIMED, 5 FLAGGED, 6 RECYCLED. The owner is never in a verdict: \`owner_commitment\` is keccak256 of abi.encode(uint256 chainId, address contract, uint256 tokenId, address owner), so that whoever has a candidate can test it.
`
}

function restText({ urls, exampleTokenId }: Discovery): string {
  const base = urls.verification
  return `## Verdicts (${base})

GET /api/asset/{tokenId}: \`{version, token_id, authentic, state, state_code, flagged, owner_commitment, chainRef: {chain_id, contract, token_id, block_number, block_hash}, untrusted?, network, audit_status, production_ready}\`. Errors: \`{version, error: {code, message}}\` with INVALID_TOKEN_ID (400: send decimal digits), ASSET_NOT_FOUND (404: no such token), RATE_LIMITED (429), CHAIN_UNAVAILABLE (502: ask again), INTERNAL (500).

\`\`\`
curl ${base}/api/asset/${exampleTokenId}
curl ${base}/api/asset/0x1
curl -H 'Accept: application/problem+json' ${base}/api/asset/0x1
\`\`\`

Every answer has \`X-Request-Id\` (yours, if you send one of at most 64 letters, digits, \`.\`, \`_\`, \`-\`), \`X-RateLimit-Limit\`, \`-Remaining\`, \`-Reset\` (seconds), the same as \`RateLimit-Policy\` and \`RateLimit\`, and a verdict an \`ETag\` for \`If-None-Match\`.

GET /api/metadata/{hash}: the supplier's text as it was hashed, uncleaned. GET /api/asset/{tokenId}/proof: the verdict with its Merkle proof, where the operator offers it.
`
}

function tapText(base: string): string {
  return `## Taps and passports

GET /api/verify?picc=…&cmac=…: only with the values that a chip made at this tap. Always look at \`verified\`; \`reason\` is counterfeit, replayed, unbound or tap_again. GET /api/dpp/01/{gtin}/21/{serial} and /api/dpp/token/{tokenId} with the same parameters: the Digital Product Passport (application/ld+json).

\`\`\`
curl '${base}/api/verify?picc=00000000000000000000000000000000&cmac=0000000000000000'
curl '${base}/api/verify'
\`\`\`

Pages for people are at /01/{gtin}/21/{serial} (GS1 Digital Link; \`?linkType=linkset\` lists its links) and /token/{tokenId}.
`
}

function agentsText({ urls, exampleTokenId }: Discovery): string {
  const base = urls.verification
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call' }
  const params = { name: 'verify_asset', arguments: { token_id: String(exampleTokenId), include_untrusted: false } }
  const part = { data: { skill: 'check_flagged', token_id: String(exampleTokenId) } }
  const message = { message: { messageId: 'm-1', role: 'ROLE_USER', parts: [part] } }
  return `## Tools for agents

MCP, Streamable HTTP without sessions, at ${base}/mcp. Tools: verify_asset, get_lifecycle_history, check_flagged; all take \`token_id\` as text. Read \`structuredContent\`; \`isError: true\` carries the error body.

\`\`\`
curl ${base}/mcp -H 'Content-Type: application/json' -d '${JSON.stringify({ ...call, params })}'
\`\`\`

A2A 1.0 at ${base}/a2a (JSON-RPC) and ${base}/a2a/v1 (HTTP+JSON); the result is the data part of the artifact.

\`\`\`
curl ${base}/a2a/v1/message:send -H 'Content-Type: application/json' -H 'A2A-Version: 1.0' -d '${JSON.stringify(message)}'
\`\`\`
`
}

function gatewayText(gateway: string): string {
  return `## Signed state for a payment (${gateway})

POST /verify with \`{"assetId":"5","chain":"base-sepolia"}\`. Without a payment 402 with the offer (x402 version 1 in the body, version 2 in PAYMENT-REQUIRED): the handshake, not an error. With a signed payment in X-PAYMENT (version 1) or PAYMENT-SIGNATURE (version 2) the state and an ECDSA signature over keccak256(abi.encode(tokenId, state, chainId, timestamp)). Errors: \`{error, message}\`, branch on \`error\`. After 503 send the same payment again: it is charged at most once.

\`\`\`
curl ${gateway}/health
curl ${gateway}/verify -H 'Content-Type: application/json' -d '{"assetId":"5","chain":"base-sepolia"}'
curl ${gateway}/.well-known/attestation.json
\`\`\`
`
}
