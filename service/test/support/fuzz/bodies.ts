/** Bodies that the fuzzer begins with, by the operation that takes them: good ones, and some that are not. */
export const knownBodies = {
  runGraphql: [
    '{"query":"{ products(first: 2) { totalCount edges { node { id name } } } }"}',
    '{"query":"query ($id: ID!) { product(id: $id) { name transfers { id } } }","variables":{"id":"1"}}',
    '{"query":"{ nothing }"}',
    '{"query":"{ products(first: 9999) { totalCount } }"}',
  ],
  callMcp: [
    '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
    '{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"verify_asset","arguments":{"token_id":"1"}}}',
    '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"nothing","arguments":{}}}',
    '{"jsonrpc":"2.0","method":"notifications/initialized"}',
    '{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"f","version":"1"}}}',
  ],
  callA2a: [
    '{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"data":{"skill":"verify_asset","token_id":"1"}}]}}}',
    '{"jsonrpc":"2.0","id":2,"method":"GetTask","params":{"id":"none"}}',
    '{"jsonrpc":"2.0","id":3,"method":"Nothing"}',
  ],
  sendMessage: [
    '{"message":{"messageId":"m2","role":"ROLE_USER","parts":[{"text":"Is 1 flagged?"}]}}',
    '{"message":{"messageId":"m3","role":"ROLE_USER","parts":[]}}',
  ],
  buyAttestation: ['{}', '{"assetId":"1","chain":"base-sepolia"}', '{"assetId":"99"}', '{"assetId":"0x1"}'],
} as const satisfies Readonly<Record<string, readonly string[]>>
