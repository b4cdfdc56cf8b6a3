/**
 * The servers of `bench:read` and `bench:limits`. `bare <length>` writes one prepared body of that many bytes. `touchstone <rpc> <contract>
 * <cache> <folder>` is the
 * verification host, perhaps with more settings as JSON.
 */
import type { Hex } from '@touchstone/verdict'
import { startService } from '../../service/src/app/service.ts'
import { readConfig } from '../../service/src/app/config/config.ts'
import { exposedHeaders } from '../../service/src/http/responses.ts'
import { servePort } from '../lib/processes.ts'
import { metadataOf, silent } from '../lib/world.ts'

/** The cached reads ask for these; a catalogue has the metadata of its products. */
const productsWithMetadata = 1_000

const [kind, rpcUrl = '', contract = ''] = process.argv.slice(2)

if (kind === 'bare') {
  const body = 'x'.repeat(Number(rpcUrl))
  const headers = [
    ['Content-Type', 'application/json'],
    ['Content-Length', String(body.length)],
    ['X-Content-Type-Options', 'nosniff'],
    ['ETag', '"0123456789abcdef-0123456789abcdef"'],
    ['Cache-Control', 'public, max-age=1, stale-while-revalidate=1'],
    ['Access-Control-Allow-Origin', '*'],
    ['Access-Control-Expose-Headers', exposedHeaders],
    ['X-RateLimit-Limit', '60'],
    ['X-RateLimit-Remaining', '59'],
    ['X-RateLimit-Reset', '60'],
    ['RateLimit-Policy', '"default";q=60;w=60'],
    ['RateLimit', '"default";r=59;t=60'],
    ['X-Request-Id', 'kq3v0x9-1h2j3k4'],
  ].flat()
  servePort((_, response) => response.writeHead(200, headers).end(body))
} else {
  const config = readConfig({
    CHAIN_RPC_URLS: rpcUrl,
    CHAIN_CONTRACT: contract as Hex,
    CHAIN_INTERFACE: 'registry',
    CHAIN_MAX_HEAD_AGE_SECONDS: '0',
    CHAIN_CACHE: process.argv[5] ?? 'events',
    VERIFICATION_PORT: '0',
    ONLY: 'verification',
    RATE_LIMIT_ASSET: '1000000000',
    DATA_DIR: process.argv[6] ?? '',
    ...(JSON.parse(process.argv[7] ?? '{}') as Record<string, string>),
  })
  const service = await startService(config, silent)
  for (let tokenId = 1; tokenId <= productsWithMetadata; tokenId += 1)
    await service.components.metadata.put(metadataOf(tokenId))
  console.log(`port ${new URL(service.urls.verification).port}`)
  process.once('SIGTERM', () => {
    console.log(JSON.stringify(service.components.reader.stats()))
    void service.close(100).then(() => process.exit(0))
  })
}
