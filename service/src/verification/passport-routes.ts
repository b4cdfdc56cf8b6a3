/**
 * GET {base_url}/api/dpp/01/{gtin}/21/{serial} and /api/dpp/token/{tokenId}: the passport of the item that was tapped (spec §4.5, §4.6).
 * The path is read raw: it alone tells `%2F` from `/`. Whatever is wrong with parameters or path is said before a tap is consumed.
 */
import { parseTokenId } from '@touchstone/verdict'
import type { Hono } from 'hono'
import type { RateLimiter } from '../http/rate-limit.ts'
import { failure, openToAll, preflight } from '../http/respond.ts'
import { negotiate, type PassportForm } from '../passport/accept.ts'
import { didOf } from '../passport/did-document.ts'
import { parsePassportPath, type ItemKey } from '../passport/digital-link.ts'
import { etagOf, etagOfText } from '../passport/etag.ts'
import { snapshotOf } from '../passport/signing.ts'
import { statusEntries, type StatusIndex } from '../passport/status-list.ts'
import type { TapRequest } from '../tap/verify-tap.ts'
import { decodeOnce, invalidTokenId } from './asset.ts'
import { rawQuery, type Edge, type Env } from './edge.ts'
import { passportFor, type PassportSite, type Resolved } from './passport-document.ts'
import type { Issuer } from './passport-keys.ts'
import {
  notConfigured,
  tapCookies,
  tapFailure,
  tapHeaders,
  tapParameters,
  tapTokens,
  type Presented,
  type PresentTap,
} from './present-tap.ts'
import { tapDoor, tapMethods } from './tap-door.ts'

export type PassportRoutes = PassportSite & {
  readonly presentTap: PresentTap
  readonly issuer: Pick<Issuer, 'signerFor'>
  /** The place of a token in the status lists, allocated when its first signed passport is made. */
  readonly statusIndexOf: (tokenId: bigint) => Promise<StatusIndex>
  readonly tapLimiter?: RateLimiter | undefined
}

const prefix = '/api/dpp/'

export function passportRoutes(app: Hono<Env>, edge: Edge, site: PassportRoutes): void {
  const signer = () => site.issuer.signerFor(didOf(site.baseUrl))
  app.options(`${prefix}*`, () => preflight(tapMethods))
  app.all(`${prefix}*`, async (c) => {
    if (!c.req.path.startsWith(prefix)) return c.notFound() // the pattern also matches without the slash
    const door = await tapDoor(c, edge, { limiter: site.tapLimiter, routeHeaders: passportHeaders })
    if (!door.isOpen) return door.refusal
    const { headers, header } = door
    const parameters = tapParameters(rawQuery(c))
    const path = parsePath(c.req.path)
    const form = negotiate(header('accept') ?? null, signer().forms)
    const wrong = parameterError(parameters) ?? pathError(path) ?? (form === null ? notOffered : null)
    if (wrong !== null || form === null) return refusal(wrong ?? notOffered, headers)
    try {
      const presented = await site.presentTap({ ...parameters, ...tapTokens(header) })
      const response =
        presented.kind === 'resolved'
          ? await document(presented, path, form, headers)
          : refusal(outcomes[presented.kind], headers)
      for (const cookie of tapCookies(presented)) response.headers.append('Set-Cookie', cookie)
      return response
    } catch (error) {
      return refusal(tapFailure(edge.faultOf(error, c)), headers)
    }
  })

  /** The passport of a tapped item, if it is the one that the path names. */
  async function document(
    found: Resolved,
    path: PassportPath,
    form: PassportForm,
    headers: Headers,
  ): Promise<Response> {
    const tokenId = BigInt(found.verdict.token_id)
    const item = await site.items.itemOfToken(tokenId)
    if (!isNamedBy(path, tokenId, item)) return refusal(wrongItem, headers)
    const passport = await passportFor(site, found, item)
    if (form === 'application/ld+json') return sent(JSON.stringify(passport), form, etagOf(passport), headers)
    const now = (site.now ?? Date.now)()
    const snapshot = snapshotOf(passport, {
      now,
      status: statusEntries(site.baseUrl, await site.statusIndexOf(tokenId)),
    })
    if (form === 'application/vc+jwt') {
      const jws = await signer().signJwt(snapshot)
      return sent(jws, form, etagOfText(jws), headers)
    }
    const signed = signer().addProof(snapshot, now)
    return sent(JSON.stringify(signed), form, etagOf(signed), headers)
  }
}

