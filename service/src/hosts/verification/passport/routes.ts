/**
 * GET {base_url}/api/dpp/01/{gtin}/21/{serial} and /api/dpp/token/{tokenId}: the passport of the tapped item (spec §4.5, §4.6).
 * Parameters, path and media type are checked before a tap is consumed. The path is parsed raw, which alone keeps `%2F` and `/` apart.
 */
import type { Hono } from 'hono'
import { etagOf, etagOfText } from '../../../http/etag.ts'
import { negotiate, type PassportForm } from '../../../http/accept.ts'
import { openToAll, uncachedJson } from '../../../http/responses.ts'
import { didOf } from '../../../passport/did-document.ts'
import { parsePassportPath } from '../../../passport/digital-link.ts'
import type { ItemKey } from '../../../domain/gs1/serial.ts'
import type { Issuer } from '../../../passport/signing/issuer.ts'
import { signedProfiles, snapshotClaims, snapshotOf, type SignedProfile } from '../../../passport/signing/signer.ts'
import type { StatusIndex } from '../../../passport/signing/status-store.ts'
import type { TapOutcome } from '../../../tap/resolve-tap.ts'
import type { TapRequest } from '../../../tap/verify-tap.ts'
import { parseRawQuery } from '../../../tap/parameters.ts'
import {
  invalidTokenId,
  parseTokenIdSegment,
  rawQuery,
  type Env,
  type Headers,
  type RequestHelpers,
} from '../request.ts'
import { tapRoute, type TapRouteOptions } from '../tap-guard.ts'
import { busyFailure, notConfigured, tapCookies, type TapFailure } from '../tap-http.ts'
import { passportFor, type PassportSite, type ResolvedTap } from './document.ts'

export type PassportRoutes = PassportSite &
  TapRouteOptions & {
    readonly issuer: Pick<Issuer, 'signerFor'>
    /** Returns the index of a token in the status lists, allocated with its first signed passport. */
    readonly statusIndexOf: (tokenId: bigint) => Promise<StatusIndex>
  }

const prefix = '/api/dpp/'

export function passportRoutes(app: Hono<Env>, helpers: RequestHelpers, site: PassportRoutes): void {
  const signer = () => site.issuer.signerFor(didOf(site.baseUrl))

  tapRoute(
    app,
    helpers,
    { ...site, path: prefix, headers: { Vary: 'Accept' }, methods: 'GET, HEAD, OPTIONS' },
    async ({ c, headers, header, parameters, resolve }) => {
      const path = parsePath(c.req.path)
      const form = negotiate(header('accept') ?? null, signer().forms)
      const profile = form === 'application/ld+json' ? 'untp' : parseProfile(rawQuery(c))
      const wrong =
        parameterError(parameters) ?? ('error' in path ? path : null) ?? (profile === null ? noProfile : null)
      if (wrong !== null || form === null || profile === null || 'error' in path)
        return tapErrorResponse(wrong ?? notOffered, headers)
      const outcome = await resolve()
      if (outcome.kind === 'busy')
        return tapErrorResponse(busyFailure(outcome), { ...headers, 'Retry-After': String(outcome.seconds) })
      const response =
        outcome.kind === 'resolved'
          ? await passportResponse(outcome, path, { form, profile }, headers)
          : tapErrorResponse(failures[outcome.kind], headers)
      for (const cookie of c.req.method === 'HEAD' ? [] : tapCookies(outcome))
        response.headers.append('Set-Cookie', cookie)
      return response
    },
    tapErrorResponse,
  )

  /** Returns the passport of a tapped item, if the path names that item. */
  async function passportResponse(
    tap: ResolvedTap,
    path: PassportPath,
    { form, profile }: { readonly form: PassportForm; readonly profile: SignedProfile },
    headers: Headers,
  ): Promise<Response> {
    const tokenId = BigInt(tap.verdict.token_id)
    const item = await site.items.itemOfToken(tokenId)
    if (!isNamedBy(path, tokenId, item)) return tapErrorResponse(wrongItem, headers)
    const passport = await passportFor(site, tap, item)
    if (form === 'application/ld+json') return documentResponse(passport, form, headers)
    const now = (site.now ?? Date.now)()
    const { baseUrl } = site
    const snapshot = snapshotOf(passport, { now, baseUrl, at: await site.statusIndexOf(tokenId), profile })
    if (form === 'application/vc') return documentResponse(await signer().addProof(snapshot, now), form, headers)
    const jws = await signer().signJwt(snapshotClaims(snapshot))
    return bodyResponse(jws, form, etagOfText(jws), headers)
  }
}

