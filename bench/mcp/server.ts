/**
 * The servers of `bench:mcp`: `bare` reads and parses the body and writes one prepared answer. `ours` is the MCP endpoint; `sdk` is the
 * official SDK behind its own Node adapter, a server for each request. The chain answers at once, so that MCP alone is measured.
 */
import type { Hex } from '@touchstone/verdict'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { toNodeHandler } from '@modelcontextprotocol/node'
import type { RequestListener } from 'node:http'
import { json } from 'node:stream/consumers'
import { mcpListener } from '../../service/src/agents/mcp/endpoint.ts'
import { identityAt } from '../../service/src/agents/mcp/protocol.ts'
import { toCallResult } from '../../service/src/agents/mcp/server.ts'
import {
  checkFlaggedSchema,
  lifecycleHistorySchema,
  tokenInput,
  verdictSchema,
  verifyAssetInput,
} from '../../service/src/agents/tools/schemas.ts'
import { createVerdicts, type AssetSource } from '../../service/src/assets/verdicts.ts'
import { createTools, type Tools } from '../../service/src/agents/tools/tools.ts'
import { createRateLimiter } from '../../service/src/http/rate-limit/limiter.ts'
import { servePort } from '../lib/processes.ts'
import { silent } from '../lib/world.ts'

const [kind] = process.argv.slice(2)

if (kind === 'bare') {
  const body = JSON.stringify({ result: { filler: 'x'.repeat(1_900) }, jsonrpc: '2.0', id: 1 })
  const headers = [
    ['Content-Type', 'application/json'],
    ['Content-Length', String(body.length)],
    ['Cache-Control', 'no-store'],
    ['X-Content-Type-Options', 'nosniff'],
    ['X-Request-Id', 'abcdefgh-1234567'],
    ['X-RateLimit-Limit', '1000000000'],
    ['X-RateLimit-Remaining', '999999999'],
    ['X-RateLimit-Reset', '60'],
    ['RateLimit-Policy', '"default";q=1000000000;w=60'],
    ['RateLimit', '"default";r=999999999;t=60'],
  ].flat()
  servePort((request, response) => void json(request).then(() => response.writeHead(200, headers).end(body, 'latin1')))
} else {
  const tools = instantTools()
  servePort(kind === 'sdk' ? bySdk(tools) : ours(tools))
}

/** Every token is there, claimed and known at the same block; the verdicts are the real ones. */
function instantTools(): Tools {
  const contract: Hex = '0x5FbDB2315678afecb367f032d93F642f64180aa3'
  const block = { number: 1_000n, hash: `0x${'ab'.repeat(32)}` } as const
  const record = { owner: `0x${'a1'.repeat(20)}`, timestamp: 1n, state: 4, flags: 0, reserved: 0 } as const
  const known = new Map<bigint, { asset: Awaited<ReturnType<AssetSource['read']>>['asset']; block: typeof block }>()
  const assets: AssetSource = {
    async read(tokenId) {
      const asset = { tokenId, record, metadataHash: null, current: true }
      if (!known.has(tokenId)) known.set(tokenId, { asset, block })
      return known.get(tokenId)!
    },
    head: () => block,
    readByTag: () => Promise.reject(new Error('There are no tags here.')),
  }
  const metadata = { get: async () => undefined }
  const verdicts = createVerdicts({ assets, metadata, contract, maxEntries: 10_000, log: silent })
  const histories = () => Promise.reject(new Error('There is no index here.'))
  return createTools({ verdicts, histories, contract, log: silent })
}

function ours(tools: Tools): RequestListener {
  return mcpListener(
    {
      tools,
      identity: identityAt('http://127.0.0.1:8080', '0.1.0', 'Example'),
      limiter: createRateLimiter({ limit: 1_000_000_000 }),
      clientKey: (peer) => peer ?? '',
      log: silent,
    },
    (_request, response) => response.writeHead(404).end(),
  )
}

function bySdk(tools: Tools): RequestListener {
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: 'bench', version: '0.1.0' })
    server.registerTool(
      'verify_asset',
      { description: 'verify', inputSchema: verifyAssetInput, outputSchema: verdictSchema },
      async (args) => toCallResult(await tools.verify_asset(args)),
    )
    server.registerTool(
      'get_lifecycle_history',
      { description: 'history', inputSchema: tokenInput, outputSchema: lifecycleHistorySchema },
      async (args) => toCallResult(await tools.get_lifecycle_history(args)),
    )
    server.registerTool(
      'check_flagged',
      { description: 'flags', inputSchema: tokenInput, outputSchema: checkFlaggedSchema },
      async (args) => toCallResult(await tools.check_flagged(args)),
    )
    return server
  })
  return toNodeHandler(handler) as RequestListener
}