type Headers = Readonly<Record<string, string>>
type Refusal = { readonly status: number; readonly error: string }
type PassportPath =
  | { readonly kind: 'token'; readonly tokenId: bigint }
  | ({ readonly kind: 'item' } & ItemKey)
  | { readonly kind: 'invalid'; readonly refusal: Refusal }

const passportHeaders = { ...tapHeaders, Vary: 'Accept' } as const

function parsePath(rawPath: string): PassportPath {
  const below = rawPath.slice(prefix.length)
  if (below === 'token' || below.startsWith('token/')) {
    const [text = '', ...rest] = below.slice('token/'.length).split('/', 3)
    const tokenId = parseTokenId(decodeOnce(text))
    if (tokenId === null) return { kind: 'invalid', refusal: { status: 400, error: invalidTokenId } }
    return rest.length === 0 ? { kind: 'token', tokenId } : { kind: 'invalid', refusal: nothingHere }
  }
  if (below !== '01' && !below.startsWith('01/')) return { kind: 'invalid', refusal: nothingHere }
  const link = parsePassportPath(rawPath)
  if (link.kind === 'item') return link
  const isGtin = link.kind === 'malformed' && link.error.startsWith('gtin')
  return { kind: 'invalid', refusal: link.kind === 'malformed' ? (isGtin ? invalidGtin : invalidSerial) : nothingHere }
}

/** One text for whatever is wrong with them, so that it always names both (spec §4.5). */
function parameterError({ picc, cmac }: Pick<TapRequest, 'picc' | 'cmac'>): Refusal | null {
  const [piccs, cmacs] = [[picc ?? []].flat(), [cmac ?? []].flat()]
  if ((piccs[0] ?? '') === '' || (cmacs[0] ?? '') === '') return missingTap
  const isOnce = piccs.length === 1 && cmacs.length === 1
  return isOnce && /^[0-9a-f]{32}$/i.test(piccs[0] ?? '') && /^[0-9a-f]{16}$/i.test(cmacs[0] ?? '')
    ? null
    : malformedTap
}

function pathError(path: PassportPath): Refusal | null {
  return path.kind === 'invalid' ? path.refusal : null
}

function isNamedBy(path: PassportPath, tokenId: bigint, item: ItemKey | null): boolean {
  if (path.kind === 'item') return item !== null && item.gtin === path.gtin && item.serial === path.serial
  return path.kind === 'token' && path.tokenId === tokenId
}

const missingTap: Refusal = { status: 400, error: 'The picc or cmac parameters are missing. Tap the item to get them.' }
const malformedTap: Refusal = {
  status: 400,
  error: 'The picc and cmac parameters must be given once each, as 32 and 16 hex digits.',
}
const invalidGtin: Refusal = { status: 400, error: 'The GTIN must have 14 digits with a right check digit.' }
const invalidSerial: Refusal = {
  status: 400,
  error:
    'The path must be /api/dpp/01/{gtin}/21/{serial}, the serial 1 to 20 percent-encoded characters of GS1 (CSET 82).',
}
const nothingHere: Refusal = {
  status: 404,
  error: 'There is no passport at this path. They are at /api/dpp/01/{gtin}/21/{serial} and /api/dpp/token/{tokenId}.',
}
const wrongItem: Refusal = {
  status: 404,
  error: 'This chip is genuine, but it does not belong to the item in this address.',
}
const notOffered: Refusal = {
  status: 406,
  error: 'Signed passports are not offered here. Ask for application/ld+json.',
}

/** How a tap that leads to no item is answered. Why a chip is counterfeit is not said. */
const outcomes: Readonly<Record<Exclude<Presented['kind'], 'resolved'>, Refusal>> = {
  malformed: malformedTap,
  not_configured: { status: 503, error: notConfigured },
  counterfeit: { status: 400, error: 'This tap is not genuine.' },
  replayed: { status: 400, error: 'This tap was used before. Tap the item again.' },
  challenge: { status: 400, error: 'One tap is not enough here. Tap the item once more within a minute.' },
  unbound: { status: 404, error: 'This chip is genuine, but it belongs to no item yet.' },
}

/** A verdict on the request says `verified: false`; a fault or a limit says nothing about the chip. */
function refusal({ status, error }: Refusal, headers: Headers): Response {
  return failure(status, status < 429 ? { verified: false, error } : { error }, headers)
}

function sent(body: string, form: PassportForm, etag: string, headers: Headers): Response {
  return new Response(body, {
    headers: { 'Content-Type': form, ETag: etag, 'X-Content-Type-Options': 'nosniff', ...openToAll, ...headers },
  })
}
