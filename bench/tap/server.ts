/**
 * The servers of `bench:tap`: `bare` writes one prepared answer. `crypto <sources>` is GET /api/verify with a ledger and a chain that answer
 * at once; `ledger <sources> <postgres url>` has the real ledger and announces each tap. `sources` is the folder service/src of a build. The
 * batch comes as JSON on standard input.
 */
import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import type { Verdicts } from '../../service/src/assets/verdicts.ts'
import type { ReplayLedger } from '../../service/src/tap/replay-ledger.ts'
import type { TappedTag } from '../../service/src/tap/verify-tap.ts'
import { type Hex, type Verdict, verdictOf, zeroAddress } from '@touchstone/verdict'
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import type { Env } from '../../service/src/hosts/verification/request.ts'
import type * as ledgerModule from '../../service/src/tap/replay-ledger.ts'
import type * as databaseModule from '../../service/src/db/database.ts'
import type * as migrateModule from '../../service/src/db/migrate.ts'
import type * as batchModule from '../../service/src/tap/keys/batch.ts'
import type * as authenticateModule from '../../service/src/tap/sun/authenticate.ts'
import type * as verifyTapModule from '../../service/src/tap/verify-tap.ts'
import type * as resolveTapModule from '../../service/src/tap/resolve-tap.ts'
import type * as tagHashModule from '../../service/src/tap/tag-hash.ts'
import type * as requestModule from '../../service/src/hosts/verification/request.ts'
import type * as verifyRouteModule from '../../service/src/hosts/verification/routes/verify.ts'
import { servePort } from '../lib/processes.ts'
import { silent } from '../lib/world.ts'

const [kind, sources = '', url = ''] = process.argv.slice(2)
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
  const { batchFromJson, createKeyRing, embeddedBatch } = await source<typeof batchModule>('tap/keys/batch.ts')
  const { createAuthenticate } = await source<typeof authenticateModule>('tap/sun/authenticate.ts')
  const { createVerifyTap } = await source<typeof verifyTapModule>('tap/verify-tap.ts')
  const { createResolveTap } = await source<typeof resolveTapModule>('tap/resolve-tap.ts')
  const { createTagHash } = await source<typeof tagHashModule>('tap/tag-hash.ts')
  const { createRequestHelpers, rawPath } = await source<typeof requestModule>('hosts/verification/request.ts')
  const { verifyRoutes } = await source<typeof verifyRouteModule>('hosts/verification/routes/verify.ts')
  const record = batchFromJson(JSON.parse(await text(process.stdin)))
  if (record === null) throw new Error('No batch on standard input.')
  const keys = createKeyRing([await embeddedBatch(record)])
  const { ledger, announce } = kind === 'ledger' ? await realLedger() : instantLedger
  const verifyTap = createVerifyTap({
    keys,
    authenticate: createAuthenticate({ keys }),
    ledger,
    tagHash: createTagHash({ scheme: 'hmac', pepper: new Uint8Array(32).fill(7) }),
  })
  const resolveTap = createResolveTap({
    verifyTap,
    verdicts: instantChain,
    // The build before hands over the verdict as a second argument.
    announce: async (tag: TappedTag & { readonly tokenId?: bigint }, verdict?: Verdict) =>
      announce({ ...tag, tokenId: tag.tokenId ?? BigInt(verdict?.token_id ?? '') }),
    onVerified: () => {},
    onRefused: () => {},
  })
  const app = new Hono<Env>({ getPath: rawPath })
  verifyRoutes(app, createRequestHelpers({ clientKey: () => '', log: silent }), { resolveTap, contract })
  const router = getRequestListener((request, env) => app.fetch(request, env))
  return (request, response) => void router(request, response)
}

type Announce = ReturnType<typeof ledgerModule.createTapAnnouncement>

/** Loads a module of the build that is measured. */
function source<Module>(path: string): Promise<Module> {
  return import(pathToFileURL(join(sources, path)).href)
}

async function realLedger(): Promise<{ ledger: ReplayLedger; announce: Announce }> {
  const { openDatabase } = await source<typeof databaseModule>('db/database.ts')
  const { migrate } = await source<typeof migrateModule>('db/migrate.ts')
  const replayLedger = await source<typeof ledgerModule & FormerLedgerModule>('tap/replay-ledger.ts')
  const database = await openDatabase({ url })
  await migrate(database)
  const { announceVerified, createLedger = replayLedger.createReplayLedger } = replayLedger
  return {
    ledger: createLedger({ sql: database }),
    announce:
      announceVerified === undefined
        ? replayLedger.createTapAnnouncement(database)
        : (tap) => announceVerified(database, tap),
  }
}

/** The build before taps were accepted in groups announces one tap in a statement. Its ledger has the former name. */
type FormerLedgerModule = {
  readonly createLedger?: typeof ledgerModule.createReplayLedger
  readonly announceVerified?: (sql: unknown, tap: Parameters<Announce>[0]) => Promise<boolean>
}

const fresh = async () =>
  ({ outcome: 'FRESH', anomalies: [], lastCounter: null, ageSeconds: 0, isAnnounced: true }) as const
const instantLedger: { ledger: ReplayLedger; announce: Announce } = {
  ledger: { consume: fresh, judge: fresh },
  announce: async () => true,
}

const record = { owner: zeroAddress, timestamp: 1n, state: 3, flags: 0, reserved: 0 } as const
const instantChain = {
  byTag: async (tagHash: Hex) => {
    // Each tag is a product of its own.
    const tokenId = BigInt(tagHash.slice(0, 14))
    const verdict = verdictOf({ record, tokenId, block: { number: 1n, hash }, contract, chainId: 84532 })
    return {
      block: { number: 1n, hash, timestamp: 1n },
      asset: verdict && { verdict, timestamp: 1, metadataHash: hash, tagHash },
    }
  },
} as unknown as Pick<Verdicts, 'byTag'>

servePort(kind === 'bare' ? bare() : await verifying())