type PassportPath = { readonly tokenId: bigint } | ItemKey

function parsePath(rawPath: string): PassportPath | TapFailure {
  const below = rawPath.slice(prefix.length)
  if (below === 'token' || below.startsWith('token/')) {
    const [text = '', ...rest] = below.slice('token/'.length).split('/', 3)
    const tokenId = parseTokenIdSegment(text)
    if (tokenId === null) return { status: 400, error: invalidTokenId }
    return rest.length === 0 ? { tokenId } : nothingHere
  }
  if (below !== '01' && !below.startsWith('01/')) return nothingHere
  const link = parsePassportPath(rawPath)
  if (link.kind === 'item') return link
  if (link.kind !== 'malformed') return nothingHere
  return link.error.startsWith('gtin') ? invalidGtin : invalidSerial
}

/** Returns one text for every fault of the parameters, so that it always names both (spec §4.5). */
function parameterError({ picc, cmac }: Pick<TapRequest, 'picc' | 'cmac'>): TapFailure | null {
  const [piccs, cmacs] = [[picc ?? []].flat(), [cmac ?? []].flat()]
  const isOnce = piccs.length === 1 && cmacs.length === 1
  return isOnce && /^[0-9a-f]{32}$/i.test(piccs[0] ?? '') && /^[0-9a-f]{16}$/i.test(cmacs[0] ?? '')
    ? null
    : noTapParameters
}

/** Returns the shape of a signed passport that the raw query names; null for an unknown one. */
function parseProfile(query: string): SignedProfile | null {
  const wanted = parseRawQuery(query).get('profile') ?? 'untp'
  return signedProfiles.find((profile) => profile === wanted) ?? null
}

function isNamedBy(path: PassportPath, tokenId: bigint, item: ItemKey | null): boolean {
  return 'tokenId' in path ? path.tokenId === tokenId : item?.gtin === path.gtin && item.serial === path.serial
}

const noTapParameters = {
  status: 400,
  error:
    'The picc or cmac parameters are missing or malformed, or the query is too long. A tap writes both once, as 32 and 16 hex digits.',
}
const noProfile = { status: 400, error: 'The profile of a signed passport is untp or w3c.' }
const invalidGtin = { status: 400, error: 'The GTIN must have 14 digits with a right check digit.' }
const invalidSerial = {
  status: 400,
  error:
    'The path must be /api/dpp/01/{gtin}/21/{serial}, the serial 1 to 20 percent-encoded characters of GS1 (CSET 82).',
}
const nothingHere = {
  status: 404,
  error: 'There is no passport at this path. They are at /api/dpp/01/{gtin}/21/{serial} and /api/dpp/token/{tokenId}.',
}
const wrongItem = { status: 404, error: 'This chip is genuine, but it does not belong to the item in this address.' }
const notOffered = { status: 406, error: 'Signed passports are not offered here. Ask for application/ld+json.' }

/** The failures of a tap without an item. A counterfeit has no detail. */
const failures: Readonly<Record<Exclude<TapOutcome['kind'], 'resolved' | 'busy'>, TapFailure>> = {
  malformed: noTapParameters,
  not_configured: { status: 503, error: notConfigured },
  counterfeit: { status: 400, error: 'This tap is not genuine.' },
  replayed: { status: 400, error: 'This tap was used before. Tap the item again.' },
  challenge: { status: 400, error: 'One tap is not enough here. Tap the item once more within 30 seconds.' },
  unbound: { status: 404, error: 'This chip is genuine, but it belongs to no item yet.' },
}

/** A rejected request has `verified: false`; a fault or a limit is no statement about the chip. */
function tapErrorResponse({ status, error }: TapFailure, headers: Headers): Response {
  return uncachedJson(status, status < 429 ? { verified: false, error } : { error }, headers)
}

function documentResponse(document: object, form: PassportForm, headers: Headers): Response {
  return bodyResponse(JSON.stringify(document), form, etagOf(document), headers)
}

function bodyResponse(body: string, form: PassportForm, etag: string, headers: Headers): Response {
  return new Response(body, {
    headers: { 'Content-Type': form, ETag: etag, 'X-Content-Type-Options': 'nosniff', ...openToAll, ...headers },
  })
}
