/**
 * The servers of `bench:tap`: `bare` writes one prepared answer. `crypto` is GET /api/verify with a ledger and a chain that answer at once;
 * `ledger <postgres url>` has the real ledger. The batch comes as JSON on standard input.
 */
import { createServer, type RequestListener } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Verdicts } from '../../service/src/assets/verdicts.ts'
import { openDatabase } from '../../service/src/db/database.ts'
import { migrate } from '../../service/src/db/migrate.ts'
import { createAuthenticate } from '../../service/src/tap/sun/authenticate.ts'
import { batchFromJson, embeddedBatch, createKeyRing } from '../../service/src/tap/keys/batch.ts'
import { createLedger, type Ledger } from '../../service/src/tap/replay-ledger.ts'
import { createTagHash } from '../../service/src/tap/tag-hash.ts'
import { createVerifyTap } from '../../service/src/tap/verify-tap.ts'
import { verdictOf, zeroAddress } from '@touchstone/verdict'
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import { createRequestHelpers, rawPath, type Env } from '../../service/src/hosts/verification/request.ts'
import { createResolveTap } from '../../service/src/tap/resolve-tap.ts'
import { verifyRoutes } from '../../service/src/hosts/verification/routes/verify.ts'
import { silent } from '../lib/world.ts'

const [kind, url = ''] = process.argv.slice(2)
const hash = `0x${'ab'.repeat(32)}` as const
const contract = '0x5FbDB2315678afecb367f032d93F642f64180aa3'

function bare(): RequestListener {
  const body = JSON.stringify({ verified: true, filler: 'x'.repeat(560) })
  const headers = [
    ['Content-Type', 'application/json'],
    ['Content-Length', String(body.length)],
    ['Cache-Control', 'no-store'],
    ['Referrer-Policy', 'no-referrer'],
    ['X-Content-Type-Options', 'nosniff'],
    ['Access-Control-Allow-Origin', '*'],
  ].flat()
  return (_, response) => response.writeHead(200, headers).end(body)
}

async function verifying(): Promise<RequestListener> {
  const record = batchFromJson(JSON.parse(await text(process.stdin)))
  if (record === null) throw new Error('No batch on standard input.')
  const keys = createKeyRing([await embeddedBatch(record)])
  const verifyTap = createVerifyTap({
    keys,
    authenticate: createAuthenticate({ keys }),
    ledger: kind === 'ledger' ? await realLedger() : instantLedger,
    tagHash: createTagHash({ scheme: 'hmac', pepper: new Uint8Array(32).fill(7) }),
  })
  const resolveTap = createResolveTap({
    verifyTap,
    verdicts: instantChain,
    announce: async () => {},
    onRefused: () => {},
  })
  const app = new Hono<Env>({ getPath: rawPath })
  verifyRoutes(app, createRequestHelpers({ clientKey: () => '', log: silent }), { resolveTap, contract })
  const router = getRequestListener((request, env) => app.fetch(request, env))
  return (request, response) => void router(request, response)
}

async function realLedger(): Promise<Ledger> {
  const database = await openDatabase({ url })
  await migrate(database)
  return createLedger({ sql: database })
}

const fresh = async () => ({ outcome: 'FRESH', anomalies: [], lastCounter: null }) as const
const instantLedger: Ledger = { consume: fresh, judge: fresh }

const record = { owner: zeroAddress, timestamp: 1n, state: 3, flags: 0, reserved: 0 } as const
const verdict = verdictOf({ record, tokenId: 1n, block: { number: 1n, hash }, contract, chainId: 84532 })
const instantChain = {
  byTag: async () => ({
    block: { number: 1n, hash, timestamp: 1n },
    asset: verdict && { verdict, timestamp: 1, metadataHash: hash },
  }),
} as unknown as Pick<Verdicts, 'byTag'>

const server = createServer(kind === 'bare' ? bare() : await verifying())
server.listen(0, '127.0.0.1', () => console.log(`port ${(server.address() as { port: number }).port}`))
process.once('SIGTERM', () => process.exit(0))
